// Halo exchange: the Jacobi method on a square, whose rows are divided between the processes. Each
// step exchanges the rows at the edges while the thread of the environment, or a worker, computes
// those that do not need them. The ideal is the computation without an exchange.
#include "parts.hpp"

#include <coppice/mpi/message.hpp>
#include <coppice/pool/default_pool.hpp>

#include <mpi.h>
#include <cstddef>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

namespace bench_mpi {

namespace {

namespace ex = coppice::execution;
namespace mpi = coppice::mpi;
using coppice::task;

// The rows of this process, 1 to `rows`, between copies of its neighbors' last and first row.
class block {
public:
    block(const mpi::communicator& world, std::size_t columns)
        : world_(&world),
          above((world.rank() + world.size() - 1) % world.size()),
          below((world.rank() + 1) % world.size()),
          rows(columns / static_cast<std::size_t>(world.size())),
          columns_(columns),
          now_((rows + 2) * columns),
          next_(now_.size()) {
        for (std::size_t i = 0; i != now_.size(); ++i)
            now_[i] = static_cast<double>((i * 7 + static_cast<std::size_t>(world.rank())) % 11);
    }
    std::span<double> row(std::size_t r) { return std::span(now_).subspan(r * columns_, columns_); }
    void compute(std::size_t from, std::size_t upto) {
        for (std::size_t r = from; r != upto; ++r) {
            const double* const up = &now_[(r - 1) * columns_];
            const double* const here = up + columns_;
            const double* const down = here + columns_;
            double* const out = &next_[r * columns_];
            for (std::size_t c = 1; c + 1 != columns_; ++c)
                out[c] = 0.25 * (up[c] + down[c] + here[c - 1] + here[c + 1]);
        }
    }
    void compute_inside() { compute(2, rows); }
    void compute_edges() {
        compute(1, 2);
        compute(rows, rows + 1);
        now_.swap(next_);
    }
    std::uint64_t hash() {
        bench::hash h;
        for (const double d : row(rows)) h.add(static_cast<std::uint64_t>(d * 1e6));
        return h.value();
    }
    const mpi::communicator& world() const { return *world_; }

private:
    const mpi::communicator* world_;

public:
    const int above, below;
    const std::size_t rows;

private:
    std::size_t columns_;
    std::vector<double> now_, next_;
};

void step_alone(block& b) {
    b.compute_inside();
    b.compute_edges();
}

void step_raw(block& b) {
    const MPI_Comm over = b.world().native_handle();
    const auto receive = [&](std::size_t row, int from, int tag, MPI_Request& r) {
        const std::span<double> s = b.row(row);
        ::MPI_Irecv(s.data(), static_cast<int>(s.size()), MPI_DOUBLE, from, tag, over, &r);
    };
    const auto send = [&](std::size_t row, int to, int tag, MPI_Request& r) {
        const std::span<double> s = b.row(row);
        ::MPI_Isend(s.data(), static_cast<int>(s.size()), MPI_DOUBLE, to, tag, over, &r);
    };
    MPI_Request requests[4];
    receive(0, b.above, 1, requests[0]);
    receive(b.rows + 1, b.below, 0, requests[1]);
    send(1, b.above, 0, requests[2]);
    send(b.rows, b.below, 1, requests[3]);
    b.compute_inside();
    ::MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    b.compute_edges();
}

// Exchanges the rows at the edges while `inside` computes the others. when_all starts it last.
template <class Inside>
task<> step(block& b, Inside inside) {
    co_await ex::when_all(
        mpi::send_receive(b.world(), b.row(1), {b.above, 0}, b.row(b.rows + 1), {b.below, 0}),
        mpi::send_receive(b.world(), b.row(b.rows), {b.below, 1}, b.row(0), {b.above, 1}),
        std::move(inside));
    b.compute_edges();
}
task<> steps_here(block& b, std::size_t count) {
    for (; count != 0; --count)
        co_await step(b, ex::just() | ex::then([&b]() noexcept { b.compute_inside(); }));
}
task<> steps_on_worker(block& b, std::size_t count) {
    for (; count != 0; --count)
        co_await step(b, ex::schedule(coppice::default_pool().get_scheduler()) |
                             ex::then([&b]() noexcept { b.compute_inside(); }));
}

}  // namespace

int run_halo(const mpi::communicator& world, const bench::options& o) {
    const std::size_t count = o.tiny ? 3 : 100;
    const auto time_of = [&](block& b, auto run) {
        ::MPI_Barrier(world.native_handle());
        const double begin = bench::now(false);
        run(b);
        ::MPI_Barrier(world.native_handle());
        return (bench::now(false) - begin) / static_cast<double>(count);
    };
    const std::size_t columns = o.tiny ? 64 : 2048;
    block alone(world, columns), raw(world, columns), here(world, columns), worker(world, columns);
    std::vector<double> times[4];
    for (int n = 0; n <= o.repetitions; ++n) {
        const double each[] = {
            time_of(alone,
                    [count](block& b) {
                        for (std::size_t i = 0; i != count; ++i) step_alone(b);
                    }),
            time_of(raw,
                    [count](block& b) {
                        for (std::size_t i = 0; i != count; ++i) step_raw(b);
                    }),
            time_of(here, [count](block& b) { run_on_environment(steps_here(b, count)); }),
            time_of(worker, [count](block& b) { run_on_environment(steps_on_worker(b, count)); })};
        // The first repetition warms up.
        for (std::size_t i = 0; n != 0 && i != std::size(each); ++i) times[i].push_back(each[i]);
    }
    if (raw.hash() != here.hash() || raw.hash() != worker.hash()) {
        std::printf("halo exchange: the rivals disagree\n");
        return 1;
    }
    if (o.tiny) return 0;
    const std::string name = "halo exchange, " + std::to_string(world.size()) + " processes";
    constexpr const char* names[] = {"no exchange", "raw MPI", "coppice", "coppice, worker"};
    std::printf("%s, ns per step\n", name.c_str());
    for (std::size_t i = 0; i != std::size(names); ++i)
        print(o, bench::of_samples(name, names[i], "ns per step", times[i]));
    bench::judge(o, "mpi: " + name + ", coppice / no exchange", bench::ratios(times[2], times[0]),
                 1 / 0.9);
    return 0;
}

}  // namespace bench_mpi
