// The pool on which coppice's algorithms are measured.
#pragma once

#include <coppice/pool/thread_pool.hpp>

#include <cstddef>
#include <memory>

namespace bench_parallel {

// Returns a pool of that many workers. It is kept until another number is asked for.
inline coppice::thread_pool& pool(std::size_t threads) {
    static std::unique_ptr<coppice::thread_pool> kept;
    if (kept == nullptr || kept->size() != threads) {
        kept.reset();
        kept = std::make_unique<coppice::thread_pool>(threads);
    }
    return *kept;
}

}  // namespace bench_parallel
