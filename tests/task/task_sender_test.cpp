// task as in the draft, [exec.task]: a sender with an environment, errors, stops, and affinity.
#include <coppice/task/task.hpp>

#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/stop/shared.hpp>
#include <coppice/task/internal/task_context.hpp>
#include <coppice/task/internal/task_outcome.hpp>
#include <coppice/task/internal/task_promise.hpp>
#include <coppice/task/internal/transfer.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::this_thread::sync_wait;

// Runs each scheduled operation on a thread of its own.
struct other_thread {
    ex::run_loop loop;
    std::thread thread{[this] { loop.run(); }};
    ~other_thread() {
        loop.finish();
        thread.join();
    }
    auto scheduler() { return loop.get_scheduler(); }
};

// A receiver that notes how it was completed. Its environment names a scheduler.
struct noted {
    std::string how;
    std::string* log = nullptr;
};
class noting_receiver {
public:
    using receiver_concept = ex::receiver_tag;
    explicit noting_receiver(noted& n) : noted_(&n) {}
    void set_value() && noexcept { note("value"); }
    void set_value(int v) && noexcept { note("value " + std::to_string(v)); }
    void set_error(int e) && noexcept { note("int " + std::to_string(e)); }
    void set_error(std::error_code e) && noexcept { note("code " + std::to_string(e.value())); }
    void set_error(std::exception_ptr) && noexcept { note("exception"); }
    void set_stopped() && noexcept { note("stopped"); }

private:
    void note(const std::string& how) {
        noted_->how = how;
        if (noted_->log != nullptr) *noted_->log += "received ";
    }
    noted* noted_;
};

template <class Sndr>
std::string outcome(Sndr sndr) {
    noted n;
    auto op = ex::connect(std::move(sndr), noting_receiver(n));
    ex::start(op);
    return n.how;
}

struct code_env {
    using error_types =
        ex::completion_signatures<ex::set_error_t(std::exception_ptr), ex::set_error_t(int),
                                  ex::set_error_t(std::error_code)>;
};
template <class T>
using code_task = task<T, code_env>;

// [task.class] p2 to 5: the members.
TEST(task_sender, has_the_member_types_of_its_environment_or_the_defaults) {
    static_assert(ex::sender<task<int>>);
    using plain = task<int>;
    static_assert(std::is_same_v<plain::allocator_type, std::allocator<std::byte>>);
    static_assert(std::is_same_v<plain::scheduler_type, ex::task_scheduler>);
    static_assert(std::is_same_v<plain::stop_source_type, coppice::inplace_stop_source>);
    static_assert(std::is_same_v<plain::stop_token_type, coppice::inplace_stop_token>);
    static_assert(
        std::is_same_v<
            ex::completion_signatures_of_t<plain, ex::env<>>,
            ex::completion_signatures<ex::set_value_t(int), ex::set_error_t(std::exception_ptr),
                                      ex::set_stopped_t()>>);
    struct chosen {
        using scheduler_type = ex::inline_scheduler;
        using stop_source_type = coppice::stop_source;
        using error_types = ex::completion_signatures<>;
    };
    using special = task<void, chosen>;
    static_assert(std::is_same_v<special::scheduler_type, ex::inline_scheduler>);
    static_assert(std::is_same_v<special::stop_token_type, coppice::stop_token>);
    static_assert(
        std::is_same_v<ex::completion_signatures_of_t<special, ex::env<>>,
                       ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>>);
}

// [task.promise], yield_value(with_error<E>).
TEST(task_sender, with_error_sends_the_plain_error) {
    auto fails = []() -> code_task<int> {
        co_yield coppice::with_error(7);
        co_return 1;
    };
    EXPECT_EQ(outcome(fails()), "int 7");
    auto code = []() -> code_task<void> {
        co_yield coppice::with_error(std::make_error_code(std::errc::invalid_argument));
    };
    EXPECT_EQ(outcome(code()), "code 22");
}

