// A broadcast receive whose item cannot be copied: each token gets the error, and nothing is taken.
// And operations of every type for which there is no memory.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/generator.hpp>
#include <coppice/pool.hpp>
#include <coppice/sync.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "allocations.hpp"
#include "detached.hpp"
#include "kinds.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <future>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;
using this_thread::sync_wait;
namespace ex = coppice::execution;

enum class failure { none, memory, system, other };

struct fragile {
    static inline failure next = failure::none;  // of the next copy

    explicit fragile(int n) noexcept : number(n) {}
    fragile(fragile&&) noexcept = default;
    fragile(const fragile& other) : number(other.number) {
        switch (std::exchange(next, failure::none)) {
            case failure::none:
                break;
            case failure::memory:
                throw std::bad_alloc();
            case failure::system:
                throw std::system_error(std::make_error_code(std::errc::io_error));
            case failure::other:
                throw std::runtime_error("no copy");
        }
    }
    ~fragile() = default;
    int number;
};
using item = std::optional<fragile>;

// A receiver, of which each receive may find the item there, or wait for it.
class failing_copies : public testing::TestWithParam<bool> {
protected:
    // Runs begin(), so that its copy fails, and sends the item before or after.
    template <class Begin>
    void receive_after(failure f, Begin begin) {
        if (!GetParam()) c.send(fragile(++sent));
        fragile::next = f;
        begin();
        if (GetParam()) c.send(fragile(++sent));
        EXPECT_EQ(fragile::next, failure::none) << "nothing was copied";
    }
    // The item whose copy failed is still the next one.
    void expect_nothing_taken() {
        const item got = from.try_receive();
        EXPECT_TRUE(got && got->number == sent);
        EXPECT_EQ(from.missed(), 0u);
    }

    broadcast_channel<fragile> c{2};
    broadcast_channel<fragile>::receiver from = c.subscribe();
    int sent = 0;
};
INSTANTIATE_TEST_SUITE_P(waits, failing_copies, testing::Bool());

TEST_P(failing_copies, a_callback_is_given_the_code_of_the_exception) {
    for (const auto& [thrown, expected] :
         {std::pair{failure::memory, std::errc::not_enough_memory},
          std::pair{failure::system, std::errc::io_error},
          std::pair{failure::other, std::errc::state_not_recoverable}}) {
        std::error_code error;
        int calls = 0;
        receive_after(thrown, [&] {
            from.receive([&](std::error_code ec, item got) {
                error = ec;
                ++calls;
                EXPECT_FALSE(got);
            });
        });
        EXPECT_EQ(error, expected);
        EXPECT_EQ(calls, 1);
        expect_nothing_taken();
    }
}

TEST_P(failing_copies, a_future_has_the_exception) {
    std::future<item> got;
    receive_after(failure::other, [&] { got = from.receive(use_future); });
    EXPECT_THROW(got.get(), std::runtime_error);
    expect_nothing_taken();
}

TEST(a_failing_copy, a_blocked_thread_gets_the_exception_or_its_code) {
    broadcast_channel<fragile> c(2);
    auto from = c.subscribe();
    c.send(fragile(1));
    fragile::next = failure::other;
    EXPECT_THROW(std::ignore = from.receive(block), std::runtime_error);
    fragile::next = failure::memory;
    std::error_code error;
    EXPECT_FALSE(from.receive(block[error]));
    EXPECT_EQ(error, std::errc::not_enough_memory);
    EXPECT_EQ(from.receive(block[error])->number, 1);
    EXPECT_FALSE(error);
}

TEST_P(failing_copies, a_coroutine_without_an_environment_gets_the_exception) {
    bool caught = false;
    auto await = [](broadcast_channel<fragile>::receiver& r, bool& told) -> detached {
        try {
            co_await r.receive();
        } catch (const std::runtime_error&) {
            told = true;
        }
    };
    receive_after(failure::other, [&] { await(from, caught); });
    EXPECT_TRUE(caught);
    expect_nothing_taken();
}

TEST_P(failing_copies, a_task_gets_the_exception_and_may_try_again) {
    int caught = 0;
    int got = 0;
    auto await = [](broadcast_channel<fragile>::receiver& r, int& failures, int& number) -> task<> {
        try {
            co_await r.receive();
        } catch (const std::runtime_error&) {
            ++failures;
        }
        number = (co_await r.receive())->number;
    };
    ex::counting_scope scope;
    const ex::prop in_place(ex::get_scheduler, ex::inline_scheduler());
    receive_after(failure::other, [&] {
        ex::spawn(await(from, caught, got) | ex::upon_error([](auto&&) noexcept { ADD_FAILURE(); }),
                  scope.get_token(), in_place);
    });
    EXPECT_EQ(caught, 1);
    EXPECT_EQ(got, sent);
    EXPECT_FALSE(from.try_receive());
    coppice::this_thread::sync_wait(scope.join());
}

