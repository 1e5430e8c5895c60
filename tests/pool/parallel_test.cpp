// pool/parallel.hpp: every index once, exceptions, stops, and the order of operands.
#include <coppice/pool/parallel.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using coppice::parallel_for;
using coppice::parallel_reduce;
using coppice::thread_pool;

TEST(parallel_for, calls_each_index_once) {
    const auto check = [] {
        for (const int size : {0, 1, 2, 17, 1000, 100'000}) {
            std::vector<unsigned char> calls(static_cast<std::size_t>(size));
            EXPECT_TRUE(
                parallel_for(0, size, [&](int i) { ++calls[static_cast<std::size_t>(i)]; }));
            EXPECT_EQ(std::accumulate(calls.begin(), calls.end(), 0), size);
            for (const unsigned char n : calls) ASSERT_EQ(n, 1);
        }
        EXPECT_TRUE(parallel_for(5, 3, [](int) { FAIL(); }));
    };
    check();
    thread_pool pool(4);
    pool.run(check);
}

TEST(parallel_for, calls_with_ranges_that_make_up_the_whole) {
    thread_pool pool(3);
    std::vector<unsigned char> calls(50'000);
    pool.run([&] {
        parallel_for(std::size_t{0}, calls.size(), [&](std::size_t first, std::size_t last) {
            ASSERT_LT(first, last);
            for (; first != last; ++first) ++calls[first];
        });
    });
    for (const unsigned char n : calls) ASSERT_EQ(n, 1);
}

TEST(parallel_for, an_idle_worker_takes_part_in_a_loop_of_long_calls) {
    thread_pool pool(2);
    coppice::internal::atomic<int> there{0};
    pool.run([&] {
        parallel_for(0, 2, [&](int) {
            there.fetch_add(1, coppice::internal::relaxed);
            while (there.load(coppice::internal::relaxed) < 2) std::this_thread::yield();
        });
    });
    EXPECT_EQ(there.load(coppice::internal::relaxed), 2);
}

TEST(parallel_for, an_exception_ends_it_and_is_rethrown) {
    const auto check = [] {
        coppice::internal::atomic<int> calls{0};
        EXPECT_THROW(parallel_for(0, 1'000'000'000,
                                  [&](int i) {
                                      calls.fetch_add(1, coppice::internal::relaxed);
                                      if (i == 100) throw std::runtime_error("at 100");
                                  }),
                     std::runtime_error);
        EXPECT_LT(calls.load(coppice::internal::relaxed), 1'000'000'000);
    };
    check();
    thread_pool pool(2);
    pool.run(check);
}

TEST(parallel_for, a_stop_request_ends_it) {
    thread_pool pool(2);
    coppice::inplace_stop_source source;
    bool all = true;
    pool.run([&] {
        coppice::fork_join(source.get_token(), [&] {
            all = parallel_for(0, 2'000'000'000, [&](int i) {
                if (i == 0) source.request_stop();
            });
        });
    });
    EXPECT_FALSE(all);
}

// A stop request undoes nothing: false says that an index was not called.
TEST(parallel_for, is_false_only_if_an_index_was_left_out) {
    const auto calls_until_stopped = [](int size, int stop_at) {
        coppice::inplace_stop_source source;
        if (stop_at < 0) source.request_stop();
        coppice::internal::atomic<int> calls{0};
        const auto [all] = coppice::fork_join(source.get_token(), [&] {
            return parallel_for(0, size, [&](int) {
                if (calls.fetch_add(1, coppice::internal::relaxed) + 1 == stop_at)
                    source.request_stop();
            });
        });
        EXPECT_EQ(all, calls.load(coppice::internal::relaxed) == size)
            << "stopped in call " << stop_at << " of " << size;
        return all;
    };
    const auto check = [&] {
        EXPECT_TRUE(calls_until_stopped(100, 100)) << "in the last call";
        EXPECT_TRUE(calls_until_stopped(1, 1));
        EXPECT_TRUE(calls_until_stopped(0, -1)) << "there was nothing to call";
        EXPECT_FALSE(calls_until_stopped(1, -1)) << "before the first call";
        EXPECT_FALSE(calls_until_stopped(100'000'000, 1));
        for (const int size : {2, 10, 1000})
            for (int round = 0; round != 20; ++round) calls_until_stopped(size, size / 2 + 1);
    };
    check();
    for (const std::size_t threads : {1u, 3u}) thread_pool(threads).run(check);
}

TEST(parallel_for, calls_a_function_that_changes_itself_in_place) {
    thread_pool pool(1);
    std::size_t calls = 0;
    pool.run([&calls] {
        auto counter = [count = std::size_t{0}](std::size_t) mutable { return ++count; };
        parallel_for(std::size_t{0}, std::size_t{100'000}, counter);
        calls = counter(0) - 1;
    });
    EXPECT_EQ(calls, 100'000u);
}

// Counts the calls that may change it, and those that may not.
struct counting_function {
    void operator()(std::size_t) { ++changing; }
    void operator()(std::size_t) const { ++constant; }
    std::size_t changing = 0;
    static inline std::size_t constant = 0;
};
static_assert(!coppice::internal::loops_call_copy<counting_function, int>);
static_assert(coppice::internal::loops_call_copy<const counting_function, int>);

TEST(parallel_for, calls_the_operator_that_overload_resolution_chooses) {
    thread_pool pool(1);
    counting_function f;
    pool.run([&f] { parallel_for(0, 1'000, f); });
    EXPECT_EQ(f.changing, 1'000u);
    EXPECT_EQ(counting_function::constant, 0u);
    pool.run([&f] { parallel_for(0, 1'000, std::as_const(f)); });
    EXPECT_EQ(f.changing, 1'000u);
    EXPECT_EQ(counting_function::constant, 1'000u);
}

// Overloads, and a template, that are const for some arguments and not for others.
struct mixed_function {
    void operator()(int&) const {}
    void operator()(const int&) { ++calls; }
    template <class T>
    void operator()(T*) const {}
    template <class T>
    void operator()(T*, int) {
        ++calls;
    }
    int operator()() const { return calls; }
    int calls = 0;
};

TEST(parallel_for, copies_a_function_only_if_its_call_is_const) {
    using coppice::internal::loops_call_copy;
    static_assert(!loops_call_copy<mixed_function, int>);
    static_assert(!loops_call_copy<mixed_function, short>, "becomes an int");
    static_assert(!std::is_invocable_v<mixed_function&, int&>, "ambiguous");
    static_assert(!loops_call_copy<mixed_function, int&>);
    static_assert(loops_call_copy<mixed_function, int*>);
    static_assert(!loops_call_copy<mixed_function, int*, int>);
    static_assert(!loops_call_copy<mixed_function>, "not known");
    int k = 3;
    const auto generic = [k](auto x) { return x + k; };
    const auto plain = [k] { return k; };
    static_assert(loops_call_copy<std::remove_const_t<decltype(plain)>>);
    using constant = std::remove_const_t<decltype(generic)>;
    static_assert(loops_call_copy<constant, int> && loops_call_copy<constant, const double&>);
    auto with_packs = [k](auto&&... x) { return (k + ... + x); };
    static_assert(loops_call_copy<decltype(with_packs), int>);
    auto changing = [n = k](auto...) mutable { return ++n; };
    static_assert(!loops_call_copy<decltype(changing), int> &&
                  !loops_call_copy<decltype(changing)>);
    static_assert(loops_call_copy<int (*)(int), int> && !loops_call_copy<int(int), int>);
    struct large {
        void operator()(int) const {}
        char bytes[65];
    };
    static_assert(!loops_call_copy<large, int>);
    EXPECT_EQ(generic(1) + with_packs(1) + changing() + plain(), 15);
}

TEST(parallel_reduce, keeps_the_order_of_operands) {
    std::string expected;
    for (int i = 0; i != 2000; ++i) expected += std::to_string(i) + ",";
    const auto check = [&] {
        const std::string all = parallel_reduce(
            0, 2000, std::string(), [](int i) { return std::to_string(i) + ","; },
            [](std::string a, const std::string& b) { return std::move(a) + b; });
        EXPECT_EQ(all, expected);
    };
    check();
    thread_pool pool(4);
    for (int round = 0; round != 20; ++round) pool.run(check);
}

TEST(parallel_reduce, sums_ranges_that_do_not_begin_at_zero) {
    thread_pool pool(2);
    EXPECT_EQ(pool.run([] {
        return parallel_reduce(
            -1000L, 2000, 0L, [](long i) { return i; }, [](long a, long b) { return a + b; });
    }),
              1498500L);
}

TEST(parallel_for, allocates_nothing) {
    thread_pool pool(1);
    std::vector<int> data(10'000);
    EXPECT_EQ(pool.run([&] {
        const coppice::test::allocation_count count;
        parallel_for(std::size_t{0}, data.size(), [&](std::size_t i) { data[i] = 1; });
        return count.so_far();
    }),
              0u);
}

}  // namespace
