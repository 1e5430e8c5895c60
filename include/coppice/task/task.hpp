// task<T, Env>: a lazy coroutine that one owner awaits; the unit of asynchronous work.
#pragma once
// A task starts when it is awaited, connected, or waited for. When it ends, its owner continues by
// symmetric transfer: no queue, atomic operation, or lock lies between a task and the task that
// awaits it. Its frame comes from the thread's frame_pool. The frame is destroyed before a receiver
// is completed or, in an await, at the end of the full expression.
//
// A task ends in one of three ways. It gives its result: a value, a reference, or nothing. It fails
// with an exception, or with the error of `co_yield with_error(e)`; an await throws the error, and
// a receiver gets it unchanged. Or it is stopped, because a sender that it awaits completed with
// set_stopped; then the coroutines that await it are stopped too.
//
// A task is affine: after each await it is resumed on the scheduler on which it was started, unless
// its environment names none.
//
// Threads: a task may be awaited on another thread than the one that made it; one thread at a time
// may use it. Lifetime: destroying a task that has not run destroys its frame. A task must not be
// destroyed while it is suspended after it has started. Source: [exec.task].

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/cold_call.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/task/internal/task_promise.hpp>

#include <coroutine>
#include <type_traits>
#include <utility>

namespace coppice::execution {

// The environment of a coroutine's promise, if the promise has one.
template <class Promise>
struct promise_env {
    using type = env<>;
    static type of(const Promise&) noexcept { return {}; }
};
template <class Promise>
    requires requires(const Promise& promise) { promise.get_env(); }
struct promise_env<Promise> {
    using type = env_of_t<const Promise&>;
    static type of(const Promise& promise) noexcept { return execution::get_env(promise); }
};
template <>
struct promise_env<void> {
    using type = env<>;
};

// The context of a task that a coroutine awaits: that of the coroutine, if it is a task of the same
// Env; otherwise one made for the await.
template <class Env, class Promise>
class awaiting_context : immovable {
    using outer_type = std::decay_t<typename promise_env<Promise>::type>;

public:
    explicit awaiting_context(Promise& promise)
        : outer_(promise_env<Promise>::of(promise)), root_(outer_) {}
    task_context<Env>& get() noexcept { return root_.context(); }
    void listen() noexcept { root_.listen(outer_); }
    void reset() noexcept { root_.reset(); }

private:
    outer_type outer_;
    task_root<Env, outer_type> root_;
};
template <class Env>
class awaiting_context<Env, void> : immovable {
public:
    awaiting_context() : root_(outer_) {}
    task_context<Env>& get() noexcept { return root_.context(); }
    void listen() noexcept {}
    void reset() noexcept {}

private:
    env<> outer_;
    task_root<Env, env<>> root_;
};
template <class Env, class Promise>
    requires std::derived_from<Promise, task_promise_base<Env>>
class awaiting_context<Env, Promise> : immovable {
public:
    explicit awaiting_context(Promise& promise) noexcept : context_(&promise.context()) {}
    task_context<Env>& get() noexcept { return *context_; }
    static void listen() noexcept {}
    static void reset() noexcept {}

private:
    task_context<Env>* context_;
};

// The coroutine that waits for tasks. It is of any type, or a task whose promise knows everything.
template <class Env, class Promise>
class waiting_coroutine : immovable {
public:
    template <class... P>
    explicit waiting_coroutine(P&... promise) : context_(promise...) {}
    template <class Other>
    task_context<Env>& suspend(std::coroutine_handle<Other> self) noexcept {
        self_ = self;
        if constexpr (std::derived_from<Other, task_chain>) {
            chain_ = &self.promise();
        } else if constexpr (requires(Other& other) { other.unhandled_stopped(); }) {
            stop_ = [](void* address) noexcept -> std::coroutine_handle<> {
                return std::coroutine_handle<Other>::from_address(address)
                    .promise()
                    .unhandled_stopped();
            };
        } else {
            stop_ = [](void*) noexcept -> std::coroutine_handle<> { std::terminate(); };
        }
        context_.listen();
        return context_.get();
    }
    // Returns the context for the suspended coroutine. A task passes itself, and is not looked up.
    task_context<Env>& context(std::coroutine_handle<>) noexcept { return context_.get(); }
    task_chain* chain() const noexcept { return chain_; }
    std::coroutine_handle<> self() const noexcept { return self_; }
    // Called before the coroutine continues, because it may then end the source of its token.
    void end() noexcept { context_.reset(); }
    // Stops the coroutine. A coroutine that is not a task may end in stop_(), and this object with
    // it.
    stopped_coroutine stopped() noexcept {
        end();
        if (chain_ != nullptr) return {self_, chain_};
        return {stop_(self_.address()), nullptr};
    }
    std::coroutine_handle<> stop() noexcept {
        end();
        return chain_ != nullptr ? chain_->stop(self_) : stop_(self_.address());
    }

private:
    awaiting_context<Env, Promise> context_;
    std::coroutine_handle<> self_;
    task_chain* chain_ = nullptr;
    std::coroutine_handle<> (*stop_)(void*) noexcept = nullptr;
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
    // stopped() is for a stop that passes up the chain; stop() is for a stop that begins here.
    stopped_coroutine stopped() const noexcept { return {self_, &self_.promise()}; }
    std::coroutine_handle<> stop() const noexcept { return self_.promise().stop(self_); }

private:
    const std::coroutine_handle<Promise> self_;
};

// The operation state of a connected task.
template <class T, class Env, class Rcvr>
class task_operation final : task_waiter {
    using promise_type = task_promise<T, Env>;
    using outer_type = std::decay_t<env_of_t<Rcvr>>;

public:
    using operation_state_concept = operation_state_tag;

