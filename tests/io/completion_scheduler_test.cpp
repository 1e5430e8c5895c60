// The operations of a loop name it as the scheduler on which they complete: a task on that loop
// continues where they complete, and a task elsewhere returns to its own scheduler.
#include <coppice/exec/let_async_scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/io/copy.hpp>
#include <coppice/io/datagram.hpp>
#include <coppice/io/file.hpp>
#include <coppice/io/resolver.hpp>
#include <coppice/io/run.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task/task.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include "rings.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

// Counts the turns of a loop. It is the first posted operation of each turn, so a task that has
// been scheduled on the loop continues after it.
class turn_counter : io::operation {
public:
    explicit turn_counter(io::context& loop) noexcept : operation(&run), loop_(loop) {
        loop_.post(*this);
    }
    // Must be awaited on the loop before the counter is destroyed.
    task<> end() {
        over_ = true;
        co_await loop_.get_scheduler().schedule();
    }
    unsigned turns = 0;

private:
    static void run(operation* op) noexcept {
        turn_counter& self = *static_cast<turn_counter*>(op);
        ++self.turns;
        if (!self.over_) self.loop_.post(self);
    }
    io::context& loop_;
    bool over_ = false;
};

// Returns true if the awaiting task continued in the turn in which the operation completed.
struct in_place_watch {
    explicit in_place_watch(io::context& loop) noexcept : counter(loop) {}
    template <class Operation>
    task<> expect_in_place(const char* what, Operation awaited) {
        unsigned ended = 0;
        co_await (std::move(awaited) |
                  ex::then([this, &ended](auto&&...) noexcept { ended = counter.turns; }));
        EXPECT_EQ(counter.turns, ended) << what;
        ++checked;
    }
    turn_counter counter;
    int checked = 0;
};

struct pair {
    explicit pair(io::context& loop) : acceptor(loop, io::loopback(0)), near(loop), far(loop) {}
    io::tcp::acceptor acceptor;
    io::tcp::socket near, far;
    std::array<std::byte, 64> bytes{};
};
task<> accept(io::tcp::acceptor& acceptor, io::tcp::socket& into) {
    into = co_await acceptor.accept();
}
task<> connect(io::tcp::socket& socket, io::endpoint to) {
    co_await socket.connect(to);
}
task<> make(pair& p) {
    co_await wait_for_tasks(accept(p.acceptor, p.far), connect(p.near, p.acceptor.local()));
}

class completes_on : public testing::TestWithParam<io::backend> {
protected:
    ~completes_on() override { std::remove(path.c_str()); }
    static io::run_options here() { return {.backend = GetParam()}; }
    const std::string path = testing::TempDir() + "coppice_completes_" +
                             std::to_string(::getpid()) + "_" + test::ring_name({GetParam(), 0});
};
INSTANTIATE_TEST_SUITE_P(rings, completes_on, test::all_rings, test::ring_name);

// ---- On the loop of the task -------------------------------------------------------------------

task<> send_later(io::context& loop, io::stream& s) {
    io::timer timer(loop);
    const std::byte one{};
    co_await timer.wait_for(1ms);
    co_await s.send_all(std::span(&one, 1));
}
task<> receive_in_place(in_place_watch& watch, io::context& loop) {
    pair p(loop);
    co_await wait_for_tasks(watch.expect_in_place("accept", p.acceptor.accept()),
                            connect(p.near, p.acceptor.local()));
    co_await make(p);
    co_await wait_for_tasks(watch.expect_in_place("receive", p.far.receive(p.bytes)),
                            send_later(loop, p.near));
    co_await wait_for_tasks(watch.expect_in_place("receive_pooled", p.far.receive_pooled()),
                            send_later(loop, p.near));
    const std::array<io::mutable_buffer, 1> in{io::mutable_buffer(p.bytes)};
    co_await wait_for_tasks(watch.expect_in_place("scatter", p.far.receive(std::span(in))),
                            send_later(loop, p.near));
    io::udp::socket from(loop, io::loopback(0)), to(loop, io::loopback(0));
    co_await wait_for_tasks(
        watch.expect_in_place("receive_from", to.receive_from(p.bytes)),
        watch.expect_in_place("send_to", from.send_to(std::span(p.bytes).first(1), to.local())));
}
task<> send_in_place(in_place_watch& watch, io::context& loop) {
    pair p(loop);
    co_await wait_for_tasks(accept(p.acceptor, p.far),
                            watch.expect_in_place("connect", p.near.connect(p.acceptor.local())));
    co_await watch.expect_in_place("send", p.near.send(std::span(p.bytes).first(1)));
    co_await watch.expect_in_place("send_all", p.near.send_all(std::span(p.bytes).first(1)));
    const std::array<io::const_buffer, 1> out{io::const_buffer(std::span(p.bytes).first(1))};
    co_await watch.expect_in_place("gather", p.near.send_all(std::span(out)));
    p.near.shutdown_send();
    co_await watch.expect_in_place("copy", io::copy(p.far, p.far));
    io::tcp::socket by_name(loop);
    co_await wait_for_tasks(
        accept(p.acceptor, p.far),
        watch.expect_in_place("connect by name",
                              by_name.connect("127.0.0.1", p.acceptor.local().port())));
}
task<> others_in_place(in_place_watch& watch, io::context& loop, const std::string& path) {
    io::timer timer(loop);
    co_await watch.expect_in_place("wait_for", timer.wait_for(1ms));
    co_await watch.expect_in_place("wait_until", timer.wait_until(loop.now()));
    co_await watch.expect_in_place("schedule_after", loop.get_scheduler().schedule_after(1ms));
    io::resolver resolver(loop);
    co_await watch.expect_in_place("resolve", resolver.resolve("localhost", 80));
    std::array<std::byte, 8> bytes{};
    io::file f(loop, path, io::open_mode::create_only);
    co_await watch.expect_in_place("write_at", f.write_at(0, bytes));
    co_await watch.expect_in_place("read_at", f.read_at(0, bytes));
    co_await watch.expect_in_place("sync", f.sync());
}

