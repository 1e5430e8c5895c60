// pool/fork_join.hpp: every function runs once; results, exceptions, stops, depth, allocations.
#include <coppice/pool/fork_join.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/pool/default_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <variant>
#include <vector>

namespace {

using coppice::fork_join;
using coppice::thread_pool;

long fib(long n) {
    if (n < 2) return n;
    const auto [a, b] = fork_join([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
    return a + b;
}

// Two functions that cannot end unless both run at the same time.
struct meeting {
    coppice::internal::atomic<int> there{0};
    void come() {
        there.fetch_add(1, coppice::internal::relaxed);
        while (there.load(coppice::internal::relaxed) < 2) std::this_thread::yield();
    }
};

TEST(fork_join, returns_the_results_in_order_and_monostate_for_void) {
    int object = 3;
    const auto check = [&] {
        std::tuple<int, std::monostate, int&, std::unique_ptr<int>> results =
            fork_join([] { return 1; }, [] {}, [&]() -> int& { return object; },
                      [] { return std::make_unique<int>(4); });
        EXPECT_EQ(std::get<0>(results), 1);
        EXPECT_EQ(&std::get<2>(results), &object);
        EXPECT_EQ(*std::get<3>(results), 4);
        EXPECT_EQ(fork_join(), std::tuple<>());
        EXPECT_EQ(fork_join([] { return 7; }), std::tuple(7));
    };
    check();
    thread_pool pool(2);
    pool.run(check);
}

TEST(fork_join, off_the_pool_runs_on_the_default_pool) {
    coppice::internal::atomic<int> there{0};
    const auto note = [&] {
        if (coppice::default_pool().is_current()) there.fetch_add(1, coppice::internal::relaxed);
    };
    fork_join(note, note, note);
    EXPECT_EQ(there.load(coppice::internal::relaxed), 3);
}

TEST(fork_join, recursion_returns_what_the_plain_function_returns) {
    EXPECT_EQ(fib(16), 987);
    for (const std::size_t threads : {1u, 2u, 4u, 16u}) {
        thread_pool pool(threads);
        for (int round = 0; round != 20; ++round) EXPECT_EQ(pool.run([] { return fib(18); }), 2584);
    }
}

TEST(fork_join, an_idle_worker_takes_part) {
    thread_pool pool(2);
    for (int round = 0; round != 200; ++round) {
        meeting m;
        pool.run([&] { fork_join([&] { m.come(); }, [&] { m.come(); }); });
        EXPECT_EQ(m.there.load(coppice::internal::relaxed), 2);
    }
}

TEST(fork_join, all_idle_workers_take_part) {
    thread_pool pool(4);
    for (int round = 0; round != 100; ++round) {
        coppice::internal::atomic<int> there{0};
        const auto come = [&] {
            there.fetch_add(1, coppice::internal::relaxed);
            while (there.load(coppice::internal::relaxed) < 4) std::this_thread::yield();
        };
        pool.run(
            [&] { fork_join([&] { fork_join(come, come); }, [&] { fork_join(come, come); }); });
        EXPECT_EQ(there.load(coppice::internal::relaxed), 4);
    }
}

TEST(fork_join, throws_the_first_exception_in_order_after_all_have_ended) {
    const auto check = [] {
        coppice::internal::atomic<int> ended{0};
        const auto thrower = [&](const char* what) {
            return [&ended, what] {
                ended.fetch_add(1, coppice::internal::relaxed);
                throw std::runtime_error(what);
            };
        };
        const auto quiet = [&] { ended.fetch_add(1, coppice::internal::relaxed); };
        try {
            fork_join(quiet, thrower("second"), quiet, thrower("fourth"));
            ADD_FAILURE() << "nothing was thrown";
        } catch (const std::runtime_error& error) {
            EXPECT_STREQ(error.what(), "second");
        }
        EXPECT_EQ(ended.load(coppice::internal::relaxed), 4);
        EXPECT_THROW(fork_join(thrower("first"), quiet), std::runtime_error);
        EXPECT_EQ(ended.load(coppice::internal::relaxed), 6);
    };
    check();
    thread_pool pool(2);
    for (int round = 0; round != 200; ++round) pool.run(check);
}

TEST(fork_join, an_exception_of_a_stolen_function_reaches_the_caller) {
    thread_pool pool(2);
    meeting m;
    EXPECT_THROW(pool.run([&] {
        fork_join([&] { m.come(); },
                  [&] {
                      m.come();
                      throw std::runtime_error("stolen");
                  });
    }),
                 std::runtime_error);
}

TEST(fork_join, the_exception_of_the_first_function_waits_for_a_stolen_one) {
    thread_pool pool(2);
    for (int round = 0; round != 50; ++round) {
        coppice::internal::atomic<bool> ended{false};
        meeting m;
        EXPECT_THROW(pool.run([&] {
            fork_join(
                [&] {
                    m.come();
                    throw std::runtime_error("first");
                },
                [&] {
                    m.come();
                    std::this_thread::yield();
                    ended.store(true, coppice::internal::relaxed);
                });
        }),
                     std::runtime_error);
        EXPECT_TRUE(ended.load(coppice::internal::relaxed));
    }
}

TEST(fork_join, the_result_of_a_function_whose_sibling_throws_is_destroyed) {
    const auto held = std::make_shared<int>(1);
    const auto check = [&](auto second) {
        EXPECT_THROW(fork_join([&] { return held; }, second), std::runtime_error);
        EXPECT_EQ(held.use_count(), 1);
        const auto [kept, none] = fork_join([&] { return held; }, [] {});
        EXPECT_EQ(held.use_count(), 2);
    };
    const auto fail = [] { throw std::runtime_error("second"); };
    check(fail);  // off the pool
    thread_pool pool(2);
    pool.run([&] { check(fail); });
    pool.run([&] {
        meeting both;
        EXPECT_THROW(fork_join([&] { return both.come(), held; },
                               [&] {
                                   both.come();
                                   throw std::runtime_error("stolen");
                               }),
                     std::runtime_error);
        EXPECT_EQ(held.use_count(), 1);
    });
}

TEST(fork_join, a_stop_request_reaches_children_wherever_they_run) {
    const auto check = [] {
        coppice::inplace_stop_source source;
        coppice::internal::atomic<int> saw{0};
        const auto wait = [&](coppice::inplace_stop_token token) {
            while (!token.stop_requested()) std::this_thread::yield();
            saw.fetch_add(1, coppice::internal::relaxed);
        };
        fork_join(
            source.get_token(), [&] { source.request_stop(); }, wait,
            [&] { fork_join([&] {}, wait); });
        EXPECT_EQ(saw.load(coppice::internal::relaxed), 2);
        EXPECT_FALSE(coppice::fork_join_stop_token().stop_possible());
    };
    check();
    thread_pool pool(2);
    for (int round = 0; round != 100; ++round) pool.run(check);
}

TEST(fork_join, a_stolen_child_has_the_token_in_force_at_its_fork) {
    thread_pool pool(2);
    for (int round = 0; round != 100; ++round) {
        pool.run([] {
            coppice::inplace_stop_source outer, inner;
            meeting m;
            const auto is = [](const coppice::inplace_stop_source& source) {
                return coppice::fork_join_stop_token() == source.get_token();
            };
            const auto [first, second] = fork_join(
                outer.get_token(),
                [&] {
                    const auto [a, b] = fork_join(
                        inner.get_token(),
                        [&] {
                            m.come();
                            return is(inner);
                        },
                        [&] { return is(inner); });
                    return a && b;
                },
                [&] {
                    m.come();
                    return is(outer);
                });
            EXPECT_TRUE(first);
            EXPECT_TRUE(second);
        });
    }
}

long deep(long n) {
    if (n == 0) return 0;
    const auto [a, b] = fork_join([n] { return deep(n - 1); }, [] { return 1L; });
    return a + b;
}

TEST(fork_join, functions_that_do_not_fit_into_the_deque_are_called_directly) {
    thread_pool pool(2);
    long depth = 3 * coppice::internal::fork_deque::capacity;
    EXPECT_EQ(pool.run([depth] { return deep(depth); }), depth);
}

TEST(fork_join, allocates_nothing) {
    thread_pool pool(1);
    EXPECT_EQ(pool.run([] {
        (void)fib(5);
        const coppice::test::allocation_count count;
        (void)fib(15);
        return count.so_far();
    }),
              0u);
}

TEST(fork_join, named_callables_are_called_in_place) {
    struct counter {
        int calls = 0;
        int operator()() { return ++calls; }
    };
    counter a, b;
    thread_pool lone(1);  // its worker calls them in order
    EXPECT_EQ(lone.run([&] { return fork_join(a, b, a); }), std::tuple(1, 1, 2));
    EXPECT_EQ(b.calls, 1);
    thread_pool pool(2);
    pool.run([&] { fork_join(a, b); });
    EXPECT_EQ(a.calls, 3);
    EXPECT_EQ(b.calls, 2);
}

// Small objects that look as if a copy could replace them.
struct counts_in_const {
    int operator()() const { return ++calls; }
    mutable int calls = 0;
};
struct counts_behind_a_reference {  // like a closure: no assignment, no default constructor, no
                                    // aggregate
    explicit counts_behind_a_reference(int& to) noexcept : total(to) {}
    int operator()() const { return total += ++calls; }
    int& total;
    mutable int calls = 0;
};
struct prefers_non_const {
    int operator()() { return 1; }
    int operator()() const { return 2; }
};
struct only_moves {
    explicit only_moves(int v) noexcept : value(v) {}
    only_moves(only_moves&&) = default;
    only_moves(const only_moves&) = delete;
    int operator()() const { return value; }
    int value;
};
struct counts_atomically {
    int operator()() const { return calls.fetch_add(1, coppice::internal::relaxed) + 1; }
    mutable coppice::internal::atomic<int> calls{0};
};

void fork_what_cannot_be_copied_unnoticed() {
    counts_in_const a, b, c;
    EXPECT_EQ(fork_join(a, b, c), std::tuple(1, 1, 1));
    EXPECT_EQ(fork_join(std::as_const(a), b, std::as_const(c)), std::tuple(2, 2, 2));
    EXPECT_EQ(fork_join(counts_in_const(), counts_in_const()), std::tuple(1, 1));
    int total = 0, other = 0;
    counts_behind_a_reference d(total), e(other);
    fork_join(d, e);
    EXPECT_EQ(fork_join(e, d), std::tuple(3, 3)) << "each has counted 1 + 2";
    prefers_non_const f, g;
    EXPECT_EQ(fork_join(f, g), std::tuple(1, 1));
    EXPECT_EQ(fork_join(f, std::as_const(g), f), std::tuple(1, 2, 1));
    EXPECT_EQ(fork_join(prefers_non_const(), prefers_non_const()), std::tuple(1, 1));
    only_moves h(8);
    EXPECT_EQ(fork_join(h, only_moves(9), only_moves(10)), std::tuple(8, 9, 10));
    counts_atomically i, j;
    fork_join(i, j);
    EXPECT_EQ(fork_join(i, j, counts_atomically()), std::tuple(2, 2, 1));
    auto next = [n = 0]() mutable { return ++n; };
    auto captured = [k = counts_in_const()] { return k(); };
    fork_join(next, captured);
    EXPECT_EQ(fork_join(captured, next), std::tuple(2, 2));
    coppice::inplace_stop_source source;
    EXPECT_EQ(fork_join(source.get_token(), captured, next), std::tuple(3, 3));
    EXPECT_EQ(fork_join(captured), std::tuple(4));
}

TEST(fork_join, no_copy_is_noticed) {
    fork_what_cannot_be_copied_unnoticed();
    thread_pool pool(2);
    for (int round = 0; round != 100; ++round) pool.run(fork_what_cannot_be_copied_unnoticed);
}

TEST(fork_join, nested_pools_do_not_mix) {
    thread_pool outer(2), inner(2);
    const auto both_inside = [](thread_pool& pool) {
        const auto [a, b] =
            fork_join([&] { return pool.is_current(); }, [&] { return pool.is_current(); });
        return a && b;
    };
    for (int round = 0; round != 100; ++round) {
        EXPECT_TRUE(outer.run([&] {
            const auto [a, b] =
                fork_join([&] { return inner.run([&] { return both_inside(inner); }); },
                          [&] { return both_inside(outer); });
            return a && b;
        }));
    }
}

}  // namespace
