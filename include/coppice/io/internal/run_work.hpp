// run_work: makes a loop and runs work on it: the body of io::run.
#pragma once

#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/exec/internal/invoke.hpp>
#include <coppice/exec/value_types.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/signal_set.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/token/block_latch.hpp>

#include <exception>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coppice::io {

struct run_options;

}  // namespace coppice::io

namespace coppice::io::internal {

// The loop of one io::run and the end of its work: the part that does not depend on the type of the
// work.
// Threads: the thread in io::run(); end_work() is called by the thread that completes the work.
class run_state : immovable {
public:
    // Errors: std::system_error.
    explicit run_state(const run_options& options);

    context& loop() noexcept { return loop_; }
    inplace_stop_token stop_token() const noexcept { return stop_.get_token(); }
    const execution::any_scheduler& timers() const noexcept { return timers_; }

    // Starts the work on the loop by calling start.complete(). Blocks: until the work, and
    // everything that it left on the loop, has ended. Errors: std::bad_alloc; nothing was started
    // then.
    void run(operation& start);
    // Called when the result of the work is stored.
    void end_work() noexcept;

private:
    void end_on_loop() noexcept;

    inplace_stop_source stop_;  // outlives the loop, whose destruction may still use its token
    context loop_;
    const execution::any_scheduler timers_;
    std::optional<context::work_guard> guard_;  // held from the start of the work to its end
    std::optional<signal_set> signals_;         // until a signal has come, or the work has ended
    block_latch ended_;

    struct end_request : operation {
        explicit end_request(run_state& s) noexcept : operation(&complete_work), state(s) {}
        static void complete_work(operation* op) noexcept {
            static_cast<end_request*>(op)->state.end_on_loop();
        }
        run_state& state;
    };
    end_request end_;  // posted once, if the work completes on another thread
};

// The environment of the work.
class run_env {
public:
    run_env() noexcept = default;
    explicit run_env(run_state& state) noexcept : state_(&state) {}
    context::scheduler query(execution::get_scheduler_t) const noexcept {
        return state_->loop().get_scheduler();
    }
    context::scheduler query(execution::get_start_scheduler_t) const noexcept {
        return state_->loop().get_scheduler();
    }
    context::scheduler query(execution::get_delegation_scheduler_t) const noexcept {
        return state_->loop().get_scheduler();
    }
    // For tasks on schedulers without timers. A task on another loop uses that loop's timers.
    execution::internal::inherited_timer query(
        execution::internal::get_inherited_timer_t) const noexcept {
        return {state_->timers(), false};
    }
    inplace_stop_token query(get_stop_token_t) const noexcept { return state_->stop_token(); }

private:
    run_state* state_ = nullptr;
};

// The result for no value is a bool; for one value, an optional; for several, an optional of a
// tuple.
template <class... Ts>
struct run_result {
    using type = std::optional<std::tuple<Ts...>>;
};
template <class T>
struct run_result<T> {
    using type = std::optional<T>;
};
template <>
struct run_result<> {
    using type = bool;
};
template <class... Ts>
using run_result_of = typename run_result<std::decay_t<Ts>...>::type;

// The result of work that has one value completion, or none.
template <class Sndr>
consteval auto run_result_type() noexcept {
    using Sigs = execution::signatures_of<Sndr, run_env>;
    if constexpr (Sigs::count_of(execution::set_value_t()) == 0) {
        return std::type_identity<bool>();
    } else {
        return std::type_identity<
            execution::value_types_of_t<Sndr, run_env, run_result_of, std::type_identity_t>>();
    }
}
template <class Sndr>
using run_result_t = typename decltype(run_result_type<Sndr>())::type;

template <class Result>
class run_outcome : public run_state {
public:
    using run_state::run_state;

    template <class... Args>
    void keep(Args&&... args) noexcept {
        try {
            if constexpr (std::is_same_v<Result, bool>) {
                result_ = true;
            } else {
                result_.emplace(static_cast<Args&&>(args)...);
            }
        } catch (...) {
            error_ = std::current_exception();
        }
    }
    template <class Error>
    void fail(Error&& error) noexcept {
        error_ = execution::internal::as_exception(static_cast<Error&&>(error));
    }
    Result take() {
        if (error_ != nullptr) std::rethrow_exception(std::move(error_));
        return std::move(result_);
    }

private:
    std::exception_ptr error_;
    Result result_{};
};

template <class Result>
class run_receiver {
public:
    using receiver_concept = execution::receiver_tag;
    explicit run_receiver(run_outcome<Result>& outcome) noexcept : outcome_(&outcome) {}

    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        outcome_->keep(static_cast<Args&&>(args)...);
        outcome_->end_work();
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        outcome_->fail(static_cast<Error&&>(error));
        outcome_->end_work();
    }
    void set_stopped() && noexcept { outcome_->end_work(); }
    run_env get_env() const noexcept { return run_env(*outcome_); }

private:
    run_outcome<Result>* outcome_;
};

// Starts a connected operation in a turn of the loop.
template <class Op>
struct run_start : operation {
    explicit run_start(Op& o) noexcept : operation(&begin), op(o) {}
    static void begin(operation* self) noexcept {
        execution::start(static_cast<run_start*>(self)->op);
    }
    Op& op;
};

// Returned by a run that does not type-check, so that no second error follows.
struct no_run_result {};

template <class F>
inline constexpr bool makes_work = false;
template <class F>
    requires std::is_invocable_v<F, context&>
inline constexpr bool makes_work<F> = execution::sender<std::invoke_result_t<F, context&>>;

// Algorithm is what error messages name.
template <class Algorithm, class Sndr, class Make>
auto run_sender(const run_options& options, Make make) {
    using Sigs = execution::signatures_of<Sndr, run_env>;
    if constexpr (!execution::is_completion_signatures<Sigs>) {
        static_assert(execution::internal::diagnosis<Sigs>::reported);
        return no_run_result();
    } else if constexpr (Sigs::count_of(execution::set_value_t()) > 1) {
        using Error = execution::internal::pipeline_error<
            execution::internal::in_algorithm<Algorithm>, execution::internal::got<Sigs>,
            execution::internal::wanted<execution::internal::at_most_one_value_completion>>;
        static_assert(execution::internal::diagnosis<Error>::reported);
        return no_run_result();
    } else {
        using Result = run_result_t<Sndr>;
        run_outcome<Result> outcome(options);
        auto op = execution::connect(make(outcome.loop()), run_receiver<Result>(outcome));
        run_start<decltype(op)> start(op);
        outcome.run(start);
        return outcome.take();
    }
}

template <class Algorithm, class Work>
auto run_work(Work&& work, const run_options& options) {
    if constexpr (execution::sender<Work>) {
        return run_sender<Algorithm, Work>(
            options, [&work](context&) noexcept -> Work&& { return static_cast<Work&&>(work); });
    } else if constexpr (makes_work<Work>) {
        return run_sender<Algorithm, std::invoke_result_t<Work, context&>>(
            options, [&work](context& loop) -> decltype(auto) {
                return execution::internal::invoke(static_cast<Work&&>(work), loop);
            });
    } else {
        using Error = execution::internal::pipeline_error<
            execution::internal::in_algorithm<Algorithm>, execution::internal::got<Work>,
            execution::internal::wanted<
                execution::internal::callable_returning_a_sender_with_arguments<context&>>>;
        static_assert(execution::internal::diagnosis<Error>::reported);
        return no_run_result();
    }
}

}  // namespace coppice::io::internal
