// Every operation of io with every completion token, on every ring of the kernel.
#include <coppice/execution.hpp>
#include <coppice/io.hpp>
#include <coppice/stop_token.hpp>
#include <coppice/task.hpp>

#include "allocations.hpp"
#include "detached.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <array>
#include <cstdlib>
#include <optional>
#include <string>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using coppice::test::detached;
namespace ex = coppice::execution;

std::span<const std::byte> bytes_of(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

// Ways to wait, on a thread of the program, for an operation of a loop that runs elsewhere. Each
// takes a function that starts the operation with a token.
struct by_block {
    auto operator()(auto start) const { return start(block); }
};
struct by_block_with_error {
    auto operator()(auto start) const {
        std::error_code ec = std::make_error_code(std::errc::io_error);
        if constexpr (std::is_void_v<decltype(start(block[ec]))>) {
            start(block[ec]);
            EXPECT_FALSE(ec) << ec.message();
        } else {
            auto result = start(block[ec]);
            EXPECT_FALSE(ec) << ec.message();
            return result;
        }
    }
};
struct by_future {
    auto operator()(auto start) const { return start(use_future).get(); }
};
struct by_callback {
    auto operator()(auto start) const {
        using result = decltype(start(use_future).get());
        std::promise<result> promise;
        auto future = promise.get_future();
        start([p = std::move(promise)](std::error_code ec, auto... values) mutable {
            EXPECT_FALSE(ec) << ec.message();
            p.set_value(std::move(values)...);
        });
        return future.get();
    }
};
struct by_await {
    auto operator()(auto start) const {
        using result = decltype(start(use_future).get());
        auto wait = [](auto& begin) -> task<result> { co_return co_await begin(use_await); };
        return value_of<result>(this_thread::sync_wait(wait(start)));
    }
    template <class Result>
    static Result value_of(auto&& values) {
        if constexpr (!std::is_void_v<Result>) return std::get<0>(std::move(values).value());
    }
};
struct by_sender {
    auto operator()(auto start) const {
        using result = decltype(start(use_future).get());
        return by_await::value_of<result>(this_thread::sync_wait(start(use_await)));
    }
};

struct epoll {
    static constexpr io::backend kind = io::backend::epoll;
};
struct uring {
    static constexpr io::backend kind = io::backend::uring;
};
template <class Ring, class By>
struct combination {
    using ring = Ring;
    using by = By;
};

// A loop on its own thread.
template <class Combination>
class every_token : public testing::Test {
protected:
    io::context loop{Combination::ring::kind};
    std::optional<io::context::work_guard> guard{std::in_place, loop};
    std::thread runner{[this] { loop.run(); }};
    typename Combination::by wait;

    ~every_token() override {
        guard.reset();
        runner.join();
    }
};

template <class... By>
using on_both = testing::Types<combination<epoll, By>..., combination<uring, By>...>;
using all_tokens =
    on_both<by_block, by_block_with_error, by_future, by_callback, by_await, by_sender>;
TYPED_TEST_SUITE(every_token, all_tokens);

TYPED_TEST(every_token, serves_streams) {
    auto& by = this->wait;
    io::tcp::acceptor acceptor(this->loop, io::loopback(0));
    io::tcp::socket client(this->loop);
    const io::endpoint to = acceptor.local();
    std::future<io::tcp::socket> accepted = acceptor.accept(use_future);
    by([&](auto token) { return client.connect(to, std::move(token)); });
    io::tcp::socket server = accepted.get();
    accepted = acceptor.accept(use_future);
    io::tcp::socket second(this->loop);
    second.connect(to, block);
    EXPECT_TRUE(accepted.get().is_open());

    by([&](auto token) { return client.send_all(bytes_of("hello"), std::move(token)); });
    std::array<std::byte, 3> first{};
    EXPECT_EQ(by([&](auto token) { return server.receive(first, std::move(token)); }), 3u);
    {
        io::pooled_buffer rest =
            by([&](auto token) { return server.receive_pooled(std::move(token)); });
        EXPECT_EQ(rest.bytes().size(), 2u);
        // The buffer belongs to the loop, and is returned there.
        this_thread::sync_wait(this->loop.get_scheduler().schedule() |
                               ex::then([&] { rest.release(); }));
    }
    EXPECT_EQ(by([&](auto token) { return server.send(bytes_of("answer"), std::move(token)); }),
              6u);
    std::array<std::byte, 2> a{};
    std::array<std::byte, 8> b{};
    const std::array<io::mutable_buffer, 2> pieces{io::mutable_buffer(a), io::mutable_buffer(b)};
    EXPECT_EQ(by([&](auto token) {
                  return client.receive(std::span<const io::mutable_buffer>(pieces),
                                        std::move(token));
              }),
              6u);
    EXPECT_EQ(b[0], std::byte('s'));
    const std::array<io::const_buffer, 2> out{io::const_buffer(bytes_of("ab")),
                                              io::const_buffer(bytes_of("c"))};
    by([&](auto token) {
        return client.send_all(std::span<const io::const_buffer>(out), std::move(token));
    });
    EXPECT_EQ(by([&](auto token) { return server.receive(b, std::move(token)); }), 3u);
    client.close();
    EXPECT_EQ(by([&](auto token) { return server.receive(b, std::move(token)); }), 0u);
}

TYPED_TEST(every_token, accepts) {
    io::tcp::acceptor acceptor(this->loop, io::loopback(0));
    io::tcp::socket client(this->loop);
    std::future<void> connected = client.connect(acceptor.local(), use_future);
    const io::tcp::socket server =
        this->wait([&](auto token) { return acceptor.accept(std::move(token)); });
    EXPECT_TRUE(server.is_open());
    connected.get();
}

TYPED_TEST(every_token, serves_datagrams) {
    io::udp::socket a(this->loop, io::loopback(0));
    io::udp::socket b(this->loop, io::loopback(0));
    EXPECT_EQ(this->wait([&](auto token) {
        return a.send_to(bytes_of("ping"), b.local(), std::move(token));
    }),
              4u);
    std::array<std::byte, 16> into{};
    const auto got = this->wait([&](auto token) { return b.receive_from(into, std::move(token)); });
    EXPECT_EQ(got.size, 4u);
    EXPECT_EQ(got.from, a.local());
}

TYPED_TEST(every_token, serves_timers_and_names) {
    io::timer timer(this->loop);
    const time_point before = monotonic_clock().now();
    this->wait([&](auto token) { return timer.wait_for(2ms, std::move(token)); });
    EXPECT_GE(monotonic_clock().now() - before, 2ms);
    io::resolver resolver(this->loop);
    const std::vector<io::endpoint> found =
        this->wait([&](auto token) { return resolver.resolve("127.0.0.1", 80, std::move(token)); });
    ASSERT_FALSE(found.empty());
    EXPECT_EQ(found.front().port(), 80);
}

TYPED_TEST(every_token, serves_files) {
    char path[] = "/tmp/coppice_token_XXXXXX";
    ::close(::mkstemp(path));
    io::file file(this->loop, path, io::open_mode::read_write);
    EXPECT_EQ(this->wait([&](auto token) {
        return file.write_at(2, bytes_of("bytes"), std::move(token));
    }),
              5u);
    this->wait([&](auto token) { return file.sync(std::move(token)); });
    std::array<std::byte, 16> into{};
    EXPECT_EQ(this->wait([&](auto token) { return file.read_at(0, into, std::move(token)); }), 7u);
    ::unlink(path);
}

// ---- Stops and deadlines --------------------------------------------------------------------

class tokens_on : public testing::TestWithParam<io::backend> {
protected:
    io::context loop{GetParam()};
    io::udp::socket silent{loop, io::loopback(0)};  // no peer sends to it
    std::array<std::byte, 8> bytes{};
};
INSTANTIATE_TEST_SUITE_P(rings, tokens_on, testing::Values(io::backend::epoll, io::backend::uring),
                         [](const auto& instance) {
                             return instance.param == io::backend::epoll ? "epoll" : "uring";
                         });

TEST_P(tokens_on, a_stop_cancels_callbacks_futures_and_blocked_threads) {
    stop_source source;
    const auto env = ex::prop(get_stop_token, source.get_token());
    io::udp::socket other(loop, io::loopback(0));
    std::error_code called;
    silent.receive_from(bytes, bind_env(env, [&](std::error_code ec, auto) { called = ec; }));
    std::future<void> future = io::timer(loop).wait_for(1h, bind_env(env, use_future));
    std::thread stopper([&] { source.request_stop(); });
    std::error_code blocked;
    other.receive_from(bytes, bind_env(env, block[blocked]));
    stopper.join();
    loop.run();
    EXPECT_EQ(called, std::errc::operation_canceled);
    EXPECT_EQ(blocked, std::errc::operation_canceled);
    EXPECT_THROW(future.get(), std::system_error);
    EXPECT_THROW(silent.receive_from(bytes, bind_env(env, block)), std::system_error);
}

TEST_P(tokens_on, a_deadline_cancels_callbacks_futures_and_blocked_threads) {
    const auto env = ex::prop(ex::get_deadline, ex::monotonic_now() + ex::time_span(3ms));
    io::udp::socket other(loop, io::loopback(0));
    std::error_code called;
    silent.receive_from(bytes, bind_env(env, [&](std::error_code ec, auto) { called = ec; }));
    std::future<void> future = io::timer(loop).wait_for(1h, bind_env(env, use_future));
    std::error_code blocked;
    other.receive_from(bytes, bind_env(env, block[blocked]));
    loop.run();
    EXPECT_EQ(called, std::errc::operation_canceled);
    EXPECT_EQ(blocked, std::errc::operation_canceled);
    EXPECT_THROW(future.get(), std::system_error);
}

TEST_P(tokens_on, when_any_of_a_receive_and_a_timer_stops_the_receive) {
    bool timed_out = false;
    auto as_task = [&]() -> task<> {
        io::timer timer(loop);
        timed_out =
            co_await ex::when_any(silent.receive_from(bytes) | ex::then([](auto) { return false; }),
                                  timer.wait_for(1ms) | ex::then([] { return true; }));
    };
    auto run = [&]() -> detached { co_await as_task(); };
    run();
    loop.run();
    EXPECT_TRUE(timed_out);
}

TEST_P(tokens_on, closing_is_an_error_and_not_a_stop) {
    std::error_code called;
    silent.receive_from(bytes, [&](std::error_code ec, auto) { called = ec; });
    io::timer(loop).wait_for(1ms, [&](std::error_code) { silent.close(); });
    loop.run();
    EXPECT_EQ(called, std::errc::operation_canceled);
}

// ---- Where things run -----------------------------------------------------------------------

TEST_P(tokens_on, block_runs_the_loop_when_no_thread_does) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    io::tcp::socket client(loop);
    bool called = false;
    acceptor.accept([&](std::error_code ec, io::tcp::socket socket) {
        EXPECT_FALSE(ec);
        EXPECT_TRUE(socket.is_open());
        called = true;
    });
    client.connect(acceptor.local(), block);
    io::timer(loop).wait_for(1ms, block);
    EXPECT_TRUE(called);
}

