// Callables of every kind are forked, run, looped over, and scheduled.
#include <coppice/contract/group.hpp>
#include <coppice/pool/contract_pool.hpp>
#include <coppice/pool/fork_join.hpp>
#include <coppice/pool/parallel.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>

namespace {

using namespace coppice;
using namespace coppice::internal;

int seven() {
    return 7;
}
int eight() noexcept {
    return 8;
}
void nothing() {}
void fails() {
    throw std::runtime_error("fails");
}
bool stops(inplace_stop_token token) {
    return token.stop_possible();
}
int& same() {
    static int object = 9;
    return object;
}

struct constant {
    int operator()() const { return value; }
    int value = 1;
};
struct move_only {
    explicit move_only(int v) : value(std::make_unique<int>(v)) {}
    int operator()() { return (*value)++; }
    std::unique_ptr<int> value;
};
struct immovable_callable : immovable {
    int operator()() & { return 3; }
    int operator()() && = delete;
};

void check_forks() {
    EXPECT_EQ(fork_join(seven, eight), std::tuple(7, 8));
    EXPECT_EQ(fork_join(seven), std::tuple(7));
    EXPECT_EQ(fork_join(&seven, eight, nothing, seven), std::tuple(7, 8, std::monostate(), 7));
    int (*const pointer)() = seven;
    int (&reference)() = seven;
    EXPECT_EQ(fork_join(pointer, reference), std::tuple(7, 7));
    EXPECT_EQ(&std::get<1>(fork_join(seven, same)), &same());
    EXPECT_THROW(fork_join(fails, seven), std::runtime_error);
    EXPECT_THROW(fork_join(seven, fails), std::runtime_error);
    inplace_stop_source source;
    EXPECT_EQ(fork_join(source.get_token(), stops, &stops), std::tuple(true, true));
    EXPECT_EQ(fork_join(stops, stops), std::tuple(false, false));
    // By std::invoke's rules a member function is called on the token that it is given.
    EXPECT_EQ(fork_join(source.get_token(), &inplace_stop_token::stop_possible,
                        &inplace_stop_token::stop_requested),
              std::tuple(true, false));
    const constant object{.value = 5};
    EXPECT_EQ(fork_join(object, constant(), std::as_const(object)), std::tuple(5, 1, 5));
    move_only counts(1);
    EXPECT_EQ(fork_join(counts, move_only(10)), std::tuple(1, 10));
    EXPECT_EQ(*counts.value, 2);
    immovable_callable stays;
    EXPECT_EQ(fork_join(stays, stays), std::tuple(3, 3));
    const std::function<int()> erased = seven;
    EXPECT_EQ(fork_join(erased, std::ref(seven)), std::tuple(7, 7));
    EXPECT_EQ(fork_join(std::bind(&constant::operator(), &object), seven), std::tuple(5, 7));
}

TEST(callables, of_every_kind_are_forked) {
    check_forks();
    for (const std::size_t threads : {2u, 4u}) {
        thread_pool pool(threads);
        for (int i = 0; i != 200; ++i) pool.run(check_forks);
    }
}

// Two calls that cannot end unless both run at the same time: the second one is stolen.
atomic<int> there{0};
void come() {
    there.fetch_add(1, relaxed);
    while (there.load(relaxed) < 2) thread_yield();
}

TEST(callables, a_plain_function_is_stolen) {
    thread_pool pool(2);
    for (int i = 0; i != 50; ++i) {
        there.store(0, relaxed);
        pool.run([] { fork_join(come, come); });
        EXPECT_EQ(there.load(relaxed), 2);
    }
}

template <class Pool>
void check_runs(Pool& pool) {
    EXPECT_EQ(pool.run(seven), 7);
    EXPECT_EQ(pool.run(&eight), 8);
    pool.run(nothing);
    EXPECT_EQ(&pool.run(same), &same());
    EXPECT_EQ(pool.run(move_only(4)), 4);
    EXPECT_EQ(*pool.run([] { return std::make_unique<int>(6); }), 6);
    const constant object{.value = 5};
    EXPECT_EQ(pool.run(object), 5);
    EXPECT_EQ(pool.run(std::ref(object)), 5);
    EXPECT_THROW(pool.run(fails), std::runtime_error);
}

TEST(callables, of_every_kind_are_run_by_every_pool) {
    thread_pool threads(2);
    check_runs(threads);
    queue_pool<mutex_queue> queue(2);
    check_runs(queue);
    contract_pool contracts(2);
    check_runs(contracts);
}

atomic<int> sum{0};
void add(int i) {
    sum.fetch_add(i, relaxed);
}
void add_all(int first, int last) {
    for (; first != last; ++first) add(first);
}
int twice(int i) {
    return 2 * i;
}
int plus(int a, int b) {
    return a + b;
}
struct number {
    number join(number other) const { return {value + other.value}; }
    int value = 0;
};
number number_of(int i) {
    return {i};
}

TEST(callables, of_every_kind_are_called_by_loops) {
    const auto check = [] {
        sum.store(0, relaxed);
        EXPECT_TRUE(parallel_for(0, 100, add));
        EXPECT_TRUE(parallel_for(0, 100, &add_all));
        EXPECT_EQ(sum.load(relaxed), 2 * 4950);
        EXPECT_EQ(parallel_reduce(0, 100, 0, twice, plus), 9900);
        EXPECT_EQ(parallel_reduce(0, 100, number(), number_of, &number::join).value, 4950);
    };
    check();
    thread_pool(2).run(check);
}

int runs = 0;
void run_once() {
    ++runs;
}
void run_and_release(work_contract_token& token) {
    ++runs;
    token.release();
}
void count_error(std::exception_ptr) {
    runs += 10;
}

TEST(callables, of_every_kind_can_be_contracts) {
    work_contract_group group(8);
    runs = 0;
    const auto all = [&] {
        while (group.execute_next_contract()) {
        }
    };
    work_contract a = group.create_contract(run_once, initial_state::scheduled);
    work_contract b = group.create_contract(&run_and_release, run_once, initial_state::scheduled);
    all();
    EXPECT_EQ(runs, 3);
    work_contract c = group.create_contract(fails, nothing, count_error, initial_state::scheduled);
    all();
    EXPECT_EQ(runs, 13);
    work_contract d =
        group.create_contract(&work_contract_token::release, run_once, initial_state::scheduled);
    all();
    EXPECT_EQ(runs, 14);
    EXPECT_FALSE(d.valid());
    work_contract e =
        group.create_contract(move_only(1), [own = std::make_unique<int>(1)] { ++runs; });
    e.release();
    all();
    EXPECT_EQ(runs, 15);
}

}  // namespace
