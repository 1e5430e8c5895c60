// oneTBB's loops, and libstdc++'s parallel algorithms, which run on oneTBB.
#include "loop_rivals.hpp"
#include "tbb_arena.hpp"

#include <tbb/blocked_range.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/parallel_scan.h>

#include <algorithm>
#include <execution>
#include <functional>
#include <iterator>
#include <numeric>
#include <vector>

namespace bench_parallel {

namespace {

using range = tbb::blocked_range<std::size_t>;

template <class F>
void for_each_part(std::size_t size, const F& f) {
    tbb::parallel_for(range(0, size), [&f](const range& r) {
        for (std::size_t i = r.begin(); i != r.end(); ++i) f(i);
    });
}
template <class F>
std::uint64_t sum_of(std::size_t size, const F& f) {
    return tbb::parallel_reduce(
        range(0, size), std::uint64_t(0),
        [&f](const range& r, std::uint64_t sum) {
            for (std::size_t i = r.begin(); i != r.end(); ++i) sum += f(i);
            return sum;
        },
        std::plus<>());
}
void scan(const std::uint64_t* in, std::uint64_t* out, std::size_t size) {
    tbb::parallel_scan(
        range(0, size), std::uint64_t(0),
        [in, out](const range& r, std::uint64_t sum, bool is_final) {
            for (std::size_t i = r.begin(); i != r.end(); ++i) {
                sum += in[i];
                if (is_final) out[i] = sum;
            }
            return sum;
        },
        std::plus<>());
}
std::size_t least(const std::uint64_t* u, std::size_t size) {
    const auto better = [u](std::size_t i, std::size_t j) {
        return u[j] < u[i] || (u[j] == u[i] && j < i) ? j : i;
    };
    return tbb::parallel_reduce(
        range(0, size), std::size_t(0),
        [u](const range& r, std::size_t best) {
            for (std::size_t i = r.begin(); i != r.end(); ++i) {
                if (u[i] < u[best]) best = i;
            }
            return best;
        },
        better);
}

bool run_tbb_here(loop k, inputs& in) {
    float* const f = in.f.data();
    float* const g = in.g.data();
    std::uint64_t* const u = in.u.data();
    const std::size_t size = in.u.size();
    switch (k) {
        case loop::increment:
            for_each_part(size, [f](std::size_t i) { f[i] += 1; });
            return true;
        case loop::uneven:
            for_each_part(size, [u, size](std::size_t i) { u[i] = spin(u[i], steps_of(i, size)); });
            return true;
        case loop::saxpy:
            for_each_part(size, [f, g](std::size_t i) { g[i] += 2 * f[i]; });
            return true;
        case loop::sum:
            in.value = sum_of(size, [u](std::size_t i) { return u[i]; });
            return true;
        case loop::scan:
            scan(u, in.out.data(), size);
            return true;
        case loop::count:
            in.value = sum_of(size, [u](std::size_t i) { return is_odd(u[i]) ? 1u : 0u; });
            return true;
        case loop::least:
            in.value = least(u, size);
            return true;
        case loop::find:
        case loop::copy_some:
            break;
    }
    return false;
}
bool run_tbb(loop k, std::size_t threads, inputs& in) {
    bool has = false;
    arena(threads).execute([k, &in, &has] { has = run_tbb_here(k, in); });
    return has;
}

void run_par_here(loop k, inputs& in) {
    constexpr auto par = std::execution::par;
    const auto begin = in.u.begin(), end = in.u.end();
    switch (k) {
        case loop::increment:
            std::for_each(par, in.f.begin(), in.f.end(), [](float& x) { x += 1; });
            break;
        case loop::uneven: {
            std::uint64_t* const u = in.u.data();
            const std::size_t size = in.u.size();
            std::for_each(par, begin, end, [u, size](std::uint64_t& x) {
                x = spin(x, steps_of(static_cast<std::size_t>(&x - u), size));
            });
            break;
        }
        case loop::saxpy:
            std::transform(par, in.f.begin(), in.f.end(), in.g.begin(), in.g.begin(),
                           [](float x, float y) { return y + 2 * x; });
            break;
        case loop::sum:
            in.value = std::reduce(par, begin, end, std::uint64_t(0));
            break;
        case loop::scan:
            std::inclusive_scan(par, begin, end, in.out.begin());
            break;
        case loop::find: {
            const auto found = std::find(par, begin, end, ~std::uint64_t(0));
            in.value = static_cast<std::uint64_t>(found - begin);
            break;
        }
        case loop::count:
            in.value = static_cast<std::uint64_t>(std::count_if(par, begin, end, is_odd));
            break;
        case loop::least:
            in.value = static_cast<std::uint64_t>(std::min_element(par, begin, end) - begin);
            break;
        case loop::copy_some: {
            const auto out_end = std::copy_if(par, begin, end, in.out.begin(), is_odd);
            in.value = static_cast<std::uint64_t>(out_end - in.out.begin());
            break;
        }
    }
}
bool run_par(loop k, std::size_t threads, inputs& in) {
    arena(threads).execute([k, &in] { run_par_here(k, in); });
    return true;
}

}  // namespace

const loop_rival tbb_loops{"oneTBB", 64, run_tbb};
const loop_rival std_par_loops{"std::execution::par", 64, run_par};

}  // namespace bench_parallel