TEST_P(tokens_on, block_inside_a_completion_keeps_the_loop_running) {
    int order = 0;
    io::timer timer(loop);
    timer.wait_for(0ms, [&](std::error_code) {
        // What is due at the same time, and what is posted, still completes.
        timer.wait_for(3ms, block);
        EXPECT_EQ(order, 2);
        order = 3;
    });
    timer.wait_for(0ms, [&](std::error_code) { ++order; });
    std::thread poster([&] { timer.wait_for(1ms, [&](std::error_code) { ++order; }); });
    poster.join();
    loop.run();
    EXPECT_EQ(order, 3);
}

TEST_P(tokens_on, a_blocked_thread_takes_the_loop_over_when_its_runner_leaves) {
    std::optional<io::context::work_guard> guard(std::in_place, loop);
    std::thread::id called_on;
    std::thread runner([&] { loop.run(); });
    // Whichever thread runs the loop now, the runner gets it in the end: it has priority over
    // threads that block.
    std::thread stopper([&] {
        this_thread::sync_wait(loop.get_scheduler().schedule());
        loop.stop();
        runner.join();
        io::timer(loop).wait_for(0ms,
                                 [&](std::error_code) { called_on = std::this_thread::get_id(); });
    });
    io::timer(loop).wait_for(20ms, block);
    stopper.join();
    guard.reset();
    loop.restart();
    loop.run();
    EXPECT_EQ(called_on, std::this_thread::get_id());
}