TEST_P(completes_on, its_loop_where_a_task_of_that_loop_continues_in_place) {
    int checked = 0;
    EXPECT_TRUE(io::run(
        [&](io::context& loop) -> task<> {
            in_place_watch watch(loop);
            co_await receive_in_place(watch, loop);
            co_await send_in_place(watch, loop);
            co_await others_in_place(watch, loop, path);
            checked = watch.checked;
            co_await watch.counter.end();
        },
        here()));
    EXPECT_EQ(checked, 19);
}

TEST_P(completes_on, its_loop_where_a_task_handles_an_error_in_the_same_turn) {
    io::run(
        [&](io::context& loop) -> task<> {
            turn_counter counter(loop);
            io::tcp::socket closed(loop);
            std::byte one{};
            const auto fails = [&](auto operation) -> task<> {
                const unsigned before = counter.turns;
                EXPECT_THROW(co_await std::move(operation), std::system_error);
                EXPECT_EQ(counter.turns, before);
            };
            co_await fails(closed.receive(std::span(&one, 1)));
            co_await fails(closed.send(std::span(&one, 1)) | ex::then([](auto) noexcept {}));
            io::file nothing(loop, path, io::open_mode::create_only);
            nothing.close();
            co_await fails(nothing.read_at(0, std::span(&one, 1)));  // tells what failed
            co_await counter.end();
        },
        here());
}

// ---- On another loop ---------------------------------------------------------------------------

// A loop that a thread of its own runs.
class other_loop {
public:
    explicit other_loop(io::backend kind)
        : loop(kind), guard_(loop), thread_([this] { loop.run(); }) {}
    ~other_loop() {
        guard_.reset();
        thread_.join();
    }
    io::context loop;

private:
    std::optional<io::context::work_guard> guard_;
    std::thread thread_;
};

// Awaits operations of `there` that wait, fail, and are stopped. is_home() must be true after each.
task<> await_elsewhere(io::context& there, std::function<bool()> is_home) {
    io::timer timer(there);
    bool was_there = false;
    co_await (timer.wait_for(1ms) | ex::then([&]() noexcept { was_there = there.is_current(); }));
    EXPECT_TRUE(was_there && is_home());
    co_await timer.wait_for(0ns);
    EXPECT_TRUE(is_home());
    io::tcp::socket closed(there);
    std::byte one{};
    try {
        co_await closed.receive(std::span(&one, 1));
        ADD_FAILURE() << "nothing is open";
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::bad_file_descriptor);
    }
    EXPECT_TRUE(is_home());
    try {
        co_await closed.connect(io::loopback(1));  // tells what failed
        ADD_FAILURE() << "nothing listens there";
    } catch (const std::system_error&) {
    }
    EXPECT_TRUE(is_home());
    inplace_stop_source source;
    source.request_stop();
    const bool stopped =
        co_await (ex::write_env(timer.wait_for(1h), ex::prop(get_stop_token, source.get_token())) |
                  ex::then([]() noexcept { return false; }) |
                  ex::upon_stopped([]() noexcept { return true; }));
    EXPECT_TRUE(stopped && is_home());
}

TEST_P(completes_on, another_loop_and_the_task_returns_to_its_own) {
    if (GetParam() == io::backend::sim) GTEST_SKIP() << "a simulation has one thread";
    other_loop other(GetParam());
    EXPECT_TRUE(io::run(
        [&](io::context& loop) {
            return await_elsewhere(other.loop, [&loop] { return loop.is_current(); });
        },
        here()));
}