// [task.promise], yield_value: the error is converted to the only one of error_types that it fits.
TEST(task_sender, with_error_converts_to_the_error_that_it_fits) {
    struct number {
        operator int() const noexcept { return 5; }
    };
    auto converted = [](int how) -> code_task<void> {
        if (how == 0) co_yield coppice::with_error(number());
        if (how == 1) co_yield coppice::with_error(std::io_errc::stream);
        co_yield coppice::with_error(std::error_code(7, std::generic_category()));
    };
    EXPECT_EQ(outcome(converted(0)), "int 5");
    EXPECT_EQ(outcome(converted(1)),
              "code " + std::to_string(make_error_code(std::io_errc::stream).value()));
    EXPECT_EQ(outcome(converted(2)), "code 7");
}

TEST(task_sender, with_error_is_thrown_where_the_task_is_awaited) {
    auto fails = []() -> code_task<int> {
        co_yield coppice::with_error(std::make_error_code(std::errc::timed_out));
        co_return 1;
    };
    auto awaits = [&]() -> code_task<int> {
        try {
            co_return co_await fails();
        } catch (const std::system_error& error) {
            co_return error.code() == std::errc::timed_out ? 5 : 6;
        }
    };
    EXPECT_EQ(outcome(awaits()), "value 5");
}

TEST(task_sender, sends_values_exceptions_and_stops) {
    EXPECT_EQ(outcome([]() -> task<int> { co_return 3; }()), "value 3");
    EXPECT_EQ(outcome([]() -> task<> { co_return; }()), "value");
    EXPECT_EQ(outcome([]() -> task<> {
                  throw std::runtime_error("lost");
                  co_return;
              }()),
              "exception");
    EXPECT_EQ(outcome([]() -> task<> { co_await ex::just_stopped(); }()), "stopped");
}

// [task.state]: the frame is destroyed before the receiver is completed.
TEST(task_sender, its_frame_is_destroyed_before_the_receiver_is_completed) {
    struct witness {
        std::string* log;
        explicit witness(std::string* l) : log(l) {}
        witness(witness&& other) noexcept : log(std::exchange(other.log, nullptr)) {}
        ~witness() {
            if (log != nullptr) *log += "destroyed ";
        }
    };
    const auto run = [](auto body) {
        std::string log;
        noted n{"", &log};
        auto op = ex::connect(body(witness(&log)), noting_receiver(n));
        ex::start(op);
        return log;
    };
    EXPECT_EQ(run([](witness) -> task<int> { co_return 1; }), "destroyed received ");
    EXPECT_EQ(run([](witness) -> task<> { co_await ex::just_stopped(); }), "destroyed received ");
    EXPECT_EQ(run([](witness) -> task<> {
                  throw 1;
                  co_return;
              }),
              "destroyed received ");
}

TEST(task_sender, an_exception_without_a_signature_for_it_terminates) {
    struct quiet {
        using error_types = ex::completion_signatures<>;
    };
    EXPECT_DEATH(outcome([]() -> task<int, quiet> {
                     throw 1;
                     co_return 1;
                 }()),
                 "");
}

TEST(task_sender, an_awaited_operation_sees_the_stop_token_of_the_receiver) {
    coppice::inplace_stop_source source;
    auto child = [](coppice::inplace_stop_token expected) -> task<bool> {
        co_return (co_await ex::read_env(coppice::get_stop_token)) == expected;
    };
    auto parent = [&]() -> task<bool> { co_return co_await child(source.get_token()); };
    EXPECT_EQ(
        sync_wait(ex::write_env(parent(), ex::prop(coppice::get_stop_token, source.get_token()))),
        std::tuple(true));
}

TEST(task_sender, a_stop_request_through_another_type_of_token_reaches_it) {
    coppice::stop_source source;
    auto body = [&]() -> task<bool> {
        const auto token = co_await ex::read_env(coppice::get_stop_token);
        const bool before = token.stop_requested();
        source.request_stop();
        co_return !before && token.stop_requested();
    };
    EXPECT_EQ(
        sync_wait(ex::write_env(body(), ex::prop(coppice::get_stop_token, source.get_token()))),
        std::tuple(true));
}