// Ends only if the runner gets the loop while this thread blocks on it.
TEST_P(tokens_on, a_thread_in_run_has_priority_over_threads_that_block) {
    struct searcher {
        io::context& loop;
        io::udp::socket sender;
        io::endpoint to;
        std::thread::id blocked;
        void look() {
            io::timer(loop).wait_for(0ms, [this](std::error_code) {
                if (std::this_thread::get_id() == blocked) return look();
                sender.send_to(bytes_of("here"), to, [](std::error_code, std::size_t) {});
            });
        }
    };
    std::optional<io::context::work_guard> guard(std::in_place, loop);
    searcher s{loop, io::udp::socket(loop, io::loopback(0)), silent.local(),
               std::this_thread::get_id()};
    std::thread runner;
    io::timer(loop).wait_for(0ms, [&](std::error_code) {
        runner = std::thread([&] { loop.run(); });
        s.look();
    });
    EXPECT_EQ(silent.receive_from(bytes, block).size, 4u);
    guard.reset();
    runner.join();
}

TEST_P(tokens_on, many_threads_block_on_one_loop) {
    constexpr int threads = 4, each = 50;
    std::array<int, threads> done{};
    std::vector<std::thread> blocked;
    for (int& mine : done) {
        blocked.emplace_back([&] {
            for (int i = 0; i != each; ++i) {
                io::timer(loop).wait_for(0ms, block);
                ++mine;
            }
        });
    }
    for (std::thread& t : blocked) t.join();
    for (const int d : done) EXPECT_EQ(d, each);
}

