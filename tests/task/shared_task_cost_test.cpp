// What a shared_task costs: one allocation, which may fail, and constant stack.
#include <coppice/task/shared_task.hpp>

#include "allocations.hpp"
#include "shared_tasks.hpp"
#include "small_stack.hpp"
#include "turnstile.hpp"
#include "witness.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <new>
#include <string>

namespace {

namespace ex = coppice::execution;
using coppice::shared_task;
using coppice::task;
using coppice::test::counted;
using coppice::test::counting_receiver;
using coppice::test::counts;
using coppice::test::run;
using coppice::test::turnstile;
using coppice::test::witness;

TEST(shared_task, allocates_only_when_it_is_made_and_recycles_that) {
    int runs = 0;
    const auto waits = [](shared_task<std::string> s) -> task<std::size_t> {
        co_return (co_await s).size();
    };
    const auto use = [&] {
        const auto s = counted(runs);
        std::size_t sum = 0;
        for (int i = 0; i != 3; ++i) sum += run(waits(s));
        return sum;
    };
    use();
    const std::size_t before = coppice::test::allocations();
    for (int i = 0; i != 100; ++i) EXPECT_EQ(use(), 18u);
    EXPECT_EQ(coppice::test::allocations(), before);
}

template <class T>
struct failing_allocator {
    using value_type = T;
    failing_allocator() = default;
    template <class U>
    failing_allocator(const failing_allocator<U>&) {}
    T* allocate(std::size_t) { throw std::bad_alloc(); }
    void deallocate(T*, std::size_t) {}
    friend bool operator==(const failing_allocator&, const failing_allocator&) = default;
};
[[gnu::noinline]] shared_task<int> without_memory(std::allocator_arg_t,
                                                  failing_allocator<std::byte>, witness) {
    co_return 1;
}

TEST(shared_task, an_allocation_that_fails_throws_from_the_call) {
    int alive = 0;
    EXPECT_THROW(static_cast<void>(without_memory(std::allocator_arg,
                                                  failing_allocator<std::byte>(), witness(alive))),
                 std::bad_alloc);
    EXPECT_EQ(alive, 0);
}

shared_task<int> chained(int links, turnstile* gate) {
    if (links == 0) {
        if (gate != nullptr) co_await gate->wait();
        co_return 0;
    }
    const auto below = chained(links - 1, gate);
    co_return 1 + co_await below;
}

TEST(shared_task, a_chain_of_ten_thousand_uses_constant_stack) {
    coppice::test::on_a_stack_of(256 * 1024, [] {
        const auto waits = [](shared_task<int> s) -> task<int> { co_return co_await s; };
        EXPECT_EQ(run(waits(chained(10'000, nullptr))), 10'000);
        turnstile gate;
        counts seen;
        auto op = ex::connect(waits(chained(10'000, &gate)), counting_receiver(seen));
        ex::start(op);
        gate.let_pass();
        EXPECT_EQ(seen.values, 1);
    });
}

}  // namespace
