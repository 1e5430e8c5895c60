// transfer: bounds the stack that tasks use when they call one another; for task.
#pragma once
// Each thread that runs tasks does so in a loop. A task that finds itself far down the stack does
// not call its child, nor does one that ends there resume its parent: it puts that off and
// suspends, all that lies on the stack does too, and the loop goes on with what was put off. So a
// million awaits in a row and a recursion of any depth use constant stack, whatever a compiler
// makes of symmetric transfer: g++ 12 makes tail calls of it only from -O2 on and without
// sanitizers.
//
// A coroutine that is resumed from anywhere but a task, by resume_from_outside(), gets a loop of
// its own: its resumer may wait for it.

#include <coppice/base/atomic.hpp>
#include <coppice/task/task_chain.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>

namespace coppice::execution {

// The innermost loop of a thread is current. Threads: its own.
class [[gnu::visibility("default")]] transfer_loop : immovable {
public:
    // Resumes `coroutine`, then whatever is put off.
    static void run(std::coroutine_handle<> coroutine) {
        transfer_loop loop(here());
        coroutine.resume();
        loop.run_put_off();
    }
    // Whether a task may be called from a place whose local variable this is: not too far from the
    // current loop, if there is one.
    [[gnu::always_inline]] static bool has_room(const void* local) noexcept {
        if constexpr (moves_locals) local = __builtin_frame_address(0);
        return reinterpret_cast<std::uintptr_t>(local) >= mine().end;
    }
    // The current loop, or one made for it, goes on with `waiter`. It may do so at once.
    [[gnu::noinline]] static void put_off(task_waiter& waiter) {
        if (transfer_loop* const loop = mine().current) {
            loop->push(waiter);
        } else {
            transfer_loop alone(here());
            alone.push(waiter);
            alone.run_put_off();
        }
    }
    // Returns what the last child of `waiter` resumes when it has ended: that is what go_on()
    // gives, or nothing where there is no room, and waiter.go_on() is called later. Either ends the
    // waiter if it stops the waiting task, so only one of them is called.
    template <class GoOn>
    static std::coroutine_handle<> next(task_waiter& waiter, GoOn go_on) noexcept {
        if (has_room(__builtin_frame_address(0))) [[likely]]
            return go_on();
        put_off(waiter);
        return std::noop_coroutine();
    }

private:
    static constexpr std::size_t depth_max = 32 * 1024;  // bytes
#if defined(__SANITIZE_ADDRESS__)
    static constexpr bool moves_locals = true;  // AddressSanitizer's, off the stack
#elif defined(__has_feature)
    static constexpr bool moves_locals = __has_feature(address_sanitizer);
#else
    static constexpr bool moves_locals = false;
#endif

    struct thread_loops {
        std::uintptr_t end = UINTPTR_MAX;  // the lowest address for a task's call: below there is
        transfer_loop* current = nullptr;  // no room, and nowhere if there is no loop
    };
    static thread_loops& mine() noexcept {
        return internal::thread_slot<transfer_loop, thread_loops>();
    }
    [[gnu::always_inline]] static std::uintptr_t here() noexcept {
        return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    }

    explicit transfer_loop(std::uintptr_t base) noexcept : outer_(mine()) {
        mine() = {base - depth_max, this};
    }
    ~transfer_loop() { mine() = outer_; }

    void push(task_waiter& waiter) noexcept {
        waiter.next = first_;
        first_ = &waiter;
    }
    void run_put_off() {
        while (task_waiter* const waiter = first_) {
            first_ = waiter->next;
            waiter->go_on().resume();
        }
    }

    const thread_loops outer_;
    task_waiter* first_ = nullptr;  // put off, the last one first
};

inline void resume_from_outside(std::coroutine_handle<> coroutine) {
    transfer_loop::run(coroutine);
}

// What await_suspend returns that may find it need not have suspended. With clang a transfer of the
// coroutine to itself: with bool, a coroutine that awaits in a loop becomes a loop, which keeps
// addresses in registers that every resumption then saves and restores. g++ 12 does not always make
// a tail call of it. Each way has a type of its own, a template argument of what returns it, so
// that functions of the two compilers have different names.
struct suspension_by_transfer {
    static std::coroutine_handle<> stay() noexcept { return std::noop_coroutine(); }
    static std::coroutine_handle<> go_on(std::coroutine_handle<> suspended) noexcept {
        return suspended;
    }
};
struct suspension_by_answer {
    static bool stay() noexcept { return true; }
    static bool go_on(std::coroutine_handle<>) noexcept { return false; }
};
#if defined(__clang__)
using suspension = suspension_by_transfer;
#else
using suspension = suspension_by_answer;
#endif

}  // namespace coppice::execution
