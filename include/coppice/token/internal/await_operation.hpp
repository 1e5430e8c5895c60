// await_operation: the object of use_await, an awaitable and a sender.
#pragma once

#include <coppice/exec/as_awaitable.hpp>
#include <coppice/task/internal/suspension.hpp>
#include <coppice/token/completion.hpp>
#include <coppice/token/internal/inline_start.hpp>
#include <coppice/token/internal/outcome.hpp>
#include <coppice/token/internal/stop_link.hpp>
#include <coppice/token/signature.hpp>

#include <coroutine>
#include <exception>

namespace coppice::internal {

// True if a stop may end the operation as stopped in this environment. An initiation says by
// `never_stops` that nothing ends its operation early, so its sender does not send set_stopped.
template <class Initiation, class Env>
inline constexpr bool may_end_by_stop =
    may_be_stopped<Env> && !requires { typename Initiation::never_stops; };

// The operation state of the connected sender.
template <class Initiation, class Errors, class Rcvr, class... R>
class sent_operation final : initiated_state<Initiation, R...> {
    using env_type = execution::env_of_t<Rcvr>;

public:
    using operation_state_concept = execution::operation_state_tag;
    sent_operation(Initiation&& initiation, Errors errors, Rcvr rcvr) noexcept
        : initiated_state<Initiation, R...>(static_cast<Initiation&&>(initiation)),
          errors_(errors),
          rcvr_(static_cast<Rcvr&&>(rcvr)) {}
    void start() & noexcept {
        this->set_env(completion_env_of(execution::get_env(rcvr_), link_));
        this->template call_initiation<&completed>();  // it may have completed, and destroyed this
                                                       // object
    }

private:
    static void completed(completion_state<R...>& state, std::error_code error,
                          R... results) noexcept {
        sent_operation& self = static_cast<sent_operation&>(state);
        self.link_.reset();
        if constexpr (!Errors::throws) {
            self.errors_.report(error, nullptr);
        } else if (error.value() != 0) {
            self.failed(error);
            return;
        }
        execution::set_value(static_cast<Rcvr&&>(self.rcvr_), static_cast<R&&>(results)...);
    }
    void failed(std::error_code error) noexcept {
        if constexpr (may_end_by_stop<Initiation, env_type>) {
            if (this->env().stopped_by(error)) {
                execution::set_stopped(static_cast<Rcvr&&>(rcvr_));
                return;
            }
        }
        execution::set_error(static_cast<Rcvr&&>(rcvr_), static_cast<std::error_code&&>(error));
    }

