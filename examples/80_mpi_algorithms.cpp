// What is on top of messages: parts of any size, windows, a sort of what all processes have, a stop
// of all, and calls of functions in other processes.
// mpiexec -n 4 example_80_mpi_algorithms
// [top]
#include <coppice/execution.hpp>
#include <coppice/mpi.hpp>
#include <coppice/task.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <string>
#include <vector>

namespace ex = coppice::execution;
namespace mpi = coppice::mpi;
using coppice::task;
// [/top]

namespace {

// [parts]
// Every process gives as many numbers as its rank, and all get all.
task<std::size_t> counts_of_last(const mpi::communicator& world) {
    const std::vector<int> mine(static_cast<std::size_t>(world.rank()), world.rank());
    mpi::parted<int> all;
    co_await mpi::all_gather_v(world, mine, all);
    const std::span<const int> of_last = all.part(world.size() - 1);
    co_return of_last.size();
}
// [/parts]

// [window]
// Every process puts its rank where its neighbor reads it.
task<int> exchange(const mpi::communicator& world, mpi::window<int>& edges) {
    const std::array<int, 1> mine{world.rank()};
    const int next = (world.rank() + 1) % world.size();
    co_await mpi::put(edges, mine, next, 0);
    co_await mpi::fence(edges);  // all have put, and all see it
    co_return edges.local()[0];
}
// [/window]

// [algorithms]
task<std::uint64_t> compute(const mpi::communicator& world, std::vector<int>& numbers) {
    co_await mpi::sort(world, numbers);
    co_return co_await mpi::map_reduce(
        world, 1000, std::uint64_t{0}, [](std::size_t i) { return std::uint64_t{i} * i; },
        [](std::uint64_t a, std::uint64_t b) { return a + b; });
}
// [/algorithms]

// [remote]
std::string greeting(const std::string& name, int times) {
    std::string text;
    for (int i = 0; i != times; ++i) text += "hello " + name + "; ";
    return text;
}
using functions = mpi::remote_functions<&greeting>;

task<std::string> ask_last(const mpi::communicator& world, functions& calls) {
    co_return co_await mpi::remote<&greeting>(calls, world.size() - 1, "rank 0", 2);
}
// [/remote]

std::atomic<int> noted{0};  // at rank 0

// [report]
void note(int) {
    noted.fetch_add(1);
}
using reporters = mpi::remote_functions<&note>;

// Halves numbers, and tells rank 0 of each. The function does not wait for that, since it would
// hold its worker. The caller joins the scope after the run.
task<> halve(mpi::work_sharing<int>& work, reporters& to, ex::counting_scope& reports) {
    return work.run([&to, &reports](int n, mpi::work_found<int>& found) {
        if (n > 1) {
            found.add(n / 2);
            found.add(n - n / 2);
        }
        ex::spawn(mpi::remote<&note>(to, 0, n) |
                      ex::upon_error([](const std::exception_ptr&) noexcept {}),
                  reports.get_token());
    });
}
// [/report]

// [stop]
// Each process tries numbers of its own, until one of all has found a divisor.
std::uint64_t divisor_of(std::uint64_t n, const mpi::communicator& world) {
    mpi::stop_source stop(world);
    const auto step = static_cast<std::uint64_t>(world.size());
    std::array<std::uint64_t, 1> found{0};
    for (std::uint64_t d = 2 + static_cast<std::uint64_t>(world.rank());
         d < n && !stop.stop_requested(); d += step) {
        if (n % d == 0) {
            found[0] = d;
            stop.request_stop();
        }
    }
    mpi::all_reduce(world, found, found, mpi::reduction::maximum, coppice::block);
    return found[0];
}
// [/stop]

template <class T>
T result_of(task<T> work) {
    return std::get<0>(coppice::this_thread::sync_wait(std::move(work)).value());
}

}  // namespace

int main() {
    mpi::environment environment;
    const mpi::communicator& world = environment.world();
    mpi::window<int> edges(world, 1);
    functions calls(world);
    reporters to_first(world);
    mpi::work_sharing<int> work(world);
    const bool all_there =
        result_of(counts_of_last(world)) == static_cast<std::size_t>(world.size() - 1);
    const int previous = (world.rank() + world.size() - 1) % world.size();
    const bool has_put = result_of(exchange(world, edges)) == previous;
    std::vector<int> numbers{7, 1, 5, 3};
    const std::uint64_t sum = result_of(compute(world, numbers));
    constexpr std::uint64_t product = std::uint64_t{999983} * 1000003;
    const std::uint64_t divisor = divisor_of(product, world);
    const bool divides = divisor > 1 && product % divisor == 0;
    if (world.rank() == 0) work.add(100);
    ex::counting_scope reports;
    coppice::this_thread::sync_wait(halve(work, to_first, reports));
    coppice::this_thread::sync_wait(reports.join());
    mpi::barrier(world, coppice::block);
    if (world.rank() != 0) return 0;
    std::printf("parts %s, window %s\n", all_there ? "there" : "lost", has_put ? "right" : "wrong");
    std::printf("the least number is %d, the sum of squares is %llu\n", numbers.front(),
                static_cast<unsigned long long>(sum));
    std::printf("a divisor is found: %s\n", divides ? "yes" : "no");
    std::printf("halving 100 to ones gives %d reports\n", noted.load());
    std::printf("%s\n", result_of(ask_last(world, calls)).c_str());
}
