// token/callback.hpp and token/bind_env.hpp: callables as completion tokens.
#include <coppice/execution.hpp>
#include <coppice/stop_token.hpp>
#include <coppice/token.hpp>
#include <coppice/token/bind_env.hpp>

#include "allocations.hpp"
#include "system.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <tuple>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace ex = coppice::execution;

TEST(callback, gets_the_error_and_the_result) {
    test::system os;
    std::vector<int> got;
    os.echo(7, [&](std::error_code error, int n) {
        EXPECT_FALSE(error);
        got.push_back(n);
    });
    os.echo(-EPIPE, [&](std::error_code error, int) {
        EXPECT_EQ(error, std::errc::broken_pipe);
        got.push_back(0);
    });
    EXPECT_TRUE(got.empty());
    os.run();
    EXPECT_EQ(got, (std::vector{7, 0}));
}

TEST(callback, may_be_move_only_an_lvalue_or_a_function) {
    test::system os;
    static int sum;
    sum = 0;
    os.echo(1, [p = std::make_unique<int>(10)](std::error_code, int n) { sum += *p + n; });
    auto add = [](std::error_code, int n) { sum += n; };
    os.echo(100, add);
    os.echo(200, std::as_const(add));
    void (*function)(std::error_code, int) = [](std::error_code, int n) { sum += n; };
    os.echo(1000, function);
    os.run();
    EXPECT_EQ(sum, 1311);
}

// A callback with a larger alignment and size than operator new and a frame provide.
template <std::size_t Align>
struct alignas(Align) aligned {
    int value = 5;
    bool is_in_place() const noexcept {
        // volatile, because the compiler assumes that the address is right
        const volatile std::uintptr_t place = reinterpret_cast<std::uintptr_t>(this);
        return place % Align == 0;
    }
};
template <std::size_t Align>
void captures_aligned() {
    test::system os;
    int sum = 0;
    for (int i = 0; i != 20; ++i) {
        os.echo(1, [&sum, a = aligned<Align>()](std::error_code, int) {
            EXPECT_TRUE(a.is_in_place());
            sum += a.value;
        });
    }
    os.run();
    EXPECT_EQ(sum, 100);
}

TEST(callback, may_capture_an_overaligned_object) {
    captures_aligned<32>();
    captures_aligned<64>();
    captures_aligned<256>();
}

TEST(callback, an_allocation_whose_size_overflows_throws) {
    recycling_allocator<long> allocator;
    EXPECT_THROW((void)allocator.allocate(~std::size_t{0} / sizeof(long) + 2), std::bad_alloc);
    EXPECT_THROW((void)allocator.allocate(~std::size_t{0}), std::bad_alloc);
}

TEST(callback, allocates_nothing_in_steady_state) {
    test::system os;
    struct chain {
        test::system& os;
        int left;
        void next() {
            os.echo(left, [this](std::error_code, int) {
                if (--left != 0) next();
            });
        }
    };
    chain first{os, 10};
    first.next();
    os.run();
    const allocation_count count;
    chain second{os, 500};
    second.next();
    os.run();
    EXPECT_EQ(count.so_far(), 0u);
}

// Counts, and serves one block at a time from memory of its own.
struct arena {
    alignas(16) std::byte memory[512];
    int taken = 0;
    int most = 0;
    int total = 0;
};
template <class T>
struct arena_allocator {
    using value_type = T;
    explicit arena_allocator(arena& a) noexcept : of(&a) {}
    template <class U>
    arena_allocator(const arena_allocator<U>& other) noexcept : of(other.of) {}
    T* allocate(std::size_t) {
        ++of->total;
        of->most = std::max(of->most, ++of->taken);
        return reinterpret_cast<T*>(of->memory);
    }
    void deallocate(T*, std::size_t) noexcept { --of->taken; }
    bool operator==(const arena_allocator&) const = default;
    arena* of;
};

TEST(callback, its_allocator_gets_the_state_back_before_it_is_called) {
    test::system os;
    arena memory;
    const auto env = ex::prop(get_allocator, arena_allocator<std::byte>(memory));
    int called = 0;
    os.echo(1, bind_env(env, [&](std::error_code, int) {
                EXPECT_EQ(memory.taken, 0);
                os.echo(2, bind_env(env, [&](std::error_code, int) { ++called; }));
                ++called;
            }));
    EXPECT_EQ(memory.taken, 1);
    os.run();
    EXPECT_EQ(called, 2);
    EXPECT_EQ(memory.most, 1);
    EXPECT_EQ(memory.total, 2);
    EXPECT_EQ(memory.taken, 0);
}

template <class T>
struct throwing_allocator {
    using value_type = T;
    throwing_allocator() = default;
    template <class U>
    throwing_allocator(const throwing_allocator<U>&) noexcept {}
    T* allocate(std::size_t) { throw std::bad_alloc(); }
    void deallocate(T*, std::size_t) noexcept {}
    bool operator==(const throwing_allocator&) const = default;
};

TEST(callback, an_allocation_that_fails_throws_and_starts_nothing) {
    test::system os;
    EXPECT_THROW(os.echo(1, bind_env(ex::prop(get_allocator, throwing_allocator<std::byte>()),
                                     [](std::error_code, int) { ADD_FAILURE(); })),
                 std::bad_alloc);
    EXPECT_EQ(os.pending(), 0);
}

