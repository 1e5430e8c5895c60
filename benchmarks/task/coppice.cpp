// coppice's tasks and pool.
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/exec/sync_wait.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/task.hpp>

#include <memory>

namespace bench_task {

namespace {

using namespace coppice;
using namespace coppice::internal;

[[gnu::noinline]] task<std::uint64_t> child(std::uint64_t n) {
    co_return n;
}

task<std::uint64_t> parent(std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != size; ++i) sum += co_await child(i);
    co_return sum;
}

struct job : work_item {
    job() noexcept : work_item(&run_one) {}
    static void run_one(work_item* item) noexcept {
        job& self = *static_cast<job*>(item);
        self.ran = 1;
        self.jobs->one_less();
    }
    countdown* jobs = nullptr;
    std::uint64_t ran = 0;
};

}  // namespace

std::uint64_t await_coppice(std::size_t size) {
    return bench::hash().add(std::get<0>(*this_thread::sync_wait(parent(size)))).value();
}

std::uint64_t submit_coppice(std::size_t size) {
    static thread_pool pool(1);
    const std::unique_ptr<job[]> jobs(new job[size]);
    countdown left{static_cast<std::uint32_t>(size)};
    for (std::size_t i = 0; i != size; ++i) {
        jobs[i].jobs = &left;
        pool.submit(jobs[i]);
    }
    left.wait();
    std::uint64_t ran = 0;
    for (std::size_t i = 0; i != size; ++i) ran += jobs[i].ran;
    return bench::hash().add(ran).value();
}

std::uint64_t round_trip_coppice(std::size_t size) {
    static thread_pool pool(1);
    std::uint64_t ran = 0;
    for (std::size_t i = 0; i != size; ++i) ran += pool.run([] { return 1; });
    return bench::hash().add(ran).value();
}

}  // namespace bench_task
