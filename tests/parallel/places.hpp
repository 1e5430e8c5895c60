// The places where the tests run each algorithm, and random input of several sizes.
#pragma once

#include <coppice/parallel/on.hpp>
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

// Calls check() on this thread, for the default pool, and on a worker of a pool of three.
template <class Check>
void on_pools(Check check) {
    check();
    pool().run([&check] { check(); });
}

// Calls check(where...) for a pool and a scheduler too. Each kind of place instantiates the
// algorithms again, so only for_each_test tries the other kinds.
template <class Check>
void everywhere(Check check) {
    using coppice::parallel::on;
    on_pools(check);
    check(on(pool()));
    check(on(pool().get_scheduler()));
    pool().run([&check] {
        check(on(pool()));
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
