// Selects under stops that race their hand-over: each takes one thing or nothing.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/pool.hpp>
#include <coppice/sync.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include "channel_operation.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace ex = coppice::execution;
using nothing = std::monostate;
using item = std::optional<std::uint64_t>;

// What all threads have sent and received; each item has a number of its own.
struct account {
    internal::atomic<std::uint64_t> sent{0};
    internal::atomic<std::uint64_t> received{0};
    internal::atomic<std::uint64_t> sum_sent{0};
    internal::atomic<std::uint64_t> sum_received{0};
    void send(std::uint64_t number) {
        sent.fetch_add(1, internal::relaxed);
        sum_sent.fetch_add(number, internal::relaxed);
    }
    void receive(const item& got) {
        if (!got) return;
        received.fetch_add(1, internal::relaxed);
        sum_received.fetch_add(*got, internal::relaxed);
    }
    void expect_balance() const {
        EXPECT_EQ(sent.load(internal::relaxed), received.load(internal::relaxed));
        EXPECT_EQ(sum_sent.load(internal::relaxed), sum_received.load(internal::relaxed));
    }
};

struct random_bits {
    std::uint64_t state;
    unsigned next() {
        state = state * 6364136223846793005U + 1442695040888963407U;
        return static_cast<unsigned>(state >> 33);
    }
};

// Lets the operation wait for a moment, then stops it, perhaps as it is granted.
template <class Operation>
void run_and_stop(Operation& s, random_bits& random) {
    s.start();
    for (unsigned spins = random.next() % 256; spins != 0; --spins) s.how();
    if (random.next() % 8 == 0) std::this_thread::yield();
    s.stop();
    s.wait();
}

// Selects between a send to one channel and a receive from the other, in both directions, until
// `count` items were received by all threads together.
void send_or_receive(channel<std::uint64_t>& a, channel<std::uint64_t>& b, account& all,
                     std::uint64_t thread, std::uint64_t count) {
    random_bits random{thread};
    for (std::uint64_t i = 0; all.received.load(internal::relaxed) < count; ++i) {
        const std::uint64_t number = thread << 32 | i;
        channel<std::uint64_t>& to = random.next() % 2 == 0 ? a : b;
        channel<std::uint64_t>& from = random.next() % 2 == 0 ? a : b;  // perhaps the same
        auto s = operation_of<std::variant<nothing, item>>(
            coppice::select(to.send(number), from.receive()));
        run_and_stop(s, random);
        if (s.how() != channel_end::value) continue;
        if (s.value().index() == 0) {
            all.send(number);
        } else {
            all.receive(std::get<1>(s.value()));
        }
    }
}
// Sends and receives without a select.
void send_and_receive(channel<std::uint64_t>& a, channel<std::uint64_t>& b, account& all,
                      std::uint64_t thread, std::uint64_t count) {
    random_bits random{thread};
    for (std::uint64_t i = 0; all.received.load(internal::relaxed) < count; ++i) {
        channel<std::uint64_t>& c = random.next() % 2 == 0 ? a : b;
        if (random.next() % 2 == 0) {
            const std::uint64_t number = thread << 32 | i;
            auto s = operation_of<nothing>(c.send(number));
            run_and_stop(s, random);
            if (s.how() == channel_end::value) all.send(number);
        } else {
            auto r = operation_of<item>(c.receive());
            run_and_stop(r, random);
            if (r.how() == channel_end::value) all.receive(r.value());
        }
    }
}

void storm(std::size_t capacity, std::uint64_t selects, std::uint64_t plain, std::uint64_t count) {
    channel<std::uint64_t> a(capacity);
    channel<std::uint64_t> b(capacity);
    account all;
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i != selects; ++i)
        threads.emplace_back([&, i] { send_or_receive(a, b, all, 1 + i, count); });
    for (std::uint64_t i = 0; i != plain; ++i)
        threads.emplace_back([&, i] { send_and_receive(a, b, all, 100 + i, count); });
    for (std::thread& thread : threads) thread.join();
    while (const item left = a.try_receive()) all.receive(left);
    while (const item left = b.try_receive()) all.receive(left);
    all.expect_balance();
}

