// Channels at the ends of what they can be: capacities, items, deadlines, and what completions do.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/stop_token.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "channel_operation.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace ex = coppice::execution;

TEST(channel_extremes, a_capacity_beyond_all_memory_is_a_bad_alloc) {
    constexpr std::size_t max = std::numeric_limits<std::size_t>::max();
    for (volatile std::size_t capacity : {max, max - 1, max / 2 + 2}) {
        EXPECT_THROW(spsc_channel<int>{capacity}, std::bad_alloc);
        EXPECT_THROW(spsc_channel<char>{capacity}, std::bad_alloc);
        if (sanitized) continue;  // they stop at an allocation of that size
        EXPECT_THROW(channel<int>{capacity}, std::bad_alloc);
        EXPECT_THROW(broadcast_channel<int>{capacity}, std::bad_alloc);
        EXPECT_THROW(bounded_queue<int>{capacity}, std::bad_alloc);
    }
}

// An item whose operators mean something else, and that cannot be assigned.
struct unusual {
    explicit unusual(int n = 0) noexcept : number(n) {}
    unusual* operator&() const = delete;
    template <class T>
    void operator,(T&&) const = delete;
    const int number;
};

TEST(channel_extremes, items_may_have_operators_of_their_own) {
    auto use = []() -> task<int> {
        int sum = 0;
        channel<unusual> c(0);
        c.send(unusual(1), [](std::error_code) {});
        sum += (co_await c.receive())->number;
        spsc_channel<unusual> s(1);
        s.try_send(unusual(2));
        s.send(unusual(3), [](std::error_code) {});
        sum += (co_await s.receive())->number;
        unbounded_channel<unusual> u;
        u.send(unusual(4));
        sum += (co_await u.receive())->number;
        oneshot<unusual> o;
        o.send(unusual(5));
        sum += (co_await o.receive()).number;
        broadcast_channel<unusual> b(1);
        auto from = b.subscribe();
        b.send(unusual(6));
        sum += (co_await from.receive())->number;
        watch<unusual> w(unusual(7));
        w.set(unusual(8));
        sum += w.get().number;
        bounded_queue<unusual> q(1);
        co_await q.async_push(unusual(9));
        const auto got = co_await select(q.async_pop(), c.receive());
        co_return sum + std::get<0>(got)->number;
    };
    EXPECT_EQ(coppice::this_thread::sync_wait(use()), std::tuple(1 + 2 + 4 + 5 + 6 + 8 + 9));
}

// Calls f with each operation that has to wait, and expects that it takes nothing.
template <class F>
void each_wait(F f) {
    channel<int> c(0);
    f(c.receive());
    f(c.send(1));
    f(select(c.receive(), c.send(1)));
    std::vector<decltype(c.receive())> both;
    both.push_back(c.receive());
    both.push_back(c.receive());
    f(select_range(std::move(both)));
    EXPECT_EQ(c.try_receive(), std::nullopt);
    EXPECT_FALSE(c.try_send(1));
    spsc_channel<int> s(1);
    f(s.receive());
    s.try_send(1);
    f(s.send(2));
    f(select(s.send(2)));
    EXPECT_EQ(s.try_receive(), 1);
    EXPECT_EQ(s.try_receive(), std::nullopt);
    unbounded_channel<int> u;
    f(u.receive());
    oneshot<int> o;
    f(o.receive());
    f(select(o.receive(), u.receive()));
    u.send(1);
    o.send(1);
    EXPECT_EQ(u.try_receive(), 1);
    EXPECT_EQ(o.try_receive(), 1);
    broadcast_channel<std::string> b(1);
    auto from = b.subscribe();
    f(from.receive());
    watch<int> w(0);
    f(w.changed(0));
    f(select(w.changed(0), from.receive()));
    b.send("a");
    EXPECT_EQ(from.try_receive(), "a");
    bounded_queue<int> q(1);
    f(q.async_pop());
    q.push(1);
    f(q.async_push(2));
    f(select(q.async_push(2)));
    EXPECT_EQ(q.pop(), 1);
    EXPECT_FALSE(q.try_pop());
}

// Its environment has a deadline, or a stop token.
template <class Query, class Value>
struct receiver_with {
    using receiver_concept = ex::receiver_tag;
    std::function<void(channel_end)>* ended;
    Value value;
    void set_value(auto&&...) && noexcept { (*ended)(channel_end::value); }
    void set_error(auto&&) && noexcept { (*ended)(channel_end::error); }
    void set_stopped() && noexcept { (*ended)(channel_end::stopped); }
    auto get_env() const noexcept { return ex::prop(Query(), value); }
};

TEST(channel_extremes, a_deadline_in_the_past_stops_a_wait_and_nothing_was_taken) {
    using receiver = receiver_with<ex::get_deadline_t, ex::instant>;
    constexpr std::int64_t min = std::numeric_limits<std::int64_t>::min();
    for (const std::int64_t when : {min, min + 1, std::int64_t{-1}, std::int64_t{0}}) {
        each_wait([&](auto sender) {
            internal::atomic<channel_end> end{channel_end::pending};
            std::function<void(channel_end)> ended = [&](channel_end how) {
                end.store(how, internal::release);
            };
            auto op = ex::connect(std::move(sender), receiver{&ended, ex::instant(when)});
            ex::start(op);
            while (end.load(internal::acquire) == channel_end::pending) std::this_thread::yield();
            EXPECT_EQ(end.load(internal::relaxed), channel_end::stopped);
        });
    }
}