// Can be moved a limited number of times.
struct moved_at_most {
    explicit moved_at_most(int times) noexcept : left(times) {}
    moved_at_most(moved_at_most&& other) : left(other.left - 1) {
        if (left < 0) throw std::runtime_error("moved too often");
    }
    int left;
};
struct no_exceptions {
    using error_types = ex::completion_signatures<ex::set_error_t(int)>;
};

TEST(task_sender, an_exception_from_moving_the_result_is_its_error_awaited_or_connected) {
    auto make = []() -> task<moved_at_most> { co_return moved_at_most(1); };
    auto ignore = [](moved_at_most&&) noexcept {};
    auto caught = [&](bool connected) -> task<bool> {
        try {
            if (connected) {
                co_await ex::then(make(), ignore);
            } else {
                co_await make();
            }
        } catch (const std::runtime_error&) {
            co_return true;
        }
        co_return false;
    };
    EXPECT_EQ(sync_wait(caught(false)), std::tuple(true));
    EXPECT_EQ(sync_wait(caught(true)), std::tuple(true));
    EXPECT_THROW(sync_wait(make()), std::runtime_error);
}

TEST(task_sender, a_result_is_sent_without_a_move_if_no_exception_may_be_sent) {
    auto make = []() -> task<moved_at_most, no_exceptions> { co_return moved_at_most(1); };
    auto left = [](moved_at_most&& value) noexcept { return value.left; };
    EXPECT_EQ(sync_wait(ex::then(make(), left)), std::tuple(0));
}

struct get_number_t : coppice::forwarding_query_t {
    template <class Env>
        requires ex::has_query<Env, get_number_t>
    int operator()(const Env& env) const noexcept {
        return env.query(*this);
    }
};
struct number_env {
    int number = 0;
    template <class Outer>
        requires requires(const Outer& outer) { get_number_t()(outer); }
    explicit number_env(const Outer& outer) : number(get_number_t()(outer) + 1) {}
    number_env() = default;
    int query(get_number_t) const noexcept { return number; }
};

// [task.state] p4: the environment is made from the receiver's.
TEST(task_sender, its_environment_is_made_from_the_receivers_and_seen_by_children) {
    auto child = []() -> task<int, number_env> { co_return co_await ex::read_env(get_number_t()); };
    auto parent = [&]() -> task<int, number_env> { co_return co_await child(); };
    EXPECT_EQ(sync_wait(ex::write_env(parent(), ex::prop(get_number_t(), 41))), std::tuple(42));
}

template <class T>
struct counting_allocator {
    using value_type = T;
    int* count;
    explicit counting_allocator(int& c) : count(&c) {}
    template <class U>
    counting_allocator(const counting_allocator<U>& other) : count(other.count) {}
    T* allocate(std::size_t n) {
        ++*count;
        return static_cast<T*>(::operator new(n * sizeof(T)));
    }
    void deallocate(T* p, std::size_t) {
        *count += 100;
        ::operator delete(p);
    }
    friend bool operator==(const counting_allocator&, const counting_allocator&) = default;
};

// [task.promise], operator new and get_env.
TEST(task_sender, frames_come_from_the_allocator_that_is_passed_to_the_coroutine) {
    struct counted {
        using allocator_type = counting_allocator<std::byte>;
    };
    int count = 0;
    auto body = [](std::allocator_arg_t, counting_allocator<std::byte> a) -> task<bool, counted> {
        co_return (co_await ex::read_env(coppice::get_allocator)) == a;
    };
    EXPECT_EQ(sync_wait(body(std::allocator_arg, counting_allocator<std::byte>(count))),
              std::tuple(true));
    EXPECT_EQ(count, 101);
}

