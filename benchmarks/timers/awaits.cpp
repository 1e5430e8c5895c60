// coppice: a timeout in a task on a pool, which arms a timer and stops it.
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/task.hpp>

#include <chrono>

namespace bench_timers {

namespace {

using namespace coppice;

task<std::uint64_t> turns(thread_pool& pool, std::size_t size, bool limited) {
    const auto sch = pool.get_scheduler();
    for (std::size_t i = 0; i != size; ++i) {
        if (limited) {
            co_await execution::timeout(execution::schedule(sch), std::chrono::seconds(1));
        } else {
            co_await execution::schedule(sch);
        }
    }
    co_return size;
}

}  // namespace

std::uint64_t await_turns(std::size_t size, bool limited) {
    static thread_pool pool(1);
    const auto [done] = *this_thread::sync_wait(
        execution::starts_on(pool.get_scheduler(), turns(pool, size, limited)));
    return bench::hash().add(done).value();
}

}  // namespace bench_timers