TEST_P(tokens_on, sockets_are_made_and_closed_while_another_thread_runs_the_loop) {
    auto guard = std::make_unique<io::context::work_guard>(loop);
    std::thread runner([&] { loop.run(); });
    for (int i = 0; i != 20; ++i) {
        io::tcp::acceptor acceptor(loop, io::loopback(0));
        std::future<io::tcp::socket> accepted = acceptor.accept(use_future);
        io::tcp::socket client(loop);
        client.connect(acceptor.local(), block);
        io::tcp::socket server = accepted.get();
        client.send_all(bytes_of("x"), block);
        std::byte one;
        EXPECT_EQ(server.receive(std::span(&one, 1), block), 1u);
        std::future<std::size_t> pending = server.receive(std::span(&one, 1), use_future);
        server.close();
        EXPECT_THROW(pending.get(), std::system_error);
    }
    guard.reset();
    runner.join();
}

TEST_P(tokens_on, a_callback_may_destroy_its_socket) {
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    auto client = std::make_unique<io::tcp::socket>(loop);
    io::tcp::socket& kept = *client;
    bool ended = false;
    kept.connect(acceptor.local(), [&](std::error_code ec) {
        EXPECT_FALSE(ec);
        kept.receive(bytes, [&, owned = std::move(client)](std::error_code, std::size_t) mutable {
            owned.reset();
            ended = true;
        });
    });
    acceptor.accept([](std::error_code, io::tcp::socket accepted) { accepted.close(); });
    loop.run();
    EXPECT_TRUE(ended);
}

TEST_P(tokens_on, callbacks_allocate_nothing_in_steady_state) {
    io::udp::socket sender(loop, io::loopback(0));
    const io::endpoint to = silent.local();
    struct ping {
        io::udp::socket& from;
        io::udp::socket& at;
        const io::endpoint& to;
        std::span<std::byte> bytes;
        int left;
        void next() {
            from.send_to(bytes, to, [this](std::error_code, std::size_t) {
                at.receive_from(bytes, [this](std::error_code, auto) {
                    if (--left != 0) next();
                });
            });
        }
    };
    ping warm{sender, silent, to, bytes, 50};
    warm.next();
    loop.run();
    const coppice::test::allocation_count count;
    ping steady{sender, silent, to, bytes, 500};
    steady.next();
    loop.run();
    EXPECT_EQ(steady.left, 0);
    EXPECT_EQ(count.so_far(), 0u);
}

TEST_P(tokens_on, operations_that_end_with_the_context_call_back) {
    std::error_code called;
    std::future<void> future;
    {
        io::context inner(GetParam());
        io::timer(inner).wait_for(1h, [&](std::error_code ec) { called = ec; });
        future = io::timer(inner).wait_for(1h, use_future);
    }
    EXPECT_EQ(called, std::errc::operation_canceled);
    EXPECT_THROW(future.get(), std::system_error);
}

}  // namespace