    [[no_unique_address]] Errors errors_;
    [[no_unique_address]] Rcvr rcvr_;
    [[no_unique_address]] stop_link_for<env_type> link_;
};

// Initiations that make the awaiters of tasks themselves. These bring the task back to its
// scheduler.
template <class Initiation>
struct awaited_as_initiated {};
template <class Initiation>
    requires requires { typename Initiation::keeps_scheduler; }
struct awaited_as_initiated<Initiation> {
    using keeps_scheduler = void;
};
template <class Initiation, class Errors, class Promise>
concept makes_awaiter = requires(Initiation& initiation, Promise& promise, Errors errors) {
    initiation.await_in(promise, errors);
};

// Awaited or connected once, as an r-value or where it was made. It may be moved before that, not
// afterwards. Threads: one at a time. Blocks: never. Errors: stops the process if it is used after
// it was moved from, awaited, or connected. Cost: no allocation.
template <class Initiation, class Errors, class... R>
class [[nodiscard("await it or connect it: it has not begun")]] await_operation final
    : initiated_state<Initiation, R...>,
      public awaited_as_initiated<Initiation> {
public:
    using sender_concept = execution::sender_tag;
    // The exception says more than the error that is sent, so tasks await the object as an
    // awaitable.
    static constexpr bool tells_failure =
        Errors::throws && requires(const Initiation& initiation) { initiation.failure(); };

    template <class From>
    await_operation(From&& initiation, Errors errors) noexcept
        : initiated_state<Initiation, R...>(static_cast<From&&>(initiation)), errors_(errors) {}
    await_operation(await_operation&& other) noexcept
        : initiated_state<Initiation, R...>(static_cast<Initiation&&>(other.use())),
          errors_(other.errors_) {
        other.coroutine_ = std::noop_coroutine();
    }

    // The functions of an awaiter, in a coroutine of any type.
    bool await_ready() const noexcept { return false; }
    template <class Promise, class Suspension = execution::internal::suspension>
    auto await_suspend(std::coroutine_handle<Promise> coroutine) noexcept {
        use();
        coroutine_ = coroutine;
        if constexpr (!std::is_void_v<Promise>) listen_to(coroutine.promise());
        // If it completes on another thread, this object may be gone.
        const bool inside = start_.begin(
            this, [this]() noexcept { this->template call_initiation<&completed<Promise>>(); });
        if constexpr (may_complete_inside<Initiation>()) {
            if (!inside) return Suspension::stay();
            if constexpr (ends_by_stop<Promise>) {
                if (stopped()) [[unlikely]] {
                    go_on_stopped(coroutine.promise());
                    return Suspension::stay();
                }
            }
            return Suspension::go_on(coroutine);
        }
    }
    outcome_t<R...> await_resume() {
        if constexpr (Errors::throws && requires { this->initiation().exception(); }) {
            if (outcome_.error().value() != 0)
                std::rethrow_exception(exception_of(outcome_.error(), this->initiation()));
        }
        errors_.report(outcome_.error(), operation_name(this->initiation()));
        return outcome_.take();
    }
    // In a task whose stop token is of another type, the object is awaited as a sender.
    template <class Promise>
        requires(!followed_directly<Promise> && !makes_awaiter<Initiation, Errors, Promise>)
    auto as_awaitable(Promise& promise) {
        return execution::internal::sender_awaitable<await_operation, Promise>(
            static_cast<await_operation&&>(*this), promise);
    }
    template <class Promise>
        requires makes_awaiter<Initiation, Errors, Promise>
    auto as_awaitable(Promise& promise) {
        Initiation& initiation = use();
        coroutine_ = std::noop_coroutine();
        return initiation.await_in(promise, errors_);
    }
    // Takes the initiation out, for a function that takes operations instead of tokens.
    Initiation take_initiation() && noexcept {
        Initiation& initiation = use();
        coroutine_ = std::noop_coroutine();
        return static_cast<Initiation&&>(initiation);
    }

    // Returns what becomes of an error.
    Errors errors() const noexcept { return errors_; }

    // The functions of a sender. Its attributes are those of the initiation, if that has get_env().
    decltype(auto) get_env() const noexcept {
        if constexpr (requires { this->initiation().get_env(); }) {
            return this->initiation().get_env();
        } else {
            return execution::env<>();
        }
    }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using value = execution::set_value_t(R...);
        using error = execution::set_error_t(std::error_code);
        if constexpr (!Errors::throws) {
            return execution::completion_signatures<value>();
        } else if constexpr ((may_end_by_stop<Initiation, Env> && ...) &&
                             !requires { typename Initiation::never_stops; }) {
            return execution::completion_signatures<value, error, execution::set_stopped_t()>();
        } else {
            return execution::completion_signatures<value, error>();
        }
    }
    template <execution::receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept {
        Initiation& initiation = use();
        coroutine_ = std::noop_coroutine();
        return sent_operation<Initiation, Errors, Rcvr, R...>(static_cast<Initiation&&>(initiation),
                                                              errors_, static_cast<Rcvr&&>(rcvr));
    }

private:
    // Returns true if a stop of the operation ends the coroutine without a result.
    template <class Promise>
    static consteval bool can_end_by_stop() noexcept {
        if constexpr (!Errors::throws || std::is_void_v<Promise>) {
            return false;
        } else {
            return may_end_by_stop<Initiation, execution::env_of_t<Promise>> &&
                   requires(Promise& promise) { promise.unhandled_stopped(); };
        }
    }
    template <class Promise>
    static constexpr bool ends_by_stop = can_end_by_stop<Promise>();

    Initiation& use() noexcept {
        COPPICE_CHECK(coroutine_ == nullptr,
                      "an operation was used twice, or after it was moved from");
        return this->initiation();
    }
    template <class Promise>
    void listen_to(Promise& promise) noexcept {
        static_assert(followed_directly<Promise>,
                      "this coroutine's stop token needs a promise with an await_transform that "
                      "calls as_awaitable, e.g. by with_awaitable_senders");
        if constexpr (may_be_stopped<execution::env_of_t<Promise>>) {
            stop_link_for<execution::env_of_t<Promise>>
                link;  // followed directly, so the link is empty
            this->set_env(completion_env_of(execution::get_env(promise), link));
        }
    }
    template <class Promise>
    static void completed(completion_state<R...>& state, std::error_code error,
                          R... results) noexcept {
        await_operation& self = static_cast<await_operation&>(state);
        self.outcome_.put(error, static_cast<R&&>(results)...);
        if (self.start_.completed_inside(&self)) return;
        if constexpr (ends_by_stop<Promise>) {
            if (self.stopped()) [[unlikely]] {
                go_on_stopped(
                    std::coroutine_handle<Promise>::from_address(self.coroutine_.address())
                        .promise());
                return;
            }
        }
        execution::internal::resume_awaiting<Promise>(self.coroutine_);
    }
    bool stopped() const noexcept {
        return outcome_.error().value() != 0 && this->env().stopped_by(outcome_.error());
    }
    template <class Promise>
    static void go_on_stopped(Promise& promise) noexcept {
        execution::internal::resume_awaiting<Promise>(promise.unhandled_stopped());
    }

    [[no_unique_address]] Errors errors_;
    std::coroutine_handle<> coroutine_;  // null until the object is used
    [[no_unique_address]] marked_start<may_complete_inside<Initiation>()> start_;
    outcome_slot<R...> outcome_;
};

}  // namespace coppice::internal
