// next_element: one next() of an async_generator, as an awaitable and a sender.
#pragma once
// The await calls the body, as the await of a task calls the task (task_await.hpp): if the body
// gives its element on this stack, the awaiting coroutine was never suspended. The states are those
// of that await, without `not_begun -> destroyed`: the generator owns the body, not its waiter.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/cold_call.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/completion_signatures.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/task/internal/async_generator_promise.hpp>
#include <coppice/task/internal/suspension.hpp>
#include <coppice/task/internal/task_operation.hpp>
#include <coppice/task/internal/task_root.hpp>
#include <coppice/task/internal/transfer.hpp>
#include <coppice/task/internal/waiting_coroutine.hpp>

#include <coroutine>
#include <type_traits>
#include <utility>

namespace coppice::execution::internal {

// Promise is that of the awaiting coroutine, or void if it is not known.
template <class T, class Env, class Promise>
class waiter_for_next final : task_waiter {
    using body_type = async_generator_body<T, Env>;
    using outcome_type = typename body_type::promise_type::outcome_type;
    enum class child : unsigned char { here, not_begun, elsewhere, ended_elsewhere };

public:
    template <class... P>
    [[gnu::always_inline]] explicit waiter_for_next(body_type& body, P&... promise)
        : parent_(promise...), body_(body) {
        outcome_.construct();
    }
    [[gnu::always_inline]] void destroy() noexcept {
        if (child_ == child::elsewhere) [[unlikely]]
            refuse();
        outcome_.destroy();
    }
    // Returns true if the body has ended: there is no element.
    bool is_ready() noexcept {
        if (!body_.has_ended()) [[likely]]
            return false;
        outcome_.get().set_value();
        return true;
    }
    // Resumes the body. Returns false if it has given its element on this stack.
    template <class Other>
    [[gnu::always_inline]] bool suspends(std::coroutine_handle<Other> parent) noexcept {
        const auto coroutine = body_.begin_turn();
        task_context<Env>& context = parent_.suspend(parent);
        child_ = child::here;
        bool detached = false;
        if (!transfer_loop::has_room(&detached)) [[unlikely]] {
            coroutine.promise().begin(context, *this, starts::detached, outcome_.get());
            defer(coroutine);
            return true;
        }
        detached_ = &detached;
        coroutine.promise().begin(context, *this, starts::attached, outcome_.get());
        coroutine.resume();
        return detached;  // if so, this object may be gone
    }
    // Errors: throws the error of the body.
    [[gnu::always_inline]] item_of_t<T> result() {
        parent_.end();
        if (child_ == child::ended_elsewhere && outcome_.get().is_error()) [[unlikely]] {
            body_.end();
            outcome_.get().rethrow();
        }
        scope_exit end([this] {  // moving the element has failed
            if (!body_.has_ended()) body_.end();
        });
        item_of_t<T> item = outcome_.get().take_value();
        end.dismiss();
        if (!body_.has_ended()) [[likely]]
            body_.end_turn(static_cast<bool>(item));
        return item;
    }

private:
    [[gnu::noinline, gnu::cold]] static void refuse() noexcept {
        COPPICE_CHECK(false,
                      "a coroutine was destroyed while it awaited the next() of an "
                      "async_generator");
    }
    // The stack is deep: the loop resumes the body.
    [[gnu::noinline, gnu::cold]] void defer(std::coroutine_handle<> coroutine) noexcept {
        child_ = child::not_begun;
        deferred_ = coroutine;
        if (parent_.chain() != nullptr) parent_.chain()->detach();
        transfer_loop::defer(*this);
    }
    // Called by the loop that resumes what was deferred: the body, or the parent after the body.
    std::coroutine_handle<> resume_deferred() noexcept override {
        if (child_ != child::not_begun) return parent_.self();
        child_ = child::elsewhere;
        return deferred_;
    }
    task_chain* child_detached() noexcept override {
        *detached_ = true;
        child_ = child::elsewhere;
        return parent_.chain();
    }
    std::coroutine_handle<> child_ended() noexcept override {
        child_ = child::ended_elsewhere;
        return transfer_loop::resume_or_defer(*this, [this] { return parent_.self(); });
    }
    after_stop child_stopped() noexcept override {
        child_ = child::ended_elsewhere;
        body_.end();
        return parent_.stopped();
    }

