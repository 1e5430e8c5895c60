// One operation, awaited in every way on every scheduler, ended by itself, a stop, or a deadline.
#pragma once
// A way (callback, await, ...) is a test file; a place (pool, loop, ...) is one of the types below.
// compose() starts many timers in a place. It stops some before they start, while they start, or
// later, and gives some a deadline, at seeded times. Then it checks that each ended once, in the
// right place, for a reason that it had, and that nothing is left. Some timers wait so long that
// only their stop or their deadline can end them: the test hangs if either has no effect.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/pool.hpp>
#include <coppice/stop_token.hpp>

#include <coppice/io/context.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/token.hpp>

#include "allocations.hpp"
#include "sanitizers.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <latch>
#include <optional>
#include <random>
#include <thread>

namespace coppice::test {

using namespace coppice::internal;

namespace ex = coppice::execution;

// A loop with the timers, on a thread of its own.
class clock_loop : immovable {
public:
    io::context& loop() noexcept { return loop_; }
    bool is_here() const noexcept { return loop_.is_current(); }
    ~clock_loop() {
        guard_.reset();
        runner_.join();
    }

private:
    io::context loop_;
    std::optional<io::context::work_guard> guard_{std::in_place, loop_};
    std::thread runner_{[this] { loop_.run(); }};
};

// Places: a scheduler, and a check that the calling thread is one of its threads. `blocks` is true
// if its threads may wait for the timers' loop.
template <class Pool>
struct in_pool {
    static constexpr bool blocks = true;
    explicit in_pool(clock_loop&) {}
    auto scheduler() noexcept { return pool.get_scheduler(); }
    bool is_here() const noexcept { return pool.is_current(); }
    Pool pool{2};
};
struct in_context {
    static constexpr bool blocks = false;
    explicit in_context(clock_loop& c) noexcept : clock(&c) {}
    auto scheduler() noexcept { return clock->loop().get_scheduler(); }
    bool is_here() const noexcept { return clock->is_here(); }
    clock_loop* clock;
};
struct in_run_loop : immovable {
    static constexpr bool blocks = true;
    explicit in_run_loop(clock_loop&) {}
    ~in_run_loop() {
        loop.finish();
        runner.join();
    }
    auto scheduler() noexcept { return loop.get_scheduler(); }
    bool is_here() const noexcept { return std::this_thread::get_id() == runner.get_id(); }
    ex::run_loop loop;
    std::thread runner{[this] { loop.run(); }};
};
using all_places = testing::Types<in_pool<thread_pool>, in_pool<queue_pool<lockfree_queue>>,
                                  in_pool<contract_pool>, in_context, in_run_loop>;

// Counts its living copies, which lie in callables and frames, to show that none is left.
class mark {
public:
    mark() noexcept { living.fetch_add(1, relaxed); }
    mark(const mark&) noexcept { living.fetch_add(1, relaxed); }
    ~mark() { living.fetch_sub(1, relaxed); }
    static inline atomic<int> living{0};
};

enum class ended_by { value, stop, error };

// One operation and what may end it. Orders are relaxed: the latch and the joins order all else.
struct attempt : immovable {
    attempt(io::context& loop, std::latch& all, std::mt19937_64& random)
        : timer(loop), left(all), wait(random() % 1'500'000) {
        const auto kind = random() % 4;
        to_be_stopped = kind == 1 || kind == 3;
        if (kind == 2 || kind == 3) {
            deadline =
                ex::monotonic_now() + ex::time_span(std::chrono::nanoseconds(random() % 1'500'000));
        }
        ends_by_itself = kind == 0;
        never_by_itself = kind != 0 && random() % 2 == 0;
        if (never_by_itself) wait = std::chrono::hours(1);
    }
    auto env() const noexcept {
        return ex::env(ex::prop(get_stop_token, stop.get_token()),
                       ex::prop(ex::get_deadline, deadline));
    }
    // Called last by the operation.
    void end(ended_by how, bool in_its_place) noexcept {
        const bool for_no_reason = how == ended_by::stop ? ends_by_itself : never_by_itself;
        if (how == ended_by::error || for_no_reason) wrong.store(true, relaxed);
        if (!in_its_place) misplaced.store(true, relaxed);
        if (ends.fetch_add(1, relaxed) == 0) left.count_down();
    }
    void end(std::error_code ec, bool in_its_place) noexcept {
        end(!ec                                   ? ended_by::value
            : ec == std::errc::operation_canceled ? ended_by::stop
                                                  : ended_by::error,
            in_its_place);
    }

    io::timer timer;
    std::latch& left;
    inplace_stop_source stop;
    std::chrono::nanoseconds wait;
    ex::instant deadline = ex::instant::never();
    bool to_be_stopped = false;
    bool ends_by_itself = false;
    bool never_by_itself = false;
    atomic<bool> entered{false};  // set by a coroutine when its body begins
    atomic<int> ends{0};
    atomic<bool> wrong{false};
    atomic<bool> misplaced{false};
};

// Starts 40 operations of a seed on this thread, while another thread stops some of them.
template <class Place>
void compose_once(std::uint64_t seed, auto& start, auto& finish) {
    constexpr std::size_t operations = 40;
    std::mt19937_64 random(seed);
    std::deque<attempt> attempts;
    std::latch all(operations);
    {
        clock_loop clock;
        Place place(clock);
        while (attempts.size() != operations) attempts.emplace_back(clock.loop(), all, random);
        std::thread stopper([&, pauses = std::mt19937_64(seed)]() mutable {
            for (attempt& a : attempts) {
                if (!a.to_be_stopped) continue;
                const auto pause = std::chrono::nanoseconds(pauses() % 100'000);
                const auto until = ex::monotonic_now() + ex::time_span(pause);
                while (ex::monotonic_now() < until) std::this_thread::yield();
                a.stop.request_stop();
            }
        });
        for (attempt& a : attempts) start(place, a);
        finish();
        all.wait();
        stopper.join();
    }
    for (const attempt& a : attempts) {
        EXPECT_EQ(a.ends.load(relaxed), 1) << "seed " << seed;
        EXPECT_FALSE(a.wrong.load(relaxed)) << "seed " << seed;
        EXPECT_FALSE(a.misplaced.load(relaxed)) << "seed " << seed;
    }
}

// start(place, attempt) begins the operation. finish() is called when all have begun, before they
// are waited for.
template <class Place, class Start, class Finish>
void compose(Start start, Finish finish) {
    for (std::uint64_t seed = 1; seed != 6; ++seed) {
        const std::size_t memory = live_allocations();
        // On a thread of its own, whose free lists end with it.
        std::thread([&] { compose_once<Place>(seed, start, finish); }).join();
        EXPECT_EQ(mark::living.load(relaxed), 0) << "seed " << seed;
        // The first round allocates what the process keeps. The sanitizers' runtimes count their
        // own memory too, and report leaks at the end of the process.
        if (seed != 1 && !sanitized) {
            EXPECT_EQ(live_allocations(), memory) << "seed " << seed;
        }
    }
}
template <class Place, class Start>
void compose(Start start) {
    compose<Place>(start, [] {});
}

}  // namespace coppice::test
