// coppice: fork_join, tasks and loops on a thread_pool.
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/base/internal/futex.hpp>
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/pool/parallel.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include <map>
#include <thread>

namespace bench_pool {

namespace {

using namespace coppice;
using namespace coppice::internal;

thread_pool& pool(std::size_t threads) {
    static std::map<std::size_t, thread_pool> kept;
    return kept.try_emplace(threads, threads).first->second;
}

template <class T>
T run_task(std::size_t threads, task<T> t) {
    return std::get<0>(
        *this_thread::sync_wait(execution::starts_on(pool(threads).get_scheduler(), std::move(t))));
}

[[gnu::noinline]] std::uint64_t plain_fib(std::uint64_t n) {
    return n < 2 ? n : plain_fib(n - 1) + plain_fib(n - 2);
}
// Keeps the compiler from turning the second call into a loop.
[[gnu::noinline]] std::uint64_t fib_of_calls(std::uint64_t n) {
    if (n < 2) return n;
    const std::uint64_t a = fib_of_calls(n - 1);
    std::uint64_t b = fib_of_calls(n - 2);
    asm("" : "+r"(b));
    return a + b;
}
std::uint64_t forked_fib(std::uint64_t n) {
    if (n < 2) return n;
    const auto [a, b] =
        fork_join([n] { return forked_fib(n - 1); }, [n] { return forked_fib(n - 2); });
    return a + b;
}
task<std::uint64_t> task_fib(std::uint64_t n) {
    if (n < 2) co_return n;
    const auto [a, b] = co_await wait_for_tasks(task_fib(n - 1), task_fib(n - 2));
    co_return a + b;
}

std::uint64_t skynet(std::uint64_t first, std::uint64_t size) {
    if (size == 1) return first;
    const std::uint64_t part = size / 10;
    const auto child = [&](std::uint64_t i) {
        return [first, part, i] { return skynet(first + i * part, part); };
    };
    const auto sums = fork_join(child(0), child(1), child(2), child(3), child(4), child(5),
                                child(6), child(7), child(8), child(9));
    return std::apply([](auto... each) { return (each + ...); }, sums);
}
task<std::uint64_t> task_skynet(std::uint64_t first, std::uint64_t size) {
    if (size == 1) co_return first;
    const std::uint64_t part = size / 10;
    const auto child = [&](std::uint64_t i) { return task_skynet(first + i * part, part); };
    const auto sums = co_await wait_for_tasks(child(0), child(1), child(2), child(3), child(4),
                                              child(5), child(6), child(7), child(8), child(9));
    co_return std::apply([](auto... each) { return (each + ...); }, sums);
}

std::uint64_t queens(const board& b, unsigned size) {
    if (b.rest == 0) return 1;
    return parallel_reduce(
        0u, size, std::uint64_t{0},
        [&b, size](unsigned column) {
            return b.attacks(column) ? 0 : queens(b.place(column), size);
        },
        [](std::uint64_t x, std::uint64_t y) { return x + y; });
}

struct countdown {
    atomic<std::uint32_t> left;
    void one_less() {
        // The release sequence of the decrements publishes every job to the waiter.
        if (left.fetch_sub(1, acq_rel) == 1) futex_wake_one(left);
    }
    void wait() {
        for (std::uint32_t n; (n = left.load(acquire)) != 0;) futex_wait(left, n);
    }
};
struct job : work_item {
    job() noexcept : work_item(&run_one) {}
    static void run_one(work_item* item) noexcept { static_cast<job*>(item)->jobs->one_less(); }
    countdown* jobs = nullptr;
};

}  // namespace

std::uint64_t fib_serial(std::size_t, std::size_t size) {
    return plain_fib(size);
}
std::uint64_t fib_serial_on_worker(std::size_t, std::size_t size) {
    return pool(1).run([size] { return plain_fib(size); });
}
std::uint64_t fib_all_calls(std::size_t threads, std::size_t size) {
    std::vector<std::thread> beside;
    for (std::size_t i = 1; i != threads; ++i) {
        beside.emplace_back([size] { bench::keep(fib_of_calls(size)); });
    }
    const std::uint64_t result = pool(1).run([size] { return fib_of_calls(size); });
    for (std::thread& each : beside) each.join();
    return result;
}
std::uint64_t fib_fork_join(std::size_t threads, std::size_t size) {
    return pool(threads).run([size] { return forked_fib(size); });
}
std::uint64_t fib_tasks(std::size_t threads, std::size_t size) {
    return run_task(threads, task_fib(size));
}
std::uint64_t matmul_coppice(std::size_t threads, std::size_t size) {
    matrices& m = matrices::of(size);
    // Computes the sum on a worker that took part, as in the rivals, whose calling thread takes
    // part.
    return pool(threads).run([&] {
        parallel_for(std::size_t{0}, size, [&](std::size_t i) { m.row(i); });
        return m.sum();
    });
}
std::uint64_t skynet_fork_join(std::size_t threads, std::size_t size) {
    return pool(threads).run([size] { return skynet(0, size); });
}
std::uint64_t skynet_tasks(std::size_t threads, std::size_t size) {
    return run_task(threads, task_skynet(0, size));
}
std::uint64_t queens_coppice(std::size_t threads, std::size_t size) {
    const unsigned n = static_cast<unsigned>(size);
    return pool(threads).run([n] { return queens({0, 0, 0, n}, n); });
}
std::uint64_t submit_coppice(std::size_t threads, std::size_t size) {
    thread_pool& workers = pool(threads);
    const std::unique_ptr<job[]> jobs(new job[size]);
    countdown left{static_cast<std::uint32_t>(size)};
    for (std::size_t i = 0; i != size; ++i) {
        jobs[i].jobs = &left;
        workers.submit(jobs[i]);
    }
    left.wait();
    return size;
}

namespace {

template <class Scheduler>
task<std::uint64_t> hop(Scheduler scheduler, std::size_t size) {
    for (std::size_t i = 0; i != size; ++i) co_await execution::schedule(scheduler);
    co_return size;
}

}  // namespace

std::uint64_t schedule_static(std::size_t threads, std::size_t size) {
    return run_task(threads, hop(pool(threads).get_scheduler(), size));
}
std::uint64_t schedule_dynamic(std::size_t threads, std::size_t size) {
    return run_task(threads, hop(execution::any_scheduler(pool(threads).get_scheduler()), size));
}

}  // namespace bench_pool
