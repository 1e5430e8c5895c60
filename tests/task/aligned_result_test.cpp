// Results with a larger alignment than allocations have: in pooled frames, and in given frames.
#include <coppice/exec/just.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/task/task.hpp>
#include <coppice/task/wait_for_tasks.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>

namespace {

namespace ex = coppice::execution;
using coppice::task;
using coppice::wait_for_tasks;
using coppice::this_thread::sync_wait;

// Counts objects that were made at an address that does not have their alignment.
template <std::size_t Align>
class alignas(Align) aligned {
public:
    explicit aligned(int v) noexcept : value(v) { look(); }
    aligned(const aligned& other) noexcept : value(other.value) { look(); }
    int value;
    static inline int misplaced = 0;

private:
    void look() const noexcept {
        // volatile, because the compiler assumes that the address is right
        const volatile std::uintptr_t place = reinterpret_cast<std::uintptr_t>(this);
        if (place % Align != 0) ++misplaced;
    }
};
using half_line = aligned<32>;
using line = aligned<64>;

template <class T>
task<T> gives(int value) {
    co_await ex::just();
    co_return T(value);
}
template <class T>
task<T> gives(std::allocator_arg_t, std::allocator<std::byte>, int value) {
    co_await ex::just();
    co_return T(value);
}
// The kept outcome of a task is in its frame.
template <class T, class... Args>
task<int> sums(Args... args) {
    task<T> first = gives<T>(args..., 1), second = gives<T>(args..., 2);
    co_await wait_for_tasks(first, second);
    const T taken = co_await std::move(first);
    co_return taken.value + std::move(second).get().value;
}

TEST(aligned_result, may_be_aligned_to_a_cache_line) {
    for (int i = 0; i != 50; ++i) {
        EXPECT_EQ(sync_wait(sums<line>()), std::tuple(3));
        EXPECT_EQ(sync_wait(sums<half_line>()), std::tuple(3));
    }
    EXPECT_EQ(line::misplaced + half_line::misplaced, 0);
}

TEST(aligned_result, may_be_aligned_to_half_a_cache_line_in_a_given_frame) {
    const std::allocator<std::byte> allocator;
    for (int i = 0; i != 50; ++i) {
        EXPECT_EQ(sync_wait(sums<half_line>(std::allocator_arg, allocator)), std::tuple(3));
    }
    EXPECT_EQ(half_line::misplaced, 0);
}

}  // namespace
