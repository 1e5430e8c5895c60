// OpenMP: loops, reductions, and a scan; by libomp and by libgomp (loops_companion.cpp).
#include "loop_rivals.hpp"

namespace bench_parallel {

namespace {

// The first of the least elements.
struct least_element {
    std::uint64_t value = ~std::uint64_t(0);
    std::size_t at = 0;
};
inline least_element better(least_element a, least_element b) {
    return b.value < a.value || (b.value == a.value && b.at < a.at) ? b : a;
}
#pragma omp declare reduction(least:least_element : omp_out = better(omp_out, omp_in)) \
    initializer(omp_priv = least_element{})

void scan(const std::uint64_t* u, std::uint64_t* out, std::size_t size, int threads) {
    std::uint64_t sum = 0;
#pragma omp parallel for num_threads(threads) reduction(inscan, + : sum)
    for (std::size_t i = 0; i < size; ++i) {
        sum += u[i];
#pragma omp scan inclusive(sum)
        out[i] = sum;
    }
}
std::size_t least_of(const std::uint64_t* u, std::size_t size, int threads) {
    least_element best;
#pragma omp parallel for num_threads(threads) reduction(least : best)
    for (std::size_t i = 0; i < size; ++i) {
        if (u[i] < best.value) best = {u[i], i};
    }
    return best.at;
}
std::uint64_t sum_of(const std::uint64_t* u, std::size_t size, int threads) {
    std::uint64_t sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
    for (std::size_t i = 0; i < size; ++i) sum += u[i];
    return sum;
}
std::uint64_t odd_of(const std::uint64_t* u, std::size_t size, int threads) {
    std::uint64_t sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum)
    for (std::size_t i = 0; i < size; ++i) sum += u[i] & 1;
    return sum;
}

}  // namespace

bool run_openmp(loop k, std::size_t threads, inputs& in) {
    const int n = static_cast<int>(threads);
    float* const f = in.f.data();
    float* const g = in.g.data();
    std::uint64_t* const u = in.u.data();
    const std::size_t size = in.u.size();
    switch (k) {
        case loop::increment:
#pragma omp parallel for num_threads(n)
            for (std::size_t i = 0; i < size; ++i) f[i] += 1;
            return true;
        case loop::uneven:
#pragma omp parallel for num_threads(n) schedule(dynamic, 16)
            for (std::size_t i = 0; i < size; ++i) u[i] = spin(u[i], steps_of(i, size));
            return true;
        case loop::saxpy:
#pragma omp parallel for num_threads(n)
            for (std::size_t i = 0; i < size; ++i) g[i] += 2 * f[i];
            return true;
        case loop::sum:
            in.value = sum_of(u, size, n);
            return true;
        case loop::scan:
            scan(u, in.out.data(), size, n);
            return true;
        case loop::count:
            in.value = odd_of(u, size, n);
            return true;
        case loop::least:
            in.value = least_of(u, size, n);
            return true;
        case loop::find:
        case loop::copy_some:
            break;
    }
    return false;
}

}  // namespace bench_parallel
