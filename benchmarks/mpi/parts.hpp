// The parts of bench_mpi. Each is a job of its own, and the processes of the job call it together.
#pragma once

#include "../harness.hpp"

#include <coppice/execution.hpp>
#include <coppice/mpi/environment.hpp>
#include <coppice/task.hpp>
#include <coppice/token/block_latch.hpp>

#include <exception>

namespace bench_mpi {

// Runs the task on the environment's thread: it has no scheduler to come back to, so that it
// continues where its operations complete. Blocks: until the task has ended.
inline void run_on_environment(coppice::task<> work) {
    coppice::block_latch done;
    coppice::execution::counting_scope scope;
    coppice::execution::spawn(
        std::move(work) | coppice::execution::then([&done]() noexcept { done.set(); }),
        scope.get_token(), [](const std::exception_ptr&) noexcept { std::terminate(); });
    done.wait();
    coppice::this_thread::sync_wait(scope.join());
}

// Prints a figure, and writes it for --json.
inline void print(const bench::options& o, const bench::record& r) {
    std::printf("  %-34s %14.2f  (%.2f to %.2f)\n", r.rival.c_str(), r.value, r.low, r.high);
    std::fflush(stdout);
    bench::write(o, r);
}

// Each returns the exit status of the process. The figures are those of rank 0.
int run_ping_pong(const coppice::mpi::communicator& world, const bench::options& o);
int run_halo(const coppice::mpi::communicator& world, const bench::options& o);
int run_sort(const coppice::mpi::communicator& world, const bench::options& o);
int run_search(const coppice::mpi::communicator& world, const bench::options& o);
int run_model(const coppice::mpi::communicator& world, const bench::options& o);

}  // namespace bench_mpi