    // First, because it may throw, and then nothing has begun.
    [[no_unique_address]] waiting_coroutine<Env, Promise> parent_;
    body_type& body_;
    union {
        bool* detached_;                    // in suspends(); of a body that it resumes
        std::coroutine_handle<> deferred_;  // of a body that the loop resumes
    };
    child child_ = child::not_begun;
    manual_lifetime<outcome_type> outcome_;
};
template <class T, class Env, class Promise>
using next_awaiter = waiting_awaiter<waiter_for_next<T, Env, Promise>>;

// A next() that is connected to a receiver.
template <class T, class Env, class Rcvr>
class next_operation final : task_waiter {
    using body_type = async_generator_body<T, Env>;
    using outer_type = std::decay_t<env_of_t<Rcvr>>;

public:
    using operation_state_concept = operation_state_tag;

    next_operation(body_type& body, Rcvr rcvr)
        : rcvr_(static_cast<Rcvr&&>(rcvr)), root_(execution::get_env(rcvr_)), body_(body) {}
    ~next_operation() {
        COPPICE_CHECK(phase_ != phase::running,
                      "an operation of next() was destroyed while it was running: keep it until it "
                      "completes");
    }
    void start() & noexcept {
        COPPICE_CHECK(phase_ == phase::idle,
                      "an operation of next() was started twice: connect its sender again");
        if (body_.has_ended()) {
            phase_ = phase::over;
            execution::set_value(static_cast<Rcvr&&>(rcvr_), item_of_t<T>());
            return;
        }
        const auto coroutine = body_.begin_turn();
        phase_ = phase::running;
        root_.listen(execution::get_env(rcvr_));
        coroutine.promise().begin(root_.context(), *this, starts::detached, outcome_);
        resume_from_outside(coroutine);
    }

private:
    enum class phase : unsigned char { idle, running, over };

    std::coroutine_handle<> child_ended() noexcept override {
        end();
        if (outcome_.is_error()) body_.end();
        outcome_.deliver(
            [this](item_of_t<T>&& item) noexcept {
                if (!body_.has_ended()) body_.end_turn(static_cast<bool>(item));
                execution::set_value(static_cast<Rcvr&&>(rcvr_), static_cast<item_of_t<T>&&>(item));
            },
            [this](auto&& error) noexcept {
                if (!body_.has_ended()) body_.end();  // moving the element has failed
                execution::set_error(static_cast<Rcvr&&>(rcvr_),
                                     static_cast<decltype(error)>(error));
            });
        return std::noop_coroutine();
    }
    after_stop child_stopped() noexcept override {
        body_.end();
        end();
        execution::set_stopped(static_cast<Rcvr&&>(rcvr_));
        return after_stop::nothing();
    }
    // Called before the receiver is completed, which may destroy this operation.
    void end() noexcept {
        root_.reset();
        phase_ = phase::over;
    }

    [[no_unique_address]] Rcvr rcvr_;
    task_root<Env, outer_type> root_;
    body_type& body_;
    typename body_type::promise_type::outcome_type outcome_;
    // Written by the thread that starts the operation, and by the one that completes it.
    phase phase_ = phase::idle;
};

// What next() returns. Awaited or connected once, as an r-value. Lifetime: the generator outlives
// it, and is not moved before it has completed.
template <class T, class Env>
class [[nodiscard("await it or connect it: it has not begun")]] next_element
    : public ends_where_it_began<Env> {
public:
    using sender_concept = sender_tag;
    using awaits_tasks = void;

    explicit next_element(async_generator_body<T, Env>& body) noexcept : body_(&body) {}
    next_element(next_element&& other) noexcept : body_(std::exchange(other.body_, nullptr)) {}

    // The functions of an awaitable. Returns the element, or nothing. Errors: throws the error of
    // the body.
    template <class Promise>
    next_awaiter<T, Env, Promise> as_awaitable(Promise& promise) && {
        return next_awaiter<T, Env, Promise>(use(), promise);
    }
    next_awaiter<T, Env, void> operator co_await() && { return next_awaiter<T, Env, void>(use()); }

    // The functions of a sender. Completes on the scheduler of the receiver's environment, which is
    // where it is started.
    template <class Self, class... Outer>
    static consteval auto get_completion_signatures() noexcept {
        return typename task_completions<item_of_t<T>, typename task_errors<Env>::type>::type();
    }
    template <receiver Rcvr>
    next_operation<T, Env, Rcvr> connect(Rcvr rcvr) && {
        return next_operation<T, Env, Rcvr>(use(), static_cast<Rcvr&&>(rcvr));
    }
    next_element affine() && noexcept
        requires internal::keeps_scheduler<internal::ends_where_it_began<Env>>
    {
        return std::move(*this);
    }

private:
    async_generator_body<T, Env>& use() {
        COPPICE_CHECK(body_ != nullptr,
                      "a next() of an async_generator was used twice, or after it was moved from");
        return *std::exchange(body_, nullptr);
    }
    async_generator_body<T, Env>* body_;
};

}  // namespace coppice::execution::internal