TEST(channel_extremes, the_completion_of_a_stopped_wait_destroys_its_operation) {
    using receiver = receiver_with<get_stop_token_t, inplace_stop_token>;
    each_wait([](auto sender) {
        struct kept {
            kept(decltype(sender)&& from, receiver r) : op(ex::connect(std::move(from), r)) {}
            decltype(ex::connect(std::move(sender), std::declval<receiver>())) op;
        };
        inplace_stop_source source;
        std::unique_ptr<kept> owner;
        std::function<void(channel_end)> ended = [&](channel_end how) {
            EXPECT_EQ(how, channel_end::stopped);
            owner.reset();
        };
        owner = std::make_unique<kept>(std::move(sender), receiver{&ended, source.get_token()});
        ex::start(owner->op);
        EXPECT_NE(owner, nullptr);
        source.request_stop();
        EXPECT_EQ(owner, nullptr);
    });
}

// Starts wait(object, callback), whose callback destroys the object; then calls grant(object).
template <class Object, class Wait, class Grant>
void destroyed_by_its_waiter(std::unique_ptr<Object> object, Wait wait, Grant grant) {
    bool done = false;
    wait(*object, [&](auto&&...) {
        object.reset();
        done = true;
    });
    EXPECT_FALSE(done);
    grant(*object);
    EXPECT_TRUE(done);
}

TEST(channel_extremes, the_callback_of_the_last_operation_destroys_the_channel) {
    const auto receive = [](auto& c, auto f) { c.receive(f); };
    const auto send = [](auto& c) { static_cast<void>(c.send("a")); };
    const auto close = [](auto& c) { c.close(); };
    using text = std::string;
    destroyed_by_its_waiter(std::make_unique<channel<text>>(1), receive,
                            [](auto& c) { EXPECT_TRUE(c.try_send("a")); });
    destroyed_by_its_waiter(std::make_unique<channel<text>>(0), receive, close);
    destroyed_by_its_waiter(
        std::make_unique<channel<text>>(0), [](auto& c, auto f) { c.send("a", f); },
        [](auto& c) { EXPECT_EQ(c.try_receive(), "a"); });
    destroyed_by_its_waiter(
        std::make_unique<channel<text>>(0), [](auto& c, auto f) { c.send("a", f); }, close);
    destroyed_by_its_waiter(std::make_unique<unbounded_channel<text>>(), receive, send);
    destroyed_by_its_waiter(std::make_unique<unbounded_channel<text>>(), receive, close);
    destroyed_by_its_waiter(std::make_unique<oneshot<text>>(), receive, send);
    destroyed_by_its_waiter(std::make_unique<oneshot<text>>(), receive, close);
    destroyed_by_its_waiter(
        std::make_unique<watch<text>>("a"), [](auto& w, auto f) { w.changed(0, f); },
        [](auto& w) { w.set("b"); });
    struct tower {
        broadcast_channel<text> channel{1};
        broadcast_channel<text>::receiver receiver = channel.subscribe();
    };
    const auto listen = [](tower& t, auto f) { t.receiver.receive(f); };
    destroyed_by_its_waiter(std::make_unique<tower>(), listen,
                            [](tower& t) { t.channel.send("a"); });
    destroyed_by_its_waiter(std::make_unique<tower>(), listen, [](tower& t) { t.channel.close(); });
}

// Slots are used again lap by lap, whatever their number is, with and without waiting senders.
TEST(channel_extremes, slots_of_any_number_keep_the_order_over_many_laps) {
    for (std::size_t capacity = 1; capacity != 10; ++capacity) {
        channel<std::unique_ptr<int>> c(capacity);
        int sent = 0, received = 0;
        const auto receive = [&] {
            const auto got = c.try_receive();
            ASSERT_TRUE(got.has_value());
            EXPECT_EQ(**got, received++);
        };
        for (int round = 0; round != 100; ++round) {
            const int count = round * 7 % (static_cast<int>(capacity) + 3);
            for (int n = 0; n != count; ++n) {
                auto item = std::make_unique<int>(sent);
                const bool has_room = c.size() != capacity;
                EXPECT_EQ(c.try_send(std::move(item)), has_room);
                EXPECT_EQ(item == nullptr, has_room);  // else it is untouched
                if (has_room) {
                    ++sent;
                } else {  // waits behind the slots
                    c.send(std::make_unique<int>(sent++), [](std::error_code) {});
                    receive();
                }
                EXPECT_EQ(c.size(), static_cast<std::size_t>(sent - received));
            }
            for (int n = round * 5 % 4; n != 0 && received != sent; --n) receive();
        }
        while (received != sent) receive();
        EXPECT_EQ(c.size(), 0u);
        EXPECT_FALSE(c.try_receive().has_value());
    }
}

TEST(channel_extremes, a_channel_that_ends_destroys_the_items_in_its_slots_and_no_others) {
    for (std::size_t capacity = 1; capacity != 6; ++capacity) {
        for (std::size_t first = 0; first != 2 * capacity; ++first) {
            for (std::size_t left = 0; left <= capacity; ++left) {
                const auto shared = std::make_shared<int>(1);
                {
                    channel<std::shared_ptr<int>> c(capacity);
                    for (std::size_t n = 0; n != first; ++n) {
                        EXPECT_TRUE(c.try_send(std::shared_ptr<int>(shared)));
                        EXPECT_TRUE(c.try_receive().has_value());
                    }
                    for (std::size_t n = 0; n != left; ++n) {
                        EXPECT_TRUE(c.try_send(std::shared_ptr<int>(shared)));
                    }
                    EXPECT_EQ(shared.use_count(), static_cast<long>(left) + 1);
                }
                EXPECT_EQ(shared.use_count(), 1);
            }
        }
    }
}

}  // namespace
