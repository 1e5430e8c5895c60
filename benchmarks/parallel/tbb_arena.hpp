// The threads of oneTBB, which libstdc++'s parallel algorithms use too.
#pragma once

#include <tbb/global_control.h>
#include <tbb/task_arena.h>

#include <cstddef>
#include <memory>

namespace bench_parallel {

// Returns an arena of that many threads. It is kept until another number is asked for.
inline tbb::task_arena& arena(std::size_t threads) {
    static std::unique_ptr<tbb::global_control> limit;
    static std::unique_ptr<tbb::task_arena> kept;
    if (kept == nullptr || static_cast<std::size_t>(kept->max_concurrency()) != threads) {
        kept.reset();
        limit = std::make_unique<tbb::global_control>(tbb::global_control::max_allowed_parallelism,
                                                      threads);
        kept = std::make_unique<tbb::task_arena>(static_cast<int>(threads), 1);
    }
    return *kept;
}

}  // namespace bench_parallel