TEST(select_storm, two_threads_conserve_items) {
    for (const std::size_t capacity : {0u, 1u, 3u}) storm(capacity, 2, 0, 10'000);
}

TEST(select_storm, four_threads_conserve_items) {
    for (const std::size_t capacity : {0u, 1u, 3u}) storm(capacity, 4, 0, 5000);
}

TEST(select_storm, selects_and_plain_operations_conserve_items) {
    for (const std::size_t capacity : {0u, 1u}) storm(capacity, 2, 2, 5000);
}

TEST(select_storm, locks_are_held_by_one_at_a_time) {
    async_mutex a;
    async_mutex b;
    int guarded_by_a = 0;
    int guarded_by_b = 0;
    internal::atomic<int> taken{0};
    std::vector<std::thread> threads;
    for (std::uint64_t i = 0; i != 4; ++i) {
        threads.emplace_back([&, i] {
            random_bits random{i};
            while (taken.load(internal::relaxed) < 20'000) {
                auto s = operation_of<std::variant<async_mutex::guard, async_mutex::guard>>(
                    coppice::select(a.lock(), b.lock()));
                run_and_stop(s, random);
                if (s.how() != channel_end::value) continue;
                ++(s.value().index() == 0 ? guarded_by_a : guarded_by_b);
                taken.fetch_add(1, internal::relaxed);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(guarded_by_a + guarded_by_b, taken.load(internal::relaxed));
    EXPECT_TRUE(a.try_lock());
    EXPECT_TRUE(b.try_lock());
}

// The value of the other sender may be lost, so only the items of the branch of the room count.
TEST(select_storm, another_sender_that_ends_the_select_takes_nothing_from_the_channel) {
    channel<std::uint64_t> a(0);
    channel<int> other(0);
    account all;
    internal::atomic<bool> done{false};
    std::thread sending([&] {
        random_bits random{1};
        for (std::uint64_t i = 0; all.received.load(internal::relaxed) < 300; ++i) {
            auto s = operation_of<nothing>(a.send(std::uint64_t(i)));
            run_and_stop(s, random);
            if (s.how() == channel_end::value) all.send(i);
        }
        done.store(true, internal::relaxed);
    });
    std::thread disturbing([&] {
        while (!done.load(internal::relaxed)) other.try_send(1);
    });
    random_bits random{2};
    while (!done.load(internal::relaxed)) {
        auto s = operation_of<std::variant<item, int>>(coppice::select(
            a.receive(), other.receive() | ex::then([](std::optional<int> got) { return *got; })));
        run_and_stop(s, random);
        if (s.how() == channel_end::value && s.value().index() == 0)
            all.receive(std::get<0>(s.value()));
    }
    sending.join();
    disturbing.join();
    all.expect_balance();
}

TEST(select_storm, the_thread_that_is_granted_destroys_the_channels) {
    for (int round = 0; round != 500; ++round) {
        auto* const a = new channel<std::uint64_t>(0);
        auto* const b = new channel<std::uint64_t>(0);
        std::thread sender([=] {
            while (!(round % 2 == 0 ? a : b)->try_send(7)) std::this_thread::yield();
        });
        {
            auto s =
                operation_of<std::variant<item, item>>(coppice::select(a->receive(), b->receive()));
            s.start();
            s.wait();
            EXPECT_EQ(s.value().index(), static_cast<std::size_t>(round % 2));
        }
        sender.join();
        delete a;
        delete b;
    }
}

// As above, but the objects are destroyed while the sender is still inside try_send().
TEST(select_storm, the_callback_of_the_grant_destroys_the_channels) {
    struct receiver {
        using receiver_concept = ex::receiver_tag;
        channel<std::uint64_t>* a;
        channel<std::uint64_t>* b;
        internal::atomic<int>* ended;
        void set_value(std::variant<item, item>) && noexcept {
            delete a;
            delete b;
            ended->store(1, internal::release);
        }
        void set_error(std::error_code) && noexcept {}
        void set_stopped() && noexcept {}
    };
    for (int round = 0; round != 500; ++round) {
        auto* const a = new channel<std::uint64_t>(0);
        auto* const b = new channel<std::uint64_t>(0);
        internal::atomic<int> ended{0};
        auto s = ex::connect(coppice::select(a->receive(), b->receive()), receiver{a, b, &ended});
        std::thread starter([&] { ex::start(s); });
        if (round % 2 == 0) starter.join();
        std::thread sender([=] {
            auto send = operation_of<nothing>((round % 3 == 0 ? a : b)->send(7));
            send.start();
        });
        sender.join();
        if (starter.joinable()) starter.join();
        while (ended.load(internal::acquire) == 0) std::this_thread::yield();
    }
}

// Each side gives up when its timer is first. A timer that is a branch of the select takes nothing
// from an item that comes at the same moment.
TEST(select_storm, items_that_race_the_timers_of_selects_are_conserved) {
    using scheduler = decltype(std::declval<thread_pool&>().get_scheduler());
    struct stage {
        scheduler timers;
        channel<std::uint64_t> items;
        account numbers{};
    };
    auto send_all = [](stage& s, std::uint64_t first) -> task<> {
        for (std::uint64_t i = first; i != first + 1000; ++i) {
            const auto got = co_await coppice::select(
                s.items.send(i), s.timers.schedule_after(std::chrono::microseconds(i % 32)));
            if (got.index() == 0) s.numbers.send(i);
        }
    };
    auto close_after = [](stage& s, auto first, auto second) -> task<> {
        co_await ex::when_all(std::move(first), std::move(second));
        s.items.close();
    };
    auto receive_all = [](stage& s) -> task<> {
        for (unsigned i = 0;; ++i) {
            const auto got = co_await coppice::select(
                s.timers.schedule_after(std::chrono::microseconds(i % 32)), s.items.receive());
            if (got.index() == 0) continue;
            if (!std::get<1>(got)) co_return;
            s.numbers.receive(std::get<1>(got));
        }
    };
    for (const std::size_t capacity : {0u, 1u}) {
        thread_pool pool(2);
        stage s{pool.get_scheduler(), channel<std::uint64_t>(capacity)};
        const auto on_pool = [&](auto work) { return ex::starts_on(s.timers, std::move(work)); };
        coppice::this_thread::sync_wait(
            ex::when_all(on_pool(receive_all(s)), on_pool(receive_all(s)),
                         close_after(s, on_pool(send_all(s, 1)), on_pool(send_all(s, 10'000)))));
        s.numbers.expect_balance();
        EXPECT_EQ(s.items.size(), 0u);
    }
}

}  // namespace