    // Takes the coroutine last, so that `connected` still owns it if the environment cannot be
    // made.
    task_operation(task<T, Env>& connected, Rcvr rcvr)
        : rcvr_(static_cast<Rcvr&&>(rcvr)),
          root_(execution::get_env(rcvr_)),
          coroutine_(connected.take_coroutine()) {}
    ~task_operation() {
        if (coroutine_) coroutine_.destroy();
        COPPICE_CHECK(!running_, "an operation of task was destroyed while it was running");
    }
    void start() & noexcept {
        const auto coroutine = std::exchange(coroutine_, {});
        COPPICE_CHECK(coroutine, "an operation of task was started twice");
        running_ = true;
        root_.listen(execution::get_env(rcvr_));
        coroutine.promise().begin(root_.context(), *this, false, outcome_);
        execution::resume_from_outside(coroutine);
    }

private:
    std::coroutine_handle<> ended() noexcept override {
        end();
        outcome_.deliver(
            [this](auto&& value) noexcept { this->send(static_cast<decltype(value)>(value)); },
            [this](auto&& error) noexcept {
                execution::set_error(static_cast<Rcvr&&>(rcvr_),
                                     static_cast<decltype(error)>(error));
            });
        return std::noop_coroutine();
    }
    stopped_coroutine stopped() noexcept override {
        end();
        execution::set_stopped(static_cast<Rcvr&&>(rcvr_));
        return {std::noop_coroutine(), nullptr};
    }
    task_chain* leave() noexcept override { return nullptr; }
    std::coroutine_handle<> go_on() noexcept override { return std::noop_coroutine(); }

    // Called before the receiver is completed, which may destroy this operation.
    void end() noexcept {
        root_.reset();
        running_ = false;
    }
    template <class V>
    void send(V&& value) noexcept {
        if constexpr (std::is_void_v<T>) {
            execution::set_value(static_cast<Rcvr&&>(rcvr_));
        } else if constexpr (std::is_reference_v<T>) {
            execution::set_value(static_cast<Rcvr&&>(rcvr_), *value);
        } else {
            execution::set_value(static_cast<Rcvr&&>(rcvr_), static_cast<V&&>(value));
        }
    }

