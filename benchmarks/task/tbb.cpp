// A rival: oneTBB's task_arena::enqueue from outside, and a round trip through a future.
#include "rivals.hpp"

#include "../harness.hpp"

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

namespace bench_task {

namespace {

using namespace coppice;
using namespace coppice::internal;

// An arena with one worker and no slot reserved for the submitter.
tbb::task_arena& arena() {
    static tbb::global_control threads(tbb::global_control::max_allowed_parallelism, 2);
    static tbb::task_arena one(1, 0);
    return one;
}

}  // namespace

std::uint64_t submit_tbb(std::size_t size) {
    atomic<std::uint64_t> ran{0};
    countdown left{static_cast<std::uint32_t>(size)};
    for (std::size_t i = 0; i != size; ++i) {
        arena().enqueue([&] {
            ran.store(ran.load(relaxed) + 1, relaxed);  // one worker
            left.one_less();
        });
    }
    left.wait();
    return bench::hash().add(ran.load(relaxed)).value();
}

std::uint64_t round_trip_tbb(std::size_t size) {
    std::uint64_t ran = 0;
    for (std::size_t i = 0; i != size; ++i) {
        countdown done{1};
        arena().enqueue([&] {
            ++ran;
            done.one_less();
        });
        done.wait();
    }
    return bench::hash().add(ran).value();
}

}  // namespace bench_task