TEST_P(failing_copies, a_task_that_stores_errors_gets_the_code) {
    std::error_code error;
    bool empty = false;
    auto await = [](broadcast_channel<fragile>::receiver& r, std::error_code& code,
                    bool& nothing) -> task<> { nothing = !co_await r.receive(use_await[code]); };
    auto choose = [](broadcast_channel<fragile>::receiver& r, std::error_code& code,
                     bool& nothing) -> task<> {
        const auto got = co_await select(r.receive(use_await[code]));
        nothing = !std::get<0>(got);
    };
    ex::counting_scope scope;
    const ex::prop in_place(ex::get_scheduler, ex::inline_scheduler());
    const auto run = [&](task<> work) {
        receive_after(failure::memory, [&] {
            ex::spawn(std::move(work) | ex::upon_error([](auto&&) noexcept { ADD_FAILURE(); }),
                      scope.get_token(), in_place);
        });
        EXPECT_EQ(error, std::errc::not_enough_memory);
        EXPECT_TRUE(empty);
        expect_nothing_taken();
        error.clear();
        empty = false;
    };
    run(await(from, error, empty));
    run(choose(from, error, empty));
    coppice::this_thread::sync_wait(scope.join());
}

// Keeps the error that it is sent.
struct keeper {
    using receiver_concept = ex::receiver_tag;
    std::error_code* code;
    std::exception_ptr* exception;
    template <class... Values>
    void set_value(Values&&...) && noexcept {
        ADD_FAILURE() << "it was copied";
    }
    void set_error(std::error_code error) && noexcept { *code = error; }
    void set_error(std::exception_ptr error) && noexcept { *exception = std::move(error); }
    void set_stopped() && noexcept {}
};

TEST_P(failing_copies, a_sender_sends_the_code) {
    std::error_code code;
    auto s = ex::connect(from.receive(), keeper{&code, nullptr});
    receive_after(failure::memory, [&] { ex::start(s); });
    EXPECT_EQ(code, std::errc::not_enough_memory);
    expect_nothing_taken();
}

TEST_P(failing_copies, a_select_that_is_a_sender_sends_the_exception) {
    std::error_code code;
    std::exception_ptr exception;
    channel<int> other(1);
    auto s = ex::connect(select(other.receive(), from.receive()), keeper{&code, &exception});
    receive_after(failure::other, [&] { ex::start(s); });
    ASSERT_TRUE(exception);
    EXPECT_THROW(std::rethrow_exception(exception), std::runtime_error);
    expect_nothing_taken();
    EXPECT_TRUE(other.try_send(1));  // and no waiter was left there
    EXPECT_EQ(other.size(), 1u);
}

TEST_P(failing_copies, a_select_of_a_range_that_is_a_sender_sends_the_exception) {
    std::error_code code;
    std::exception_ptr exception;
    std::vector<decltype(from.receive())> ops;
    ops.push_back(from.receive());
    auto s = ex::connect(select_range(std::move(ops)), keeper{&code, &exception});
    receive_after(failure::other, [&] { ex::start(s); });
    EXPECT_TRUE(exception);
    expect_nothing_taken();
}

// Runs it on new threads, whose frame pools are empty. The first, second, and so on allocation
// fails, until none does. Expects that it throws std::bad_alloc or does without the memory, as a
// frame pool does that keeps freed frames; and that nothing is left.
template <class F>
void expect_bad_alloc(const char* what, F run) {
    SCOPED_TRACE(what);
    std::thread(run).join();  // allocates what the process keeps
    int thrown = 0;
    bool failed = true;
    for (std::size_t n = 1; failed; ++n) {
        ASSERT_LT(n, 100u);
        const std::size_t before = live_allocations();
        bool threw = false;
        fail_allocation(n);
        std::thread([&] {
            try {
                run();
            } catch (const std::bad_alloc&) {
                threw = true;
            }
        }).join();
        failed = allocation_has_failed();
        const std::size_t after = live_allocations();
        EXPECT_EQ(after, before) << n;
        EXPECT_TRUE(failed || !threw) << n;
        thrown += threw;
    }
    EXPECT_GT(thrown, 0);
}
void meet(task<> first, task<> second) {
    EXPECT_TRUE(sync_wait(ex::when_all(std::move(first), std::move(second))));
}
task<> calls(auto f) {
    f();
    co_return;
}
task<> awaits(auto sender) {
    using result = decltype(sync_wait(std::move(sender)));
    if constexpr (std::is_same_v<result, std::optional<std::tuple<>>>) {
        co_await std::move(sender);
    } else {
        [[maybe_unused]] const auto got = co_await std::move(sender);
    }
}

