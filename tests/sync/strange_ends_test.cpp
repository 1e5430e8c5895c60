// Operations whose receivers destroy them; with memory that runs out; and with stops and limits at
// any moment.
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/pool.hpp>
#include <coppice/stop_token.hpp>
#include <coppice/sync.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "allocations.hpp"
#include "channel_operation.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::this_thread::sync_wait;

// Its environment is a reference to one that lives elsewhere; it can only be moved, and has
// operators that nothing may call.
struct strange_env {
    inplace_stop_token token;
    const inplace_stop_token& query(get_stop_token_t) const noexcept { return token; }
    ex::instant query(ex::get_deadline_t) const noexcept { return ex::instant::never(); }
};
struct strange_receiver {
    using receiver_concept = ex::receiver_tag;
    explicit strange_receiver(std::function<void(channel_end)>& f, const strange_env& e) noexcept
        : ended(&f), env(&e) {}
    strange_receiver(strange_receiver&&) noexcept = default;
    strange_receiver(const strange_receiver&) = delete;
    void set_value(auto&&...) && noexcept { (*ended)(channel_end::value); }
    void set_error(auto&&) && noexcept { (*ended)(channel_end::error); }
    void set_stopped() && noexcept { (*ended)(channel_end::stopped); }
    const strange_env& get_env() const noexcept { return *env; }
    void operator&() const = delete;
    template <class T>
    void operator,(T&&) const = delete;
    std::function<void(channel_end)>* ended;
    const strange_env* env;
};

template <class Sender>
struct owned {
    owned(Sender&& from, std::function<void(channel_end)>& f, const strange_env& e)
        : op(ex::connect(std::move(from), strange_receiver(f, e))) {}
    decltype(ex::connect(std::declval<Sender>(), std::declval<strange_receiver>())) op;
};

// Starts the operation, whose end destroys it; then calls grant(), unless it has ended at its
// start. Expects that it ends with a value.
template <class Sender, class Grant>
void ends_and_destroys(Sender sender, Grant grant) {
    inplace_stop_source source;
    const strange_env env{source.get_token()};
    std::unique_ptr<owned<Sender>> owner;
    int ends = 0;
    std::function<void(channel_end)> ended = [&](channel_end how) {
        ++ends;
        EXPECT_EQ(how, channel_end::value);
        owner.reset();
    };
    owner = std::make_unique<owned<Sender>>(std::move(sender), ended, env);
    ex::start(owner->op);
    grant();
    EXPECT_EQ(ends, 1);
    EXPECT_EQ(owner, nullptr);
}

TEST(strange_receivers, destroy_the_operation_that_ends_with_a_value) {
    for (const bool waits : {false, true}) {
        const auto around = [waits](auto give, auto sender) {
            if (!waits) give();
            ends_and_destroys(std::move(sender), [&] {
                if (waits) give();
            });
        };
        channel<std::string> c(1);
        around([&] { c.try_send("a"); }, c.receive());
        around([&] { c.try_send("a"); }, select(c.receive()));
        std::vector<decltype(c.receive())> ops;
        ops.push_back(c.receive());
        around([&] { c.try_send("a"); }, select_range(std::move(ops)));
        spsc_channel<std::string> s(1);
        around([&] { s.try_send("a"); }, s.receive());
        around([&] { s.try_send("a"); }, select(c.receive(), s.receive()));
        s.try_send("full");
        around([&] { s.try_receive(); }, s.send("b"));
        around(
            [&] {
                s.try_receive();
                s.try_receive();
            },
            select(s.send("c"), c.receive()));
        broadcast_channel<std::string> b(2);
        auto from = b.subscribe();
        around([&] { b.send("a"); }, from.receive());
        around([&] { b.send("a"); }, select(from.receive(), c.receive()));
        watch<std::string> w("a");
        around([&] { w.set("b"); }, w.changed(w.version()));
        oneshot<std::string> o;
        around([&] { o.send("a"); }, o.receive());
        async_mutex m;
        auto held = m.try_lock();
        around([&] { held.reset(); }, m.lock());
        async_semaphore sem(0);
        around([&] { sem.release(); }, sem.acquire());
        around([&] { sem.release(); }, select(sem.acquire(), c.receive()));
        async_event e;
        around([&] { e.set(); }, e.wait());
        async_latch l(2);
        around([&] { l.count_down(); }, l.arrive_and_wait());
    }
}

// Calls f on a thread where the first, second, and so on allocation fails, until none does. check()
// is called after each, with true if f has thrown.
template <class F, class Check>
void with_failing_allocations(F f, Check check) {
    for (std::size_t n = 1; n != 10; ++n) {
        bool threw = false;
        bool failed = false;
        std::thread([&] {
            try {
                f();
            } catch (const std::bad_alloc&) {
                threw = true;
            }
        }).join();
        failed = allocation_has_failed();
        check(threw);
        if (!failed) return;
    }
}

TEST(failing_allocations, of_a_send_leave_nothing_behind) {
    if (!fail_allocation(1000)) GTEST_SKIP() << "a sanitizer owns operator new";
    allocation_has_failed();
    std::size_t n = 0;
    const auto arm = [&n] { fail_allocation(++n); };
    unbounded_channel<int> u;
    std::size_t sent = 0;
    arm();
    with_failing_allocations([&] { u.send(1); },
                             [&](bool threw) {
                                 sent += !threw;
                                 EXPECT_EQ(u.size(), sent);
                                 arm();
                             });
    broadcast_channel<std::string> b(4);
    auto from = b.subscribe();
    n = 0;
    arm();
    with_failing_allocations([&] { b.send("a text that lies in memory of its own"); },
                             [&](bool threw) {
                                 EXPECT_EQ(from.try_receive().has_value(), !threw);
                                 arm();
                             });
    watch<std::string> w("a");
    n = 0;
    arm();
    with_failing_allocations([&] { w.set("a text that lies in memory of its own"); },
                             [&, before = w.version()](bool threw) mutable {
                                 before += !threw;
                                 EXPECT_EQ(w.version(), before);
                                 arm();
                             });
    allocation_has_failed();
}

