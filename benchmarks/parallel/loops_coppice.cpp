// coppice, and std's sequential algorithms.
#include "coppice_pool.hpp"
#include "loop_rivals.hpp"

#include <coppice/parallel/filter.hpp>
#include <coppice/parallel/find.hpp>
#include <coppice/parallel/for_each.hpp>
#include <coppice/parallel/reduce.hpp>
#include <coppice/parallel/scan.hpp>
#include <coppice/parallel/transform.hpp>

#include <algorithm>
#include <numeric>
#include <ranges>

namespace bench_parallel {

namespace {

constexpr auto saxpy = [](float x, float y) { return y + 2 * x; };

bool run_coppice(loop k, std::size_t threads, inputs& in) {
    namespace parallel = coppice::parallel;
    const auto where = parallel::on(pool(threads));
    const auto begin = in.u.begin(), end = in.u.end();
    switch (k) {
        case loop::increment:
            parallel::for_each(where, in.f, [](float& x) { x += 1; });
            break;
        case loop::uneven:
            parallel::for_each(
                where, std::views::iota(std::size_t(0), in.u.size()),
                [&u = in.u](std::size_t i) { u[i] = spin(u[i], steps_of(i, u.size())); });
            break;
        case loop::saxpy:
            parallel::transform(where, in.f.begin(), in.f.end(), in.g.begin(), in.g.begin(), saxpy);
            break;
        case loop::sum:
            in.value = parallel::reduce(where, begin, end, std::uint64_t(0));
            break;
        case loop::scan:
            parallel::inclusive_scan(where, begin, end, in.out.begin());
            break;
        case loop::find: {
            const auto found = parallel::find_if(
                where, begin, end, [](std::uint64_t x) { return x == ~std::uint64_t(0); });
            in.value = static_cast<std::uint64_t>(found - begin);
            break;
        }
        case loop::count:
            in.value = static_cast<std::uint64_t>(parallel::count_if(where, begin, end, is_odd));
            break;
        case loop::least:
            in.value = static_cast<std::uint64_t>(parallel::min_element(where, begin, end) - begin);
            break;
        case loop::copy_some: {
            const auto out_end = parallel::copy_if(where, begin, end, in.out.begin(), is_odd);
            in.value = static_cast<std::uint64_t>(out_end - in.out.begin());
            break;
        }
    }
    return true;
}

bool run_std(loop k, std::size_t, inputs& in) {
    const auto begin = in.u.begin(), end = in.u.end();
    switch (k) {
        case loop::increment:
            for (float& x : in.f) x += 1;
            break;
        case loop::uneven:
            for (std::size_t i = 0; i != in.u.size(); ++i) {
                in.u[i] = spin(in.u[i], steps_of(i, in.u.size()));
            }
            break;
        case loop::saxpy:
            std::transform(in.f.begin(), in.f.end(), in.g.begin(), in.g.begin(), saxpy);
            break;
        case loop::sum:
            in.value = std::reduce(begin, end, std::uint64_t(0));
            break;
        case loop::scan:
            std::inclusive_scan(begin, end, in.out.begin());
            break;
        case loop::find: {
            const auto found = std::find(begin, end, ~std::uint64_t(0));
            in.value = static_cast<std::uint64_t>(found - begin);
            break;
        }
        case loop::count:
            in.value = static_cast<std::uint64_t>(std::count_if(begin, end, is_odd));
            break;
        case loop::least:
            in.value = static_cast<std::uint64_t>(std::min_element(begin, end) - begin);
            break;
        case loop::copy_some: {
            const auto out_end = std::copy_if(begin, end, in.out.begin(), is_odd);
            in.value = static_cast<std::uint64_t>(out_end - in.out.begin());
            break;
        }
    }
    return true;
}

}  // namespace

const loop_rival coppice_loops{
    "coppice", 64, run_coppice,
    [](std::size_t threads, const std::function<void()>& f) { pool(threads).run([&f] { f(); }); }};
const loop_rival coppice_outside{"coppice, called by another thread", 64, run_coppice};
const loop_rival std_loops{"std, sequential", 1, run_std};

}  // namespace bench_parallel