template <class Kind>
class without_memory : public testing::Test {
protected:
    void SetUp() override {
        if (!fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    }
};
TYPED_TEST_SUITE(without_memory, all_kinds);

TYPED_TEST(without_memory, a_wait_throws_bad_alloc_and_leaves_nothing) {
    using kind = TypeParam;
    expect_bad_alloc("task", [] {
        kind k(1);
        meet(wait_in_task(k), calls([&k] { k.grant(); }));
    });
    expect_bad_alloc("future", [] {
        kind k(1);
        auto waits = k.wait(use_future);
        k.grant();
        waits.get();
    });
    expect_bad_alloc("callback", [] {
        kind k(1);
        k.wait([](std::error_code, auto&&...) {});
        k.grant();
    });
}

class each_without_memory : public without_memory<void> {};

TEST_F(each_without_memory, channel_and_select_throws_bad_alloc_and_leaves_nothing) {
    const auto pair = [](auto make) {
        return [make] {
            auto c = make();
            meet(awaits(c->receive()), awaits(c->send(1)));
        };
    };
    expect_bad_alloc("channel", pair([] { return std::make_unique<channel<int>>(2); }));
    expect_bad_alloc("rendezvous", pair([] { return std::make_unique<channel<int>>(0); }));
    expect_bad_alloc("spsc", pair([] { return std::make_unique<spsc_channel<int>>(1); }));
    const auto sent = [](auto make) {
        return [make] {
            auto c = make();
            meet(awaits(c->receive()), calls([&c] { c->send(1); }));
        };
    };
    expect_bad_alloc("unbounded", sent([] { return std::make_unique<unbounded_channel<int>>(); }));
    expect_bad_alloc("oneshot", sent([] { return std::make_unique<oneshot<int>>(); }));
    expect_bad_alloc("broadcast", [] {
        broadcast_channel<std::string> c(2);
        auto from = c.subscribe();
        const char* const text = "a text that lies in memory of its own";
        meet(awaits(from.receive()), calls([&] { c.send(text); }));
    });
    expect_bad_alloc("watch", [] {
        watch<int> w(1);
        meet(awaits(w.changed(w.version())), calls([&w] { w.set(2); }));
    });
    expect_bad_alloc("queue", [] {
        bounded_queue<int> q(1);
        meet(awaits(q.async_pop()), awaits(q.async_push(1)));
    });
    expect_bad_alloc("select", [] {
        channel<int> a(0);
        channel<int> b(0);
        meet(awaits(select(a.receive(), b.receive())), awaits(select(a.send(1), b.send(2))));
    });
}

task<> notified(async_mutex& mutex, async_condition& changed, bool& set) {
    auto guard = co_await mutex.lock();
    while (!set) co_await changed.wait(guard);
}
async_generator<int> two_elements() {
    co_yield 1;
    co_await ex::just();
    co_yield 2;
}
task<> takes_all(async_generator<int> g) {
    int sum = 0;
    while (const auto item = co_await g.next()) sum += *item;
    EXPECT_EQ(sum, 3);
}
generator<int> nested(int level) {
    if (level != 0) co_yield coppice::ranges::elements_of(nested(level - 1));
    co_yield level;
}
task<int> seven() {
    co_await ex::just();
    co_return 7;
}

TEST_F(each_without_memory, task_and_generator_throws_bad_alloc_and_leaves_nothing) {
    expect_bad_alloc("condition", [] {
        async_mutex mutex;
        async_condition changed;
        bool set = false;
        meet(notified(mutex, changed, set), calls([&] {
                 set = true;
                 changed.notify_all();
             }));
    });
    expect_bad_alloc("once", [] {
        async_once<int> once;
        meet(awaits(once.get(seven)), awaits(once.get(seven)));
    });
    expect_bad_alloc("shared_task", [] {
        const shared_task<int> shared(seven());
        meet(awaits(shared), awaits(shared));
    });
    expect_bad_alloc("async_generator",
                     [] { meet(takes_all(two_elements()), takes_all(two_elements())); });
    expect_bad_alloc("generator", [] {
        int sum = 0;
        for (const int i : nested(3)) sum += i;
        EXPECT_EQ(sum, 6);
    });
}

template <class Pool>
void wait_on_a_pool() {
    Pool pool(1);
    channel<int> none(0);
    const auto sch = pool.get_scheduler();
    auto limited = [](channel<int>& c) -> task<> {
        try {
            co_await ex::timeout(c.receive(), 1us);
        } catch (const std::system_error& error) {
            EXPECT_EQ(error.code(), std::errc::timed_out);
        }
    };
    meet(awaits(ex::schedule_after(sch, 1us)), calls([] {}));
    EXPECT_TRUE(sync_wait(ex::starts_on(sch, limited(none))));
}
TEST_F(each_without_memory, timer_on_a_pool_throws_bad_alloc_and_leaves_nothing) {
    expect_bad_alloc("thread_pool", wait_on_a_pool<thread_pool>);
    expect_bad_alloc("contract_pool", wait_on_a_pool<contract_pool>);
}

}  // namespace
