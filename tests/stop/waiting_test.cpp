// How stop sources wait and wake: asleep, without a timeout, and without a system call while no
// thread sleeps; and the same sources where membarrier(2) is missing.
#include "call_filter.hpp"
#include "emulated.hpp"
#include "families.hpp"
#include "sanitizers.hpp"
#include "without_call.hpp"

#include <coppice/stop/internal/list.hpp>
#include <coppice/stop/internal/sleepers.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

// From here on the process may not make this system call, or any other.
void forbid(unsigned call, unsigned action = SECCOMP_RET_KILL_PROCESS) {
    if (!filter_calls(call, action)) std::_Exit(99);
}
void forbid_all_but(unsigned call) {
    if (!filter_calls(call, SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS)) std::_Exit(99);
}

// Operations that need no waiting: register, remove, request with and without a callback, register
// late, and end inside the callback, with and without the source.
template <class Family>
void use_without_waiting() {
    using token = typename Family::token;
    int runs = 0;
    auto count = [&] { ++runs; };
    using callback = stop_callback_for_t<token, decltype(count)>;
    typename Family::source first;
    for (int i = 0; i != 100; ++i) callback removed(Family::token_of(first), count);
    first.request_stop();
    callback late(Family::token_of(first), count);

    std::optional<typename Family::source> second(std::in_place);
    {
        callback registered(Family::token_of(*second), count);
        second->request_stop();
    }
    struct end {
        std::function<void()>* what;
        void operator()() const { (*what)(); }
    };
    std::optional<typename Family::source> third(std::in_place);
    std::optional<stop_callback_for_t<token, end>> self;
    std::function<void()> end_all = [&] {
        self.reset();
        third.reset();
    };
    self.emplace(Family::token_of(*third), end{&end_all});
    third->request_stop();
    if (runs != 2 || self || third) std::_Exit(98);
}

template <class Family>
class stop_waiting : public testing::Test {};
using families = testing::Types<inplace_family, single_family, finite_family<3, 1>,
                                asymmetric_family<1, 0>, asymmetric_family<3, 2>>;
TYPED_TEST_SUITE(stop_waiting, families);

// The kernel kills the child at its first futex call, or at its first call of any kind.
TYPED_TEST(stop_waiting, without_waiters_no_operation_makes_a_system_call) {
    if (emulated) GTEST_SKIP() << no_filters_there;
    constexpr bool needs_membarrier = std::is_base_of_v<asymmetric_family<1, 0>, TypeParam> ||
                                      std::is_base_of_v<asymmetric_family<3, 2>, TypeParam>;
    EXPECT_EXIT(
        {
            if (sanitized || needs_membarrier) {
                forbid(SYS_futex);
            } else {
                forbid_all_but(SYS_exit_group);
            }
            use_without_waiting<TypeParam>();
            std::_Exit(0);
        },
        testing::ExitedWithCode(0), "");
}

TEST(stop_waiting_control, the_filters_kill_a_process_that_makes_a_system_call) {
    if (emulated) GTEST_SKIP() << no_filters_there;
    EXPECT_EXIT(
        {
            forbid(SYS_futex);
            atomic<std::uint32_t> word{0};
            futex_wake_all(word);
            std::_Exit(0);
        },
        testing::KilledBySignal(SIGSYS), "");
    EXPECT_EXIT(
        {
            forbid_all_but(SYS_exit_group);
            ::getppid();
            std::_Exit(0);
        },
        testing::KilledBySignal(SIGSYS), "");
}

TEST(stop_waiting_shared, without_waiters_no_operation_makes_a_system_call) {
    if (emulated) GTEST_SKIP() << no_filters_there;
    EXPECT_EXIT(
        {
            stop_source source;
            stop_token token = source.get_token();
            int runs = 0;
            auto count = [&runs] { ++runs; };
            token.subscribe(count).unsubscribe();  // allocates the node
            if (sanitized) {
                forbid(SYS_futex);
            } else {
                forbid_all_but(SYS_exit_group);
            }
            for (int i = 0; i != 100; ++i) {
                stop_callback removed(token, count);
                stop_token copy(token);
                token.subscribe(count).unsubscribe();
            }
            stop_callback registered(token, count);
            stop_subscription subscription = token.subscribe(count);
            source.request_stop({1, "one"});
            stop_callback late(token, count);
            subscription.unsubscribe();
            std::_Exit(runs == 3 ? 0 : 98);
        },
        testing::ExitedWithCode(0), "");
}

// Returns what the kernel says about a thread of this process: the number and the arguments of its
// system call, or less if the kernel may not say that.
struct kernel_view {
    bool asleep = false;
    bool has_timeout = false;
};
kernel_view look_at(long thread) {
    const std::string folder = "/proc/self/task/" + std::to_string(thread);
    kernel_view view;
    long call = -1;
    std::array<unsigned long, 4> arguments{};
    // The kernel numbers the calls of the emulator, which are not those of this program.
    const char* const calls = emulated ? "/none" : "/syscall";
    if (std::FILE* const file = std::fopen((folder + calls).c_str(), "r")) {
        const int read = std::fscanf(file, "%ld %lx %lx %lx %lx", &call, &arguments[0],
                                     &arguments[1], &arguments[2], &arguments[3]);
        std::fclose(file);
        if (read == 5) {
            view.asleep = call == SYS_futex && (arguments[1] & FUTEX_CMD_MASK) == FUTEX_WAIT;
            view.has_timeout = arguments[3] != 0;
            return view;
        }
        if (read >= 0) return view;  // it runs, or sleeps elsewhere
    }
    if (std::FILE* const file = std::fopen((folder + "/stat").c_str(), "r")) {
        char state = 0;
        if (std::fscanf(file, "%*d %*s %c", &state) == 1) view.asleep = state == 'S';
        std::fclose(file);
    }
    return view;
}
long this_thread_id() {
    return ::syscall(SYS_gettid);
}
// Returns when the thread sleeps. If the thread spins forever, this test times out.
void await_sleep(const atomic<long>& thread) {
    for (;;) {
        const long id = thread.load(acquire);
        const kernel_view view = id != 0 ? look_at(id) : kernel_view{};
        if (view.asleep) {
            EXPECT_FALSE(view.has_timeout) << "a sleeper relies on a timeout";
            return;
        }
        std::this_thread::yield();
    }
}

