// transfer: passing a thread from one coroutine to the next without using up its stack; for task.
#pragma once
// A coroutine that ends or awaits returns the handle of the next one to resume. clang makes that a
// tail call in every build. g++ 12 does only from -O2 on and without sanitizers: elsewhere each
// transfer lies on the stack of the one before, and a loop of a million awaits would overflow it.
// So with g++ the first transfer on a thread becomes a loop, and a later one that finds itself far
// down the stack hands its coroutine to that loop and unwinds. Where transfers are tail calls, the
// stack does not grow and nothing but a comparison is added.
//
// A coroutine that is resumed from anywhere but a transfer, by resume_from_outside(), gets a loop
// of its own: its resumer may wait for it.

#include <coppice/base/atomic.hpp>

#include <coroutine>
#include <cstddef>

namespace coppice::execution {

#if defined(__clang__)

inline std::coroutine_handle<> transfer(std::coroutine_handle<> to) noexcept {
    return to;
}
inline void resume_from_outside(std::coroutine_handle<> coroutine) {
    coroutine.resume();
}

// What await_suspend returns that may find it need not have suspended. A transfer of the coroutine
// to itself: with bool, a coroutine that awaits in a loop becomes a loop, which keeps addresses in
// registers that every resumption then saves and restores.
using suspension = std::coroutine_handle<>;
inline suspension stay_suspended() noexcept {
    return std::noop_coroutine();
}
inline suspension go_on(std::coroutine_handle<> suspended) noexcept {
    return suspended;
}

#else

using suspension = bool;
inline suspension stay_suspended() noexcept {
    return true;
}
inline suspension go_on(std::coroutine_handle<>) noexcept {
    return false;
}

// One loop of transfers; the innermost of a thread is current.
class transfer_loop {
public:
    static transfer_loop*& current() noexcept {
        return thread_slot<transfer_loop, transfer_loop*>();
    }
    // Resumes `coroutine` and all that is handed over, until there is no more.
    static void run(std::coroutine_handle<> coroutine) {
        transfer_loop loop;
        loop.base_ = here();
        loop.outer_ = current();
        current() = &loop;
        while (coroutine) {
            coroutine.resume();
            coroutine = loop.next_;
            loop.next_ = nullptr;
        }
        current() = loop.outer_;
    }
    // True: `coroutine` will be resumed by the loop.
    bool takes(std::coroutine_handle<> coroutine) noexcept {
        const std::ptrdiff_t depth = base_ - here();
        if (depth < depth_max || next_) return false;
        next_ = coroutine;
        return true;
    }

private:
    static constexpr std::ptrdiff_t depth_max = 16 * 1024;  // bytes
    [[gnu::always_inline]] static const char* here() noexcept {
        return static_cast<const char*>(__builtin_frame_address(0));
    }
    const char* base_ = nullptr;
    transfer_loop* outer_ = nullptr;
    std::coroutine_handle<> next_;
};

inline std::coroutine_handle<> transfer(std::coroutine_handle<> to) noexcept {
    transfer_loop* const loop = transfer_loop::current();
    if (loop != nullptr) [[likely]]
        return loop->takes(to) ? std::noop_coroutine() : to;
    transfer_loop::run(to);
    return std::noop_coroutine();
}
inline void resume_from_outside(std::coroutine_handle<> coroutine) {
    transfer_loop::run(coroutine);
}

#endif

}  // namespace coppice::execution
