// A coroutine that starts at once and destroys its own frame. Only tests start work this way.
#pragma once

#include <coroutine>
#include <exception>

namespace coppice::test {

struct detached {
    struct promise_type {
        detached get_return_object() noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};

}  // namespace coppice::test