// P3980R0: the frame's allocator is of any type, and is not the environment's.
TEST(task_sender, frames_come_from_a_passed_allocator_of_any_type) {
    int count = 0;
    auto body = [](std::allocator_arg_t, counting_allocator<int>, int i) -> task<int> {
        co_return i;
    };
    EXPECT_EQ(sync_wait(body(std::allocator_arg, counting_allocator<int>(count), 7)),
              std::tuple(7));
    EXPECT_EQ(count, 101);
    // A lambda is an object whose member function is the coroutine; a plain function has no object.
    struct maker {
        task<int> member(std::allocator_arg_t, counting_allocator<char>) { co_return 8; }
        static task<int> plain(std::allocator_arg_t, counting_allocator<char>) { co_return 9; }
    } m;
    count = 0;
    EXPECT_EQ(sync_wait(m.member(std::allocator_arg, counting_allocator<char>(count))),
              std::tuple(8));
    EXPECT_EQ(sync_wait(maker::plain(std::allocator_arg, counting_allocator<char>(count))),
              std::tuple(9));
    EXPECT_EQ(count, 202);
    // The frame of a task that never runs is given back too.
    count = 0;
    static_cast<void>(maker::plain(std::allocator_arg, counting_allocator<char>(count)));
    EXPECT_EQ(count, 101);
}

TEST(task_sender, its_allocator_is_that_of_the_receiver) {
    struct counted {
        using allocator_type = counting_allocator<std::byte>;
    };
    int frames = 0, around = 0;
    const counting_allocator<std::byte> outer(around);
    auto child = [](std::allocator_arg_t,
                    counting_allocator<std::byte>) -> task<counting_allocator<std::byte>, counted> {
        co_return co_await ex::read_env(coppice::get_allocator);
    };
    auto parent = [&](std::allocator_arg_t a,
                      counting_allocator<std::byte> f) -> task<bool, counted> {
        const auto mine = co_await ex::read_env(coppice::get_allocator);
        co_return mine == outer && (co_await child(a, f)) == outer;
    };
    EXPECT_EQ(
        sync_wait(ex::write_env(parent(std::allocator_arg, counting_allocator<std::byte>(frames)),
                                ex::prop(coppice::get_allocator, counting_allocator<int>(around)))),
        std::tuple(true));
    EXPECT_EQ(frames, 202);
    EXPECT_EQ(around, 0);
}

TEST(task_sender, composes_with_the_algorithms) {
    auto number = [](int n) -> task<int> { co_return n; };
    EXPECT_EQ(sync_wait(ex::when_all(number(1), number(2))), std::tuple(1, 2));
    EXPECT_EQ(sync_wait(number(3) | ex::let_value([&](int n) { return number(n + 1); })),
              std::tuple(4));
}

task<int> one() {
    co_return 1;
}
task<long> deep(long n) {
    if (n == 0) co_return 0;
    co_return 1 + co_await deep(n - 1);
}
task<long> await_tasks(long n) {
    long sum = 0;
    for (long i = 0; i != n; ++i) sum += co_await one();
    co_return sum;
}
task<long> await_senders(long n) {
    long sum = 0;
    for (long i = 0; i != n; ++i) sum += co_await ex::just(1);
    co_return sum;
}
task<long> await_inline_schedules(long n) {
    for (long i = 0; i != n; ++i) co_await ex::schedule(ex::inline_scheduler());
    co_return n;
}

TEST(task_stack, a_million_ready_awaits_use_constant_stack) {
    EXPECT_EQ(sync_wait(await_tasks(1'000'000)), std::tuple(1'000'000L));
    EXPECT_EQ(sync_wait(await_senders(1'000'000)), std::tuple(1'000'000L));
    EXPECT_EQ(sync_wait(await_inline_schedules(1'000'000)), std::tuple(1'000'000L));
}

TEST(task_stack, recursion_of_100_000_levels_uses_constant_stack) {
    EXPECT_EQ(sync_wait(deep(100'000)), std::tuple(100'000L));
    auto stops = [](auto self, int n) -> task<> {
        if (n == 0) co_await ex::just_stopped();
        co_await self(self, n - 1);
    };
    EXPECT_EQ(sync_wait(stops(stops, 100'000)), std::nullopt);
}

}  // namespace