TEST_P(completes_on, a_loop_and_a_task_of_a_blocked_thread_returns_to_that_thread) {
    if (GetParam() == io::backend::sim) GTEST_SKIP() << "a simulation has one thread";
    other_loop other(GetParam());
    const std::thread::id home = std::this_thread::get_id();
    const auto is_home = [home] { return std::this_thread::get_id() == home; };
    EXPECT_TRUE(this_thread::sync_wait(await_elsewhere(other.loop, is_home)));
}

// Its destructor notes where the task ended.
struct end_mark {
    io::context& loop;
    bool& on_loop;
    ~end_mark() { on_loop = loop.is_current(); }
};
task<> wait_for_ever(io::context& loop, bool& ended_on_loop) {
    const end_mark mark{loop, ended_on_loop};
    io::timer timer(loop);
    for (;;) co_await timer.wait_for(1h);
}

TEST_P(completes_on, its_loop_when_another_thread_requests_the_stop) {
    if (GetParam() == io::backend::sim) GTEST_SKIP() << "a simulation has one thread";
    bool ended_on_loop = false;
    inplace_stop_source source;
    std::thread other;
    const bool ran = io::run(
        [&](io::context& loop) {
            other = std::thread([&] { source.request_stop(); });
            return ex::write_env(wait_for_ever(loop, ended_on_loop),
                                 ex::prop(get_stop_token, source.get_token()));
        },
        here());
    other.join();
    EXPECT_FALSE(ran);
    EXPECT_TRUE(ended_on_loop);
}

// ---- How many in a row -------------------------------------------------------------------------

TEST_P(completes_on, its_loop_many_times_on_constant_stack_without_starving_the_loop) {
    const bool few = test::sanitized || GetParam() != io::backend::epoll;
    const int rounds = few ? 20'000 : 1'000'000;
    io::run(
        [&](io::context& loop) -> task<> {
            turn_counter counter(loop);
            io::tcp::socket closed(loop);
            std::byte one{};
            std::error_code ec;
            for (int i = 0; i != rounds; ++i) {
                co_await closed.receive(std::span(&one, 1), use_await[ec]);
            }
            EXPECT_EQ(ec, std::errc::bad_file_descriptor);
            const auto turns = static_cast<int>(counter.turns);
            EXPECT_GE(turns, rounds / 256 - 1);
            EXPECT_LE(turns, rounds / 128);
            co_await counter.end();
        },
        here());
}

// The task always has data to receive, and yet timers and posted operations run.
TEST_P(completes_on, its_loop_and_a_task_that_never_waits_does_not_starve_others) {
    EXPECT_TRUE(io::run(
        [&](io::context& loop) -> task<> {
            pair p(loop);
            co_await make(p);
            bool posted = false, fired = false;
            const auto be_posted = [&]() -> task<> {
                for (int i = 0; i != 3; ++i) co_await loop.get_scheduler().schedule();
                posted = true;
            };
            const auto wait = [&]() -> task<> {
                io::timer timer(loop);
                co_await timer.wait_for(0ns);
                fired = true;
            };
            const auto be_busy = [&]() -> task<> {
                const std::span<std::byte> one = std::span(p.bytes).first(1);
                do {
                    co_await p.near.send(one);
                    co_await p.far.receive(one);
                } while (!posted || !fired);
            };
            co_await wait_for_tasks(be_posted(), wait(), be_busy());
        },
        here()));
}

// A request of the program's own: end() completes it, on the stack of the caller.
class own_request : public io::basic_request<io::operation> {
    using base = io::basic_request<io::operation>;

public:
    using value_type = void;
    static constexpr const char* name = "wait in a line";
    struct arguments {
        io::context* owner;
        own_request** place;
    };
    explicit own_request(const arguments& a) noexcept : base(*a.owner), place_(a.place) {}
    void end() noexcept {
        set_outcome(0);
        ended();
    }

protected:
    ~own_request() = default;

private:
    bool submit() noexcept final {
        *place_ = this;
        listen();
        return false;
    }
    void interrupt() noexcept final {}
    own_request** place_;
};

task<> stand_in_line(io::context& loop, std::vector<own_request*>& line, std::size_t at,
                     int& ends) {
    co_await io::initiate<own_request>({&loop, &line[at]}, use_await);
    ++ends;
    if (at + 1 != line.size()) line[at + 1]->end();
}

TEST_P(completes_on, its_loop_with_bounded_stack_where_each_completion_causes_the_next) {
    constexpr int length = 20'000;
    int ends = 0;
    EXPECT_TRUE(io::run(
        [&](io::context& loop) -> task<> {
            std::vector<own_request*> line(length);
            co_await ex::scoped([&](auto scope) -> task<> {
                for (std::size_t i = 0; i != line.size(); ++i) {
                    ex::spawn(stand_in_line(loop, line, i, ends), scope);
                }
                line[0]->end();
                co_return;
            });
        },
        here()));
    EXPECT_EQ(ends, length);
}

}  // namespace
