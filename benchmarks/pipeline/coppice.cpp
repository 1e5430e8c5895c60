// coppice: parallel::pipeline on a thread_pool.
#include "rivals.hpp"

#include <coppice/parallel/pipeline.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <map>
#include <optional>

namespace bench_pipeline {

namespace {

namespace parallel = coppice::parallel;

coppice::thread_pool& pool(std::size_t threads) {
    static std::map<std::size_t, coppice::thread_pool> kept;
    return kept.try_emplace(threads, threads).first->second;
}

template <class Kind>
std::uint64_t run(const work& w, std::size_t size, Kind last) {
    std::uint64_t sum = 0;
    parallel::pipeline(
        parallel::on(pool(w.threads)), w.slots,
        [next = std::size_t{0}, size]() mutable -> std::optional<std::uint64_t> {
            if (next == size) return std::nullopt;
            return next++;
        },
        parallel::stage(parallel::concurrent,
                        [steps = w.steps](std::uint64_t x) { return compute(x, steps); }),
        parallel::stage(last, [&sum](std::uint64_t x) { sum += x; }));
    return sum;
}

}  // namespace

std::uint64_t run_coppice(const work& w, std::size_t size) {
    return w.in_order ? run(w, size, parallel::serial_in_order) : run(w, size, parallel::serial);
}

}  // namespace bench_pipeline
