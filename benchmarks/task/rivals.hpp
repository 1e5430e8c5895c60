// The rivals of the task benchmark; each function does its work `size` times and hashes the result.
#pragma once

#include <coppice/base/internal/futex.hpp>

#include <cstddef>
#include <cstdint>

namespace bench_task {

// The submitting thread waits on it. The last job to count down wakes that thread.
struct countdown {
    coppice::internal::atomic<std::uint32_t> left;
    void one_less() {
        // The release sequence of the decrements carries every job to the waiter.
        if (left.fetch_sub(1, coppice::internal::acq_rel) == 1)
            coppice::internal::futex_wake_one(left);
    }
    void wait() {
        for (std::uint32_t n; (n = left.load(coppice::internal::acquire)) != 0;) {
            coppice::internal::futex_wait(left, n);
        }
    }
};

// A task awaits a child that returns a number, `size` times.
std::uint64_t await_coppice(std::size_t size);
std::uint64_t await_malloc(std::size_t size);  // the same lazy task, its frames from malloc

// A coroutine yields `size` numbers, one at a time, to a loop.
std::uint64_t generate_by_hand(std::size_t size);  // by resume() and a field of the promise
std::uint64_t generate_coppice(std::size_t size);
std::uint64_t generate_deep_coppice(std::size_t size);   // nested in 1,000 elements_of
std::uint64_t generate_async_coppice(std::size_t size);  // to a task

// A thread submits `size` empty jobs to a pool with one worker and waits for the last.
std::uint64_t submit_coppice(std::size_t size);
std::uint64_t submit_tbb(std::size_t size);

// A thread submits a job to a pool with one worker and waits for it, `size` times.
std::uint64_t round_trip_coppice(std::size_t size);
std::uint64_t round_trip_tbb(std::size_t size);

}  // namespace bench_task
