// task<T>: a lazy coroutine that one owner awaits; the unit of asynchronous work.
#pragma once
// A task starts when it is awaited and resumes its awaiter when it ends, by symmetric transfer: no
// queue, no atomic and no lock lies between a task and the task that awaits it. Its frame comes
// from the thread's frame_pool and is destroyed by the awaiter's full expression, before the
// awaiter goes on to its next statement.
//
// What leaves the coroutine: its result (a value, a reference or nothing), or its exception, which
// is rethrown where it was awaited. A body may await senders; one that completes with set_stopped
// ends the task and its awaiters without a result, up to whoever handles it. A task is a sender.
//
// Threads: a task may be awaited on another thread than it was made on; one at a time may use it.
// Lifetime: destroying a task that has not run destroys its frame; it must not be destroyed while
// it is suspended in the middle. Source: [exec.task] in part: lazy, sole owner, no detached start.

#include <coppice/base/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/task/frame_pool.hpp>

#include <coroutine>
#include <exception>
#include <new>
#include <type_traits>
#include <utility>

namespace coppice {

template <class T>
class task_promise;

// What every promise of task has: frames from the pool, and the start and the end of a task.
// with_awaitable_senders keeps the awaiter's handle, lets the body await senders, and passes a stop
// of an awaited sender on to the awaiter.
template <class Promise>
class task_promise_base : public execution::with_awaitable_senders<Promise>, immovable {
public:
    static void* operator new(std::size_t bytes) { return frame_pool::allocate(bytes); }
    static void operator delete(void* memory, std::size_t bytes) noexcept {
        frame_pool::deallocate(memory, bytes);
    }

    std::suspend_always initial_suspend() const noexcept { return {}; }

    // Hands the thread to whoever awaits. The frame stays until the awaiter destroys it.
    struct final_awaiter {
        constexpr final_awaiter() noexcept = default;
        bool await_ready() const noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> self) const noexcept {
            return self.promise().continuation();
        }
        void await_resume() const noexcept {}
    };
    final_awaiter final_suspend() const noexcept { return {}; }
};

// Where a task's outcome waits for its awaiter.
template <class T>
class task_outcome {
public:
    task_outcome() noexcept {}  // g++ 12 would delete a defaulted one
    task_outcome(const task_outcome&) = delete;
    task_outcome& operator=(const task_outcome&) = delete;
    ~task_outcome() {
        if (state_ == state::value) value_.~T();
        if (state_ == state::error) error_.~exception_ptr();
    }

    template <class U>
    void set_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U>) {
        ::new (static_cast<void*>(__builtin_addressof(value_))) T(std::forward<U>(value));
        state_ = state::value;
    }
    void set_error(std::exception_ptr error) noexcept {
        if (state_ == state::value) value_.~T();  // thrown by a local's destructor
        ::new (static_cast<void*>(__builtin_addressof(error_)))
            std::exception_ptr(std::move(error));
        state_ = state::error;
    }
    T take() {
        COPPICE_CHECK(state_ != state::empty, "a task's result was taken before it ended");
        if (state_ == state::error) std::rethrow_exception(error_);
        return std::move(value_);
    }

private:
    enum class state : unsigned char { empty, value, error };
    state state_ = state::empty;
    union {
        T value_;
        std::exception_ptr error_;
    };
};

template <class T>
class task;

template <class T>
class task_promise final : public task_promise_base<task_promise<T>> {
public:
    task<T> get_return_object() noexcept;

    template <class U = T>
        requires std::is_constructible_v<T, U>
    void return_value(U&& value) noexcept(std::is_nothrow_constructible_v<T, U>) {
        outcome_.set_value(std::forward<U>(value));
    }
    void unhandled_exception() noexcept { outcome_.set_error(std::current_exception()); }
    T take() { return outcome_.take(); }

private:
    task_outcome<T> outcome_;
};

template <class T>
class task_promise<T&> final : public task_promise_base<task_promise<T&>> {
public:
    task<T&> get_return_object() noexcept;

    void return_value(T& value) noexcept { outcome_.set_value(&value); }
    void unhandled_exception() noexcept { outcome_.set_error(std::current_exception()); }
    T& take() { return *outcome_.take(); }

private:
    task_outcome<T*> outcome_;
};

template <>
class task_promise<void> final : public task_promise_base<task_promise<void>> {
public:
    task<void> get_return_object() noexcept;

    void return_void() noexcept {}
    void unhandled_exception() noexcept { error_ = std::current_exception(); }
    void take() {
        if (error_) std::rethrow_exception(std::move(error_));
    }

private:
    std::exception_ptr error_;
};

// A coroutine that returns T, a T& or nothing. Move-only; awaited once, as an r-value.
// Cost: one frame, from the thread's pool; awaiting costs no allocation and no atomic operation.
template <class T = void>
class [[nodiscard]] task {
public:
    using promise_type = task_promise<T>;
    using handle_type = std::coroutine_handle<promise_type>;

    explicit task(handle_type coroutine) noexcept : coroutine_(coroutine) {}
    task(task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
    task& operator=(task&& other) noexcept {
        task(std::move(other)).swap(*this);
        return *this;
    }
    ~task() {
        if (coroutine_) coroutine_.destroy();
    }
    void swap(task& other) noexcept { std::swap(coroutine_, other.coroutine_); }

    // False once moved from or awaited.
    explicit operator bool() const noexcept { return static_cast<bool>(coroutine_); }

    // Owns the frame from the await to the end of the full expression.
    class awaiter : immovable {
    public:
        explicit awaiter(handle_type coroutine) noexcept : coroutine_(coroutine) {}
        ~awaiter() { coroutine_.destroy(); }
        bool await_ready() const noexcept { return false; }
        template <class Promise>
        handle_type await_suspend(std::coroutine_handle<Promise> continuation) const noexcept {
            coroutine_.promise().set_continuation(continuation);
            return coroutine_;
        }
        T await_resume() const { return coroutine_.promise().take(); }

    private:
        handle_type coroutine_;
    };

    awaiter operator co_await() && noexcept {
        COPPICE_CHECK(coroutine_, "a task was awaited twice, or after it was moved from");
        return awaiter(std::exchange(coroutine_, {}));
    }

private:
    handle_type coroutine_;
};

template <class T>
task<T> task_promise<T>::get_return_object() noexcept {
    return task<T>(std::coroutine_handle<task_promise>::from_promise(*this));
}
template <class T>
task<T&> task_promise<T&>::get_return_object() noexcept {
    return task<T&>(std::coroutine_handle<task_promise>::from_promise(*this));
}
inline task<void> task_promise<void>::get_return_object() noexcept {
    return task<void>(std::coroutine_handle<task_promise>::from_promise(*this));
}

}  // namespace coppice
