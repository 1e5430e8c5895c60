// transfer: bounds the stack that tasks use when they call one another; for task.
#pragma once
// Each thread that runs tasks does so in a loop. Deep in the stack, a task does not call
// its child, and a task that ends does not resume its parent. It defers that and suspends.
// Everything on the stack suspends too, and the loop continues with what was deferred. A million
// awaits in a row and a recursion of any depth therefore use constant stack. This does not depend
// on the compiler's symmetric transfer, which g++ 12 compiles to tail calls only from -O2 on and
// without sanitizers.
//
// A coroutine that is resumed from outside a task, by resume_from_outside(), gets a loop of its
// own, because its resumer may wait for it.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/task/internal/task_chain.hpp>

#include <coroutine>
#include <cstddef>
#include <cstdint>

namespace coppice::execution::internal {

// The current loop is the innermost one of the thread. Threads: its own.
class [[gnu::visibility("default")]] transfer_loop : immovable {
public:
    // Resumes `coroutine`, then everything that is deferred meanwhile.
    static void run(std::coroutine_handle<> coroutine) {
        transfer_loop loop(here());
        coroutine.resume();
        loop.run_deferred();
    }
    // Returns true if a task may be called from the place where `local` is a local variable: at
    // most depth_max below the base of the current loop. Returns false if there is no loop.
    [[gnu::always_inline]] static bool has_room(const void* local) noexcept {
        if constexpr (moves_locals) local = __builtin_frame_address(0);
        return reinterpret_cast<std::uintptr_t>(local) >= mine().end;
    }
    // Makes the current loop call waiter.resume_deferred() later. If the thread has no loop, makes
    // one and does so now.
    [[gnu::noinline]] static void defer(task_waiter& waiter) {
        if (transfer_loop* const loop = mine().current) {
            loop->push(waiter);
        } else {
            transfer_loop alone(here());
            alone.push(waiter);
            alone.run_deferred();
        }
    }
    // Called when the last child of `waiter` has ended. Returns parent(), the coroutine to resume,
    // if there is room. Otherwise defers the waiter and returns nothing to resume. Only one of the
    // two functions is called, because each ends the waiter if it stops the waiting task.
    template <class Parent>
    static std::coroutine_handle<> resume_or_defer(task_waiter& waiter, Parent parent) noexcept {
        if (has_room(__builtin_frame_address(0))) [[likely]]
            return parent();
        defer(waiter);
        return std::noop_coroutine();
    }

private:
    static constexpr std::size_t depth_max = 32 * 1024;  // bytes
#if defined(__SANITIZE_ADDRESS__)
    // AddressSanitizer moves local variables off the stack.
    static constexpr bool moves_locals = true;
#elif defined(__has_feature)
    static constexpr bool moves_locals = __has_feature(address_sanitizer);
#else
    static constexpr bool moves_locals = false;
#endif

    struct thread_loops {
        // The lowest stack address from which a task may be called; without a loop, none is.
        std::uintptr_t end = UINTPTR_MAX;
        transfer_loop* current = nullptr;
    };
    static thread_loops& mine() noexcept { return thread_slot<transfer_loop, thread_loops>(); }
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
    void run_deferred() {
        while (task_waiter* const waiter = first_) {
            first_ = waiter->next;
            waiter->resume_deferred().resume();
        }
    }

    const thread_loops outer_;
    task_waiter* first_ = nullptr;  // deferred; the latest first
};

inline void resume_from_outside(std::coroutine_handle<> coroutine) {
    transfer_loop::run(coroutine);
}

}  // namespace coppice::execution::internal
