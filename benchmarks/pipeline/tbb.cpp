// oneTBB: parallel_pipeline in an arena.
#include "rivals.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include <memory>

namespace bench_pipeline {

namespace {

tbb::task_arena& arena(std::size_t threads) {
    static std::unique_ptr<tbb::global_control> limit;
    static std::unique_ptr<tbb::task_arena> kept;
    if (kept == nullptr || static_cast<std::size_t>(kept->max_concurrency()) != threads) {
        limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                      threads + 1);
        kept = std::make_unique<tbb::task_arena>(static_cast<int>(threads), 1);
    }
    return *kept;
}

}  // namespace

std::uint64_t run_tbb(const work& w, std::size_t size) {
    std::uint64_t sum = 0;
    std::size_t next = 0;
    const auto source = [&next, size](tbb::flow_control& control) -> std::uint64_t {
        if (next == size) {
            control.stop();
            return 0;
        }
        return next++;
    };
    arena(w.threads).execute([&] {
        tbb::parallel_pipeline(
            w.slots,
            tbb::make_filter<void, std::uint64_t>(tbb::filter_mode::serial_in_order, source) &
                tbb::make_filter<std::uint64_t, std::uint64_t>(
                    tbb::filter_mode::parallel,
                    [&w](std::uint64_t x) { return compute(x, w.steps); }) &
                tbb::make_filter<std::uint64_t, void>(w.in_order
                                                          ? tbb::filter_mode::serial_in_order
                                                          : tbb::filter_mode::serial_out_of_order,
                                                      [&sum](std::uint64_t x) { sum += x; }));
    });
    return sum;
}

}  // namespace bench_pipeline
