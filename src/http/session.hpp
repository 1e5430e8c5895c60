// session: a coroutine that owns itself.
#pragma once

#include <coppice/task/internal/frame_pool.hpp>

#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>

namespace coppice::http {

using namespace internal;

// A coroutine that owns itself: that of a batch that has to wait, or of an accept loop. It reports
// through a reference that it has begun; it does not begin if there is no memory. It cannot report
// by its result, which may lie in its frame, and the frame may be gone when the call returns.
struct session {
    struct promise_type {
        static void* operator new(std::size_t bytes) noexcept {
            try {
                return frame_pool::allocate(bytes);
            } catch (const std::bad_alloc&) {
                return nullptr;
            }
        }
        static void operator delete(void* memory, std::size_t bytes) noexcept {
            frame_pool::deallocate(memory, bytes);
        }
        static session get_return_object_on_allocation_failure() noexcept { return {}; }
        session get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        // Sessions catch every exception that may be thrown in them.
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};

}  // namespace coppice::http