// The destructor of a callback that runs on another thread falls asleep, and the callback's end
// wakes it.
TYPED_TEST(stop_waiting, the_destructor_sleeps_until_its_callback_has_returned) {
    for (int round = 0; round != 20; ++round) {
        typename TypeParam::source source;
        atomic<bool> entered{false};
        atomic<long> remover{0};
        bool returned = false;
        auto f = [&] {
            entered.store(true, release);
            await_sleep(remover);
            returned = true;
        };
        std::optional<stop_callback_for_t<typename TypeParam::token, decltype(f)>> callback;
        callback.emplace(TypeParam::token_of(source), f);
        std::thread requester([&] { source.request_stop(); });
        while (!entered.load(acquire)) std::this_thread::yield();
        remover.store(this_thread_id(), release);
        callback.reset();
        EXPECT_TRUE(returned);
        requester.join();
    }
}

TEST(stop_waiting_shared, unsubscribe_sleeps_until_its_function_has_returned) {
    for (int round = 0; round != 20; ++round) {
        stop_source source;
        atomic<bool> entered{false};
        atomic<long> remover{0};
        bool returned = false;
        stop_subscription subscription = source.get_token().subscribe([&] {
            entered.store(true, release);
            await_sleep(remover);
            returned = true;
        });
        std::thread requester([&] { source.request_stop(); });
        while (!entered.load(acquire)) std::this_thread::yield();
        remover.store(this_thread_id(), release);
        EXPECT_EQ(subscription.unsubscribe(), unsubscribed::ran);
        EXPECT_TRUE(returned);
        requester.join();
    }
}

// A thread that finds the list locked for long, because the holder was preempted, sleeps too.
TEST(stop_waiting_list, a_thread_that_waits_for_the_lock_sleeps) {
    for (int round = 0; round != 20; ++round) {
        stop_list list;
        atomic<long> waiter{0};
        const stop_list::flags bits = list.lock();
        std::thread second([&] {
            waiter.store(this_thread_id(), release);
            list.unlock(list.lock());
        });
        await_sleep(waiter);
        list.unlock(bits);
        second.join();
    }
}

// Several threads sleep at once, on words of different sources. Each is woken by the end of its own
// callback.
TEST(stop_waiting_many, each_sleeper_is_woken_by_its_own_callback) {
    constexpr int pairs = 3;
    std::array<single_inplace_stop_source, pairs> sources;
    std::array<atomic<long>, pairs> removers{};
    std::array<atomic<bool>, pairs> entered{};
    std::array<atomic<bool>, pairs> go_on{};
    std::array<atomic<bool>, pairs> gone{};
    std::array<std::thread, pairs> requesting;
    std::array<std::thread, pairs> removing;
    for (std::size_t i = 0; i != pairs; ++i) {
        removing[i] = std::thread([&, i] {
            auto f = [&, i] {
                entered[i].store(true, release);
                while (!go_on[i].load(acquire)) std::this_thread::yield();
            };
            std::optional<single_inplace_stop_callback<decltype(f)>> callback;
            callback.emplace(sources[i].get_token(), f);
            requesting[i] = std::thread([&, i] { sources[i].request_stop(); });
            while (!entered[i].load(acquire)) std::this_thread::yield();
            removers[i].store(this_thread_id(), release);
            callback.reset();
            gone[i].store(true, release);
        });
    }
    for (const atomic<long>& remover : removers) await_sleep(remover);
    for (std::size_t i = pairs; i-- != 0;) {
        for (std::size_t others = 0; others != i; ++others) {
            EXPECT_FALSE(gone[others].load(acquire)) << "woken by another callback's end";
        }
        go_on[i].store(true, release);
        removing[i].join();
        requesting[i].join();
    }
}

TEST(stop_fallback, is_used_where_membarrier_is_missing) {
    EXPECT_EQ(light_fence_is_free.load(relaxed),
              ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0);
}

// With a kernel or a filter that lacks membarrier(2), everything behaves the same, with full
// fences.
TEST(stop_fallback, everything_works_without_membarrier) {
    expect_passes_without(
        SYS_membarrier, ENOSYS,
        "stop_fallback.is_used*:stop_family*:stop_finite*:stop_inplace*:stop_shared*:"
        "stop_subscription*:stop_race*:stop_waiting*sleep*:-*terminates*:*stops_the_process*");
}

// A filter that is installed later removes what light fences rely on: the process stops rather than
// lose a wake-up.
TEST(stop_fallback, membarrier_that_vanishes_stops_the_process) {
    if (emulated) GTEST_SKIP() << no_filters_there;
    if (!light_fence_is_free.load(relaxed)) GTEST_SKIP() << "membarrier is missing here";
    EXPECT_DEATH(
        {
            forbid(SYS_membarrier, SECCOMP_RET_ERRNO | EPERM);
            asymmetric_inplace_stop_source<> source;
            source.request_stop();
        },
        "membarrier");
}

}  // namespace
