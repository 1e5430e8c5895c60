// task_chain: tasks that wait for one another, and how a stop leaves them; for task_promise.
#pragma once
// Who waits for a task is one of two: a coroutine, resumed by transfer, or a task_waiter, which is
// told (a connected operation, wait_for_tasks). Both hear of a value or error when the body ends,
// and of a stop when a sender that the body awaits completes with set_stopped.

#include <coppice/base/lifetime.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <utility>

namespace coppice::execution {

// Told when a task has ended; gives the coroutine to resume next. The task may be destroyed inside.
struct task_waiter : immovable {
    using function = std::coroutine_handle<> (*)(task_waiter&, bool stopped) noexcept;
    explicit task_waiter(function f) noexcept : ended(f) {}
    function ended;  // changed by the waiter between two of its tasks
};

// Who waits for a task; the part of its promise that other tasks know.
class task_chain : immovable {
public:
    void set_waiter(task_waiter& waiter) noexcept { waiter_ = &waiter; }
    // `frame` is where the awaiter keeps this task's frame.
    template <class Promise>
    void wait_for(std::coroutine_handle<Promise> h, std::coroutine_handle<>& frame) noexcept {
        continuation_ = h;
        frame_ = &frame;
        if constexpr (std::derived_from<Promise, task_chain>) {
            stopped_ = [](void* address, task_chain*& next) noexcept -> std::coroutine_handle<> {
                next = &std::coroutine_handle<Promise>::from_address(address).promise();
                return {};
            };
        } else if constexpr (requires(Promise& other) { other.unhandled_stopped(); }) {
            stopped_ = [](void* address, task_chain*&) noexcept -> std::coroutine_handle<> {
                return std::coroutine_handle<Promise>::from_address(address)
                    .promise()
                    .unhandled_stopped();
            };
        } else {
            stopped_ = [](void*, task_chain*&) noexcept -> std::coroutine_handle<> {
                std::terminate();
            };
        }
    }
    // The body ends here without a result, and so do those of the tasks that wait for it, one after
    // the other: their frames are destroyed from the innermost out, with constant stack.
    std::coroutine_handle<> unhandled_stopped() noexcept {
        for (task_chain* here = this;;) {
            if (!here->continuation_) return here->waiter_->ended(*here->waiter_, true);
            task_chain* next = nullptr;
            const auto other = here->stopped_(here->continuation_.address(), next);
            if (next == nullptr) return other;
            std::exchange(*here->frame_, {}).destroy();
            here = next;
        }
    }

protected:
    task_chain() noexcept {}
    ~task_chain() = default;

    std::coroutine_handle<> continuation_{};  // none: waiter_ is told
    union {
        // What becomes of the awaiting coroutine; or it is a task, and next.
        std::coroutine_handle<> (*stopped_)(void*, task_chain*& next) noexcept;
        task_waiter* waiter_;
    };

private:
    std::coroutine_handle<>* frame_;
};

}  // namespace coppice::execution
