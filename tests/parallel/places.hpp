// The places where the tests run each algorithm, and random input of several sizes.
#pragma once

#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/parallel/on.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/default_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <cstddef>
#include <random>
#include <vector>

namespace places {

inline coppice::thread_pool& pool() {
    static coppice::thread_pool instance(3);
    return instance;
}

// Calls check() and check(on(pool)), on this thread and on workers.
template <class Check>
void on_pools(Check check) {
    check();
    check(coppice::parallel::on(pool()));
    pool().run([&check] { check(coppice::parallel::on(pool())); });
}

// Calls check(where...) for each kind of place.
template <class Check>
void everywhere(Check check) {
    static coppice::contract_pool contracts(1);
    using coppice::parallel::on;
    on_pools(check);
    check(on(pool().get_scheduler()));
    check(on(contracts));
    check(on(coppice::execution::inline_scheduler()));
    pool().run([&check] {
        check();
        check(on(pool().get_scheduler()));
        check(on(coppice::default_pool()));
    });
}

inline constexpr std::size_t sizes[] = {0, 1, 2, 3, 17, 100, 1'000, 7'001};

inline std::vector<int> random_numbers(std::size_t size, int most) {
    static std::minstd_rand random(20);  // NOLINT: the same input each time
    std::uniform_int_distribution<int> each(0, most);
    std::vector<int> v(size);
    for (int& x : v) x = each(random);
    return v;
}

}  // namespace places