    [[no_unique_address]] Rcvr rcvr_;
    task_root<Env, outer_type> root_;
    std::coroutine_handle<promise_type> coroutine_;  // null once the operation has started
    typename promise_type::outcome_type outcome_;
    bool running_ =
        false;  // written by the thread that starts it, and by the thread that completes it
};

// The await of one task. Owns the task until it runs.
template <class T, class Env, class Promise>
class waiter_for_task final : task_waiter {
    using promise_type = task_promise<T, Env>;
    using outcome_type = typename promise_type::outcome_type;
    // left: the child was detached and ends elsewhere. ended: it has ended there.
    enum class child : unsigned char { ended_here, not_begun, left, ended };

public:
    template <class... P>
    [[gnu::always_inline]] explicit waiter_for_task(task<T, Env>& awaited, P&... promise)
        : parent_(promise...), coroutine_(awaited.take_coroutine()) {
        outcome_.construct();
    }
    [[gnu::always_inline]] void destroy() noexcept {
        if constexpr (outcome_type::is_plain) {
            if (child_ != child::ended_here) [[unlikely]]
                clean_up();
        } else {
            if (child_ != child::ended_here) [[unlikely]]
                clean_up_child();
            outcome_.destroy();
        }
    }
    // Takes the outcome of a task that wait_for_tasks has already run.
    bool is_ready() {
        auto* const kept = coroutine_.promise().outcome_kept();
        if (kept == nullptr) [[likely]]
            return false;
        outcome_.get().move_from(*kept);
        return true;
    }
    template <class Other>
    [[gnu::always_inline]] bool suspends(std::coroutine_handle<Other> parent) noexcept {
        const auto coroutine = coroutine_;
        task_context<Env>& context = parent_.suspend(parent);
        child_ = child::ended_here;
        bool left = false;
        if (!transfer_loop::has_room(&left)) [[unlikely]] {
            coroutine.promise().begin(context, *this, false, outcome_.get());
            put_off();
            return true;
        }
        left_ = &left;
        coroutine.promise().begin(context, *this, true, outcome_.get());
        coroutine.resume();
        return left;  // if it has left, this object may be gone
    }
    [[gnu::always_inline]] T result() {
        parent_.end();
        if (child_ != child::ended_here) [[unlikely]]
            outcome_.get().check();
        return take_known_result<T>(outcome_.get());
    }

private:
    COPPICE_COLD_CALL void clean_up() noexcept {
        clean_up_child();
        outcome_.destroy();
    }
    COPPICE_COLD_CALL void clean_up_child() noexcept {
        COPPICE_CHECK(child_ != child::left,
                      "a coroutine was destroyed while it awaited a task that was running");
        if (child_ == child::not_begun) coroutine_.destroy();
    }
    [[gnu::noinline, gnu::cold]] void put_off() noexcept {
        child_ = child::not_begun;
        if (parent_.chain() != nullptr) parent_.chain()->detach();
        transfer_loop::put_off(*this);
    }
    std::coroutine_handle<> go_on() noexcept override {
        if (child_ != child::not_begun) return parent_.self();
        child_ = child::left;
        return coroutine_;
    }
    task_chain* leave() noexcept override {
        *left_ = true;
        child_ = child::left;
        return parent_.chain();
    }
    std::coroutine_handle<> ended() noexcept override {
        child_ = child::ended;
        return transfer_loop::next(*this, [this] { return parent_.self(); });
    }
    stopped_coroutine stopped() noexcept override {
        child_ = child::ended;
        return parent_.stopped();
    }

    [[no_unique_address]] waiting_coroutine<Env, Promise>
        parent_;  // may throw; first, so that nothing is taken then
    const std::coroutine_handle<promise_type> coroutine_;
    bool* left_;  // on the stack, because a child that has left may end this object
    child child_ = child::not_begun;
    manual_lifetime<outcome_type> outcome_;
};
template <class T, class Env, class Promise>
using task_awaiter = waiting_awaiter<waiter_for_task<T, Env, Promise>>;

// Base class of a task. Its destructor is not trivial, so that every compiler passes a task in
// memory. This matters where the library takes or returns tasks, because a program may be built
// with either compiler. The library has no tasks of numbers. clang passes those in a register,
// which saves a seventh of the instructions of a call.
template <class T>
struct task_in_memory {
    ~task_in_memory() {}  // not `= default`, which would be trivial
};
template <class T>
    requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
struct task_in_memory<T> {};

// A coroutine that returns T, a T&, or nothing. Move-only; awaited once, as an r-value. Env may
// have these members, with these defaults: allocator_type (std::allocator<std::byte>),
// start_scheduler_type or scheduler_type (task_scheduler), stop_source_type (inplace_stop_source),
// error_types (completion_signatures<set_error_t(std::exception_ptr)>), env_type<Outer>, and
// queries. Cost: one frame, from the thread's pool; awaiting costs no allocation and no atomic
// operation.
template <class T = void, class Env = env<>>
class
#if defined(__clang__)
    [[clang::trivial_abi]]  // see task_in_memory
#endif
    [[nodiscard]] task : task_in_memory<T>,
                         public ends_where_it_began<Env> {
    static_assert(std::is_same_v<T, void> || std::is_reference_v<T> ||
                      (std::is_object_v<T> && std::is_same_v<T, std::remove_cv_t<T>>),
                  "task<T>: T is void, a reference, or an object type without const or volatile");

public:
    using sender_concept = sender_tag;
    using promise_type = task_promise<T, Env>;
    using handle_type = std::coroutine_handle<promise_type>;
    using allocator_type = typename task_allocator<Env>::type;
    using start_scheduler_type = typename task_start_scheduler<Env>::type;
    using scheduler_type = start_scheduler_type;
    using stop_source_type = typename task_stop_source<Env>::type;
    using stop_token_type = typename task_context<Env>::stop_token_type;
    using error_types = typename task_errors<Env>::type;
    using awaits_tasks = void;

    // Takes ownership of the coroutine; called by the promise.
    explicit task(handle_type coroutine) noexcept : coroutine_(coroutine) {}
    task(task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, {})) {}
    task& operator=(task&& other) noexcept {
        task(std::move(other)).swap(*this);
        return *this;
    }
    ~task() {
        if (coroutine_) destroy(coroutine_);
    }
    void swap(task& other) noexcept { std::swap(coroutine_, other.coroutine_); }

