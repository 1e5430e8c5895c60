// The end of a select: its channels are destroyed at once, or its timer is first.
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

TEST(select_end, the_thread_that_is_granted_destroys_the_channels) {
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
TEST(select_end, the_callback_of_the_grant_destroys_the_channels) {
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
TEST(select_end, items_that_race_the_timers_of_selects_are_conserved) {
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
