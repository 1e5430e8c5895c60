// The loops, reductions, scans, and searches that bench_parallel measures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "../large_pages.hpp"

namespace bench_parallel {

enum class loop {
    increment,  // f[i] += 1
    uneven,     // u[i] = spin(u[i], steps that grow with i)
    saxpy,      // g[i] += 2 * f[i]
    sum,        // of u
    scan,       // inclusive_scan of u into out
    find,       // in u, for a value that it lacks
    count,      // of odd elements of u
    least,      // the position of the first of the least elements of u
    copy_some,  // copies the odd elements of u to out
};
struct named_loop {
    loop k;
    std::string_view name;
};
inline constexpr named_loop loops[] = {
    {loop::increment, "for_each,one_addition"},
    {loop::uneven, "for_each,uneven"},
    {loop::saxpy, "transform,saxpy"},
    {loop::sum, "reduce"},
    {loop::scan, "inclusive_scan"},
    {loop::find, "find_if,no_match"},
    {loop::count, "count_if"},
    {loop::least, "min_element"},
    {loop::copy_some, "copy_if,half"},
};

// Each step waits for the one before. Compilers find no shorter way.
inline std::uint64_t spin(std::uint64_t x, std::size_t steps) {
    for (std::size_t i = 0; i != steps; ++i) x = (x ^ (x >> 33)) * 6364136223846793005u + 1;
    return x;
}
inline std::size_t steps_of(std::size_t i, std::size_t size) {
    return i * 1024 / size;
}
// An object, because algorithms that run elsewhere cannot inline a pointer to a function.
inline constexpr auto is_odd = [](std::uint64_t x) { return (x & 1) != 0; };

struct inputs {
    // In large pages, so that a rival in another process does not differ by its physical pages.
    template <class T>
    using array = std::vector<T, bench::large_page_allocator<T>>;

    array<float> f, g;
    array<std::uint64_t> u, out;
    std::uint64_t value = 0;  // of a loop that has a result

    // Gives each array its elements. Each run begins with the same ones, outside the caches: else a
    // rival whose threads run on the caller's processor would begin with some of them inside.
    void reset(std::size_t size) {
        f.resize(size);
        g.resize(size);
        u.resize(size);
        out.assign(size, 0);
        value = 0;
        for (std::size_t i = 0; i != size; ++i) {
            f[i] = static_cast<float>(i % 1000);
            g[i] = static_cast<float>(i % 999);
            u[i] = spin(i, 2) >> 8;
        }
        elsewhere_.assign(size < 100'000 ? 0 : 12'000'000, size);  // 96 MB
    }
    // A hash of the result of one run.
    std::uint64_t result() const {
        std::uint64_t h = value;
        for (std::size_t i = 0; i < f.size(); i += 61) {
            h = spin(h ^ u[i] ^ out[i], 1) + static_cast<std::uint64_t>(f[i] + g[i]);
        }
        return h;
    }

private:
    std::vector<std::uint64_t> elsewhere_;
};

// A rival's loops, on `threads` threads that are started before the first call and kept. Returns
// false if the rival has no such loop.
struct loop_rival {
    const char* name;
    std::size_t threads_max;  // 1: only sequential
    bool (*run)(loop k, std::size_t threads, inputs& in);
    // Calls f on the thread that calls `run`; nullptr if any thread does.
    void (*call)(std::size_t threads, const std::function<void()>& f) = nullptr;
};

extern const loop_rival coppice_loops;    // called on a worker
extern const loop_rival coppice_outside;  // called on a thread that is no worker
extern const loop_rival std_loops;        // sequential
extern const loop_rival tbb_loops;
extern const loop_rival std_par_loops;
bool run_openmp(loop k, std::size_t threads, inputs& in);

}  // namespace bench_parallel