    // Returns false if the task was moved from or awaited.
    explicit operator bool() const noexcept { return static_cast<bool>(coroutine_); }

    // Returns the result of a task that wait_for_tasks has run. Errors: throws the task's error.
    T get() && {
        auto* const outcome = coroutine_ ? coroutine_.promise().outcome_kept() : nullptr;
        COPPICE_CHECK(outcome != nullptr, "get() of a task that has not been run");
        const task ended(std::move(*this));
        return take_result<T>(*outcome);
    }

    template <class Self, class... Outer>
    static consteval auto get_completion_signatures() noexcept {
        if constexpr (std::is_void_v<T>) {
            return signatures<set_value_t()>(static_cast<error_types*>(nullptr));
        } else {
            return signatures<set_value_t(T)>(static_cast<error_types*>(nullptr));
        }
    }
    template <receiver Rcvr>
    task_operation<T, Env, Rcvr> connect(Rcvr rcvr) && {
        check();
        return task_operation<T, Env, Rcvr>(*this, static_cast<Rcvr&&>(rcvr));
    }
    // Returns the task itself, because a task completes on the scheduler where it was started.
    task affine() && noexcept
        requires keeps_scheduler<ends_where_it_began<Env>>
    {
        return std::move(*this);
    }

    template <class Promise>
    task_awaiter<T, Env, Promise> as_awaitable(Promise& promise) && {
        check();
        return task_awaiter<T, Env, Promise>(*this, promise);
    }
    task_awaiter<T, Env, void> operator co_await() && {
        check();
        return task_awaiter<T, Env, void>(*this);
    }

    // Both are for wait_for_tasks. After coroutine() the task still owns the coroutine; after
    // take_coroutine() it does not.
    handle_type coroutine() const noexcept { return coroutine_; }
    handle_type take_coroutine() noexcept { return std::exchange(coroutine_, {}); }

private:
    template <class Value, class... Errors>
    static consteval completion_signatures<Value, Errors..., set_stopped_t()> signatures(
        completion_signatures<Errors...>*) noexcept {
        return {};
    }
    void check() const noexcept {
        COPPICE_CHECK(coroutine_, "a task was awaited twice, or after it was moved from");
    }
    // Takes the handle by value, so that a task need not be in memory.
    COPPICE_COLD_CALL static void destroy(handle_type unused) noexcept { unused.destroy(); }

    handle_type coroutine_;
};

template <class T, class Env>
task<T, Env> task_promise<T, Env>::get_return_object() noexcept {
    return task<T, Env>(std::coroutine_handle<task_promise>::from_promise(*this));
}
template <class T, class Env>
task<T&, Env> task_promise<T&, Env>::get_return_object() noexcept {
    return task<T&, Env>(std::coroutine_handle<task_promise>::from_promise(*this));
}
template <class Env>
task<void, Env> task_promise<void, Env>::get_return_object() noexcept {
    return task<void, Env>(std::coroutine_handle<task_promise>::from_promise(*this));
}

}  // namespace coppice::execution

namespace coppice {

using execution::task;
using execution::task_scheduler;
using execution::with_error;

}  // namespace coppice