TEST(failing_allocations, of_a_token_leave_no_waiter) {
    if (!fail_allocation(1000)) GTEST_SKIP() << "a sanitizer owns operator new";
    allocation_has_failed();
    channel<int> c(0);
    std::size_t n = 0;
    const auto each = [&](auto begin) {
        n = 0;
        fail_allocation(++n);
        with_failing_allocations(begin, [&](bool threw) {
            if (threw) {
                EXPECT_FALSE(c.try_send(1)) << "a receiver was left";
                EXPECT_EQ(c.try_receive(), std::nullopt) << "a sender was left";
            }
            fail_allocation(++n);
        });
        allocation_has_failed();
        c.try_receive();  // ends what waits
        c.try_send(1);
    };
    each([&] { c.receive([](std::error_code, std::optional<int>) {}); });
    each([&] { c.send(1, [](std::error_code) {}); });
    each([&] { std::ignore = c.receive(use_future); });
    each([&] { std::ignore = c.send(1, use_future); });
    each([&] {
        std::vector<decltype(c.receive())> ops;
        ops.push_back(c.receive());
        ops.push_back(c.receive());
        auto s =
            operation_of<std::pair<std::size_t, std::optional<int>>>(select_range(std::move(ops)));
        s.start();
        s.stop();
    });
}

// A stop comes before, while, and after an operation starts that looks for a moment; what it did
// not take is still there.
TEST(looking, ends_with_an_item_or_a_stop_and_loses_nothing) {
    spsc_channel<int> s(1);
    int sent = 0;
    int received = 0;
    for (int round = 0; round != 400; ++round) {
        inplace_stop_source source;
        internal::atomic<int> phase{0};
        std::thread stopper([&] {
            while (phase.load(internal::acquire) == 0) std::this_thread::yield();
            for (int i = 0; i != round % 40; ++i) internal::spin_hint();
            source.request_stop();
        });
        if (round % 3 == 0 && s.try_send(int(sent))) ++sent;
        if (round % 5 == 0) source.request_stop();
        phase.store(1, internal::release);
        std::error_code error;
        const ex::prop env(get_stop_token, source.get_token());
        if (round % 2 == 0) {
            const auto got = s.receive(bind_env(env, block[error]));
            EXPECT_EQ(got.has_value(), !error);
            if (got) {
                EXPECT_EQ(*got, received++);
            }
        } else {
            channel<int> other(0);
            auto choose = [](spsc_channel<int>& from, channel<int>& no) -> task<int> {
                const auto got = co_await select(no.receive(), from.receive());
                co_return *std::get<1>(got);
            };
            const auto got = sync_wait(ex::write_env(choose(s, other), env));
            if (got) {
                EXPECT_EQ(std::get<0>(*got), received++);
            }
        }
        stopper.join();
        if (const auto left = s.try_receive()) {
            EXPECT_EQ(*left, received++);
        }
        EXPECT_EQ(sent, received);
    }
}

// A third thread destroys the channel when both sides have returned.
TEST(looking, is_over_when_a_third_thread_destroys_the_channel) {
    for (int round = 0; round != 300; ++round) {
        const auto capacity = static_cast<std::size_t>(1 + round % 2);
        auto* const s = new spsc_channel<int>(capacity);
        auto* const c = new channel<int>(capacity - 1);
        internal::atomic<int> returned{0};
        std::thread sender([&] {
            for (int i = 0; i != 3; ++i) s->send(i, block);
            for (int i = 0; i != 3; ++i) c->send(i, block);
            returned.fetch_add(1, internal::release);
        });
        std::thread receiver([&] {
            for (int i = 0; i != 3; ++i) EXPECT_EQ(s->receive(block), i);
            for (int i = 0; i != 3; ++i) EXPECT_EQ(c->receive(block), i);
            returned.fetch_add(1, internal::release);
        });
        while (returned.load(internal::acquire) != 2) std::this_thread::yield();
        delete s;
        delete c;
        sender.join();
        receiver.join();
    }
}

// A limit in time takes what came before it, or nothing.
TEST(limits, of_a_select_around_an_spsc_channel_take_an_item_or_nothing) {
    thread_pool pool(2);
    spsc_channel<int> s(4);
    auto send = [](spsc_channel<int>& to) -> task<> {
        for (int i = 0; i != 500; ++i) co_await to.send(i);
        to.close();
    };
    auto receive = [](spsc_channel<int>& from, thread_pool& p) -> task<int> {
        int next = 0;
        for (int i = 0;; ++i) {
            auto got = co_await select(
                p.get_scheduler().schedule_after(std::chrono::nanoseconds(i % 7 == 0 ? -1 : 1000)),
                from.receive());
            if (got.index() == 0) continue;
            if (!std::get<1>(got)) co_return next;
            EXPECT_EQ(*std::get<1>(got), next++);
        }
    };
    const auto [count] =
        *sync_wait(ex::when_all(ex::starts_on(pool.get_scheduler(), send(s)),
                                ex::starts_on(pool.get_scheduler(), receive(s, pool))));
    EXPECT_EQ(count, 500);
}

}  // namespace
