// waiting_coroutine: the coroutine that waits for tasks, of any type; what it gives them.
#pragma once
// A task with the children's Env is known by its promise alone. It gives them its own context, and
// costs one pointer. Any other coroutine has a context made for the wait from its environment. It
// may be a task with another Env, which still belongs to the chain.

#include <coppice/exec/env.hpp>
#include <coppice/task/internal/task_chain.hpp>
#include <coppice/task/internal/task_root.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <type_traits>

namespace coppice::execution::internal {

template <class Env>
class task_promise_base;

// The environment of a coroutine's promise, if the promise is known and has one.
template <class Promise>
struct promise_env {
    using type = env<>;
    template <class... P>
    static type of(const P&...) noexcept {
        return {};
    }
};
template <class Promise>
    requires requires(const Promise& promise) { promise.get_env(); }
struct promise_env<Promise> {
    using type = env_of_t<const Promise&>;
    static type of(const Promise& promise) noexcept { return execution::get_env(promise); }
};

// Promise is void if the awaiter was made by operator co_await, which is not given the promise.
template <class Env, class Promise>
class waiting_coroutine : immovable {
    using outer_type = std::decay_t<typename promise_env<Promise>::type>;

public:
    template <class... P>
    explicit waiting_coroutine(P&... promise)
        : outer_(promise_env<Promise>::of(promise...)), root_(outer_) {}
    // Called when the coroutine is suspended. Returns the context for its children.
    template <class Other>
    task_context<Env>& suspend(std::coroutine_handle<Other> self) noexcept {
        self_ = self;
        if constexpr (std::derived_from<Other, task_chain>) {
            chain_ = &self.promise();
        } else {
            stop_ = &stop_other<Other>;
        }
        root_.listen(outer_);
        return root_.context();
    }
    // Returns the context for the children of the suspended coroutine. A task passes itself, and is
    // not looked up.
    task_context<Env>& context(std::coroutine_handle<>) noexcept { return root_.context(); }
    task_chain* chain() const noexcept { return chain_; }
    std::coroutine_handle<> self() const noexcept { return self_; }
    // Called before the coroutine continues, because it may then end the source of its token.
    void end() noexcept { root_.reset(); }
    // Called when a stop passes up the chain. A coroutine that is not a task may end in stop_(),
    // and this object with it.
    after_stop stopped() noexcept {
        end();
        if (chain_ != nullptr) return after_stop::stop(self_, *chain_);
        return after_stop::resume(stop_(self_.address()));
    }
    // Called when a stop begins here. Returns the coroutine to resume.
    std::coroutine_handle<> stop() noexcept {
        end();
        return chain_ != nullptr ? chain_->stop(self_) : stop_(self_.address());
    }

private:
    template <class Other>
    static std::coroutine_handle<> stop_other(void* address) noexcept {
        if constexpr (requires(Other& other) { other.unhandled_stopped(); }) {
            return std::coroutine_handle<Other>::from_address(address)
                .promise()
                .unhandled_stopped();
        } else {
            std::terminate();
        }
    }

    outer_type outer_;
    task_root<Env, outer_type> root_;
    std::coroutine_handle<> self_;
    task_chain* chain_ = nullptr;                                // of a task
    std::coroutine_handle<> (*stop_)(void*) noexcept = nullptr;  // of any other coroutine
};
template <class Env, class Promise>
    requires std::derived_from<Promise, task_promise_base<Env>>
class waiting_coroutine<Env, Promise> : immovable {
public:
    explicit waiting_coroutine(Promise& promise) noexcept
        : self_(std::coroutine_handle<Promise>::from_promise(promise)) {}
    task_context<Env>& suspend(std::coroutine_handle<Promise> self) noexcept {
        return self.promise().context();
    }
    static task_context<Env>& context(std::coroutine_handle<Promise> self) noexcept {
        return self.promise().context();
    }
    task_chain* chain() const noexcept { return &self_.promise(); }
    std::coroutine_handle<Promise> self() const noexcept { return self_; }
    static void end() noexcept {}
    after_stop stopped() const noexcept { return after_stop::stop(self_, self_.promise()); }
    std::coroutine_handle<> stop() const noexcept { return self_.promise().stop(self_); }

private:
    const std::coroutine_handle<Promise> self_;
};

// The awaiter around a task_waiter. The waiter is not the awaiter itself: in a class with virtual
// functions, a destructor that does something writes the address of their table once more.
template <class Waiter>
class waiting_awaiter : immovable {
public:
    template <class... Args>
    [[gnu::always_inline]] explicit waiting_awaiter(Args&&... args)
        : waiter_(static_cast<Args&&>(args)...) {}
    [[gnu::always_inline]] ~waiting_awaiter() { waiter_.destroy(); }

    [[gnu::always_inline]] bool await_ready() { return waiter_.is_ready(); }
    template <class Promise>
    [[gnu::always_inline]] bool await_suspend(std::coroutine_handle<Promise> parent) noexcept {
        return waiter_.suspends(parent);
    }
    [[gnu::always_inline]] decltype(auto) await_resume() { return waiter_.result(); }

private:
    Waiter waiter_;
};

}  // namespace coppice::execution::internal