TEST(callback, a_million_completions_inside_their_initiations_use_constant_stack) {
    struct chain {
        int left = 1'000'000;
        void next() {
            at_once(1, [this](std::error_code, int n) {
                left -= n;
                if (left != 0) next();
            });
        }
    } c;
    c.next();
    EXPECT_EQ(c.left, 0);
}

TEST(callback, a_callback_that_becomes_ready_inside_another_runs_after_it) {
    std::vector<int> order;
    at_once(1, [&](std::error_code, int) {
        at_once(2, [&](std::error_code, int) { order.push_back(2); });
        at_once(3, [&](std::error_code, int) { order.push_back(3); });
        order.push_back(1);
    });
    EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST(callback, blocking_inside_a_callback_runs_those_queued_behind_it) {
    int got = 0;
    at_once(1, [&](std::error_code, int) {
        completion<int> kept;
        at_once(2, [&](std::error_code, int) { std::move(kept)(std::error_code(), 5); });
        got = completion_token_transform<void(std::error_code, int)>(
            block, [&](completion<int> done) noexcept { kept = done; });
    });
    EXPECT_EQ(got, 5);
}

TEST(callback, sync_wait_inside_a_callback_runs_those_queued_behind_it) {
    std::optional<std::tuple<int>> got;
    at_once(1, [&](std::error_code, int) {
        completion<int> kept;
        at_once(2, [&](std::error_code, int) {
            at_once(3, [&](std::error_code, int n) { std::move(kept)(std::error_code(), n); });
        });
        got = this_thread::sync_wait(completion_token_transform<void(std::error_code, int)>(
            use_await, [&](completion<int> done) noexcept { kept = done; }));
    });
    EXPECT_EQ(got, std::tuple(3));
}

TEST(callback, its_stop_token_cancels_the_operation) {
    for (const bool before : {true, false}) {
        int called = 0;
        inplace_stop_source inplace;
        stop_source shared;
        const auto expect_cancelled = [&](std::error_code error) {
            EXPECT_EQ(error, std::errc::operation_canceled);
            ++called;
        };
        const auto stop = [&] {
            inplace.request_stop();
            shared.request_stop();
        };
        if (before) stop();
        until_stopped(bind_env(ex::prop(get_stop_token, inplace.get_token()), expect_cancelled));
        until_stopped(bind_env(ex::prop(get_stop_token, shared.get_token()), expect_cancelled));
        EXPECT_EQ(called, before ? 2 : 0);
        stop();
        EXPECT_EQ(called, 2);
    }
}

TEST(callback, its_deadline_reaches_the_operation) {
    const ex::instant deadline(123);
    completion_token_transform<void(std::error_code)>(
        bind_env(ex::prop(ex::get_deadline, deadline), [](std::error_code) {}),
        [&](completion<> done) noexcept {
            EXPECT_EQ(ex::get_deadline(ex::get_env(done)), deadline);
            std::move(done)(std::error_code());
        });
}

TEST(callback, is_called_on_its_scheduler) {
    ex::run_loop loop;
    const std::thread::id here = std::this_thread::get_id();
    int called = 0;
    const auto env = ex::prop(ex::get_scheduler, loop.get_scheduler());
    const auto expect_here = [&](std::error_code, int n) {
        EXPECT_EQ(std::this_thread::get_id(), here);
        if ((called += n) == 3) loop.finish();
    };
    elsewhere(1, bind_env(env, expect_here));
    at_once(2, bind_env(env, expect_here));
    EXPECT_EQ(called, 0);
    loop.run();
    EXPECT_EQ(called, 3);
}

TEST(callback, a_callback_that_runs_a_scheduler_runs_callbacks_that_are_called_there) {
    ex::run_loop loop;
    const auto env = ex::prop(ex::get_scheduler, loop.get_scheduler());
    bool called = false;
    at_once(1, [&](std::error_code, int) {
        at_once(2, bind_env(env, [&](std::error_code, int) {
                    called = true;
                    loop.finish();
                }));
        loop.run();
        EXPECT_TRUE(called);
    });
    EXPECT_TRUE(called);
}

TEST(callback, a_million_callbacks_on_an_inline_scheduler_use_constant_stack) {
    struct chain {
        int left = 1'000'000;
        void next() {
            at_once(1, bind_env(ex::prop(ex::get_scheduler, ex::inline_scheduler()),
                                [this](std::error_code, int n) {
                                    if ((left -= n) != 0) next();
                                }));
        }
    } c;
    c.next();
    EXPECT_EQ(c.left, 0);
}

TEST(callback, may_own_and_destroy_the_object_of_its_operation) {
    auto os = std::make_unique<test::system>();
    test::system& kept = *os;
    bool called = false;
    kept.echo(1, [&, os = std::move(os)](std::error_code, int) mutable {
        os.reset();
        called = true;
    });
    kept.run_one();
    EXPECT_TRUE(called);
}

TEST(bind_env, gives_a_callable_an_environment) {
    const auto bound = bind_env(ex::prop(ex::get_deadline, ex::instant(5)), [] { return 1; });
    EXPECT_EQ(ex::get_deadline(ex::get_env(bound)), ex::instant(5));
}

}  // namespace
