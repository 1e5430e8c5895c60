// Each call of a user's function throws in turn: the exception comes out, and no object is lost.
#include <coppice/parallel.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/sync_wait.hpp>

#include "places.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace parallel = coppice::parallel;
using coppice::this_thread::sync_wait;

coppice::internal::atomic<int> live{0};
coppice::internal::atomic<int> calls_until_throw{0};

// Throws at the chosen call. Each call takes some microseconds, so that the workers share even a
// few calls, and scans and filters use windows.
void may_throw() {
    for (volatile int i = 0; i != 1'000;) i = i + 1;
    if (calls_until_throw.fetch_sub(1, coppice::internal::relaxed) == 1) {
        throw std::runtime_error("chosen call");
    }
}

// A value whose objects are counted.
struct counted {
    explicit counted(int v = 0) : value(v) { live.fetch_add(1, coppice::internal::relaxed); }
    counted(const counted& other) : counted(other.value) {}
    counted& operator=(const counted&) = default;
    ~counted() { live.fetch_sub(1, coppice::internal::relaxed); }
    int value;
};

constexpr int size = 40;

struct fixture {
    std::vector<counted> v, out;
    fixture() : out(size) {
        for (int i = 0; i != size; ++i) v.emplace_back(i / 2);
    }
};

counted plus(const counted& a, const counted& b) {
    may_throw();
    return counted(a.value + b.value);
}
counted next(const counted& a) {
    may_throw();
    return counted(a.value + 1);
}
bool odd(const counted& a) {
    may_throw();
    return a.value % 2 != 0;
}
bool never(const counted&) {
    may_throw();
    return false;
}
bool less(const counted& a, const counted& b) {
    may_throw();
    return a.value < b.value;
}
bool equal(const counted& a, const counted& b) {
    may_throw();
    return a.value == b.value;
}

// Calls run(fixture) with each call of a function throwing in turn, until none is left to throw.
template <class Run>
void throw_in_turn(Run run) {
    const int before = live.load(coppice::internal::relaxed);
    bool threw = true;
    int n = 1;
    for (; threw; ++n) {
        ASSERT_LT(n, 1'000);
        calls_until_throw.store(n, coppice::internal::relaxed);
        threw = false;
        try {
            fixture f;
            run(f);
        } catch (const std::runtime_error&) {
            threw = true;
        }
        // The worker that completed a sender may still hold the result that was moved out of it.
        while (live.load(coppice::internal::relaxed) != before) std::this_thread::yield();
        EXPECT_EQ(threw, calls_until_throw.load(coppice::internal::relaxed) <= 0);
    }
    EXPECT_GT(n, 20);
}

TEST(parallel_errors, loops_lose_nothing) {
    places::on_pools([](auto... where) {
        throw_in_turn([=](fixture& f) {
            parallel::for_each(where..., f.v, [](counted& x) { x = next(x); });
        });
        throw_in_turn([=](fixture& f) {
            parallel::for_each_n(where..., f.v.begin(), size, [](counted& x) { x = next(x); });
        });
        throw_in_turn([=](fixture& f) { parallel::transform(where..., f.v, f.out, next); });
        throw_in_turn([=](fixture& f) { parallel::transform(where..., f.v, f.v, f.out, plus); });
        throw_in_turn([=](fixture& f) {
            parallel::generate(where..., f.out, [] { return next(counted(1)); });
        });
        throw_in_turn(
            [=](fixture& f) { parallel::adjacent_difference(where..., f.v, f.out, plus); });
    });
}

TEST(parallel_errors, sums_and_searches_lose_nothing) {
    places::on_pools([](auto... where) {
        throw_in_turn([=](fixture& f) { parallel::reduce(where..., f.v, counted(1), plus); });
        throw_in_turn(
            [=](fixture& f) { parallel::transform_reduce(where..., f.v, counted(1), plus, next); });
        throw_in_turn([=](fixture& f) {
            parallel::transform_reduce(where..., f.v, f.v, counted(1), plus, plus);
        });
        throw_in_turn([=](fixture& f) { parallel::count_if(where..., f.v, odd); });
        throw_in_turn([=](fixture& f) { parallel::min_element(where..., f.v, less); });
        throw_in_turn([=](fixture& f) { parallel::max_element(where..., f.v, less); });
        throw_in_turn([=](fixture& f) { parallel::minmax_element(where..., f.v, less); });
        throw_in_turn([=](fixture& f) { parallel::find_if(where..., f.v, never); });
        throw_in_turn([=](fixture& f) { parallel::any_of(where..., f.v, never); });
        throw_in_turn([=](fixture& f) {
            std::vector<int> bins(size);
            parallel::histogram(where..., f.v, bins,
                                [](const counted& x) { return next(x).value; });
        });
    });
}

TEST(parallel_errors, scans_and_filters_lose_nothing) {
    places::on_pools([](auto... where) {
        throw_in_turn([=](fixture& f) { parallel::inclusive_scan(where..., f.v, f.out, plus); });
        throw_in_turn(
            [=](fixture& f) { parallel::exclusive_scan(where..., f.v, f.v, counted(1), plus); });
        throw_in_turn([=](fixture& f) {
            parallel::transform_inclusive_scan(where..., f.v, f.out, plus, next, counted(1));
        });
        throw_in_turn([=](fixture& f) {
            parallel::transform_exclusive_scan(where..., f.v, f.out, counted(1), plus, next);
        });
        throw_in_turn([=](fixture& f) { parallel::copy_if(where..., f.v, f.out.begin(), odd); });
        throw_in_turn([=](fixture& f) { parallel::remove_if(where..., f.v, odd); });
        throw_in_turn([=](fixture& f) { parallel::unique(where..., f.v, equal); });
    });
}

TEST(parallel_errors, senders_lose_nothing) {
    places::on_pools([](auto... where) {
        throw_in_turn([=](fixture& f) {
            auto [out] = *sync_wait(parallel::async::transform(where..., f.v, f.out, next));
            EXPECT_EQ(out.out, f.out.end());
        });
        throw_in_turn([=](fixture& f) {
            auto [sum] = *sync_wait(parallel::async::reduce(where..., f.v, counted(1), plus));
            EXPECT_EQ(sum.value, 1 + size / 2 * (size / 2 - 1));
        });
        throw_in_turn([=](fixture& f) {
            EXPECT_TRUE(sync_wait(parallel::async::inclusive_scan(where..., f.v, f.out, plus)));
        });
        throw_in_turn([=](fixture& f) {
            EXPECT_TRUE(sync_wait(parallel::async::remove_if(where..., f.v, odd)));
        });
    });
}

}  // namespace
