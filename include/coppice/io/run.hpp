// run: makes a loop, runs work on it on the calling thread, and returns the result; for main().
#pragma once
// The work is a sender, a task, or a callable that takes the loop and returns one of them:
//
//   io::run([](io::context& loop) -> task<int> {...}, {.stop_on = {SIGINT, SIGTERM}})
//
// What happens, in this order, all of it on the calling thread but for what the work does
// elsewhere:
//
//   a callable is called, and the work connected     what they throw leaves run()
//   the loop runs, and the work is started on it
//   the work completes, on any thread                the loop is told; signals are let go
//   the loop runs until nothing is pending there     what the work started and did not wait for
//   the loop ends; the result is returned, or the error thrown
//
// In the work's environment every scheduler is the loop's: what a task awaits elsewhere, on a pool
// for instance, comes back to the loop, and a timeout finds the loop's timers, also in a task that
// runs where there are none.
//
// Stopping: the first signal of `stop_on` is a stop request to the work. At that moment the signals
// get back the handlers that they had before run(), so a second one kills a program that does not
// stop, if that is what it did before. Only a turn of the loop sees the first: while the work
// computes or blocks on the loop's thread, signals of `stop_on` do nothing. context::stop() on the
// loop is a stop request too; after it run() waits for the work alone, and ends the rest with
// operation_canceled. The work does not call context::restart(): it would take back a stop() that
// the loop has not seen.

#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/as_exception.hpp>
#include <coppice/exec/invoke.hpp>
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
#include <vector>

namespace coppice::io {

// How to run: when to stop, and on what loop.
struct run_options {
    // Signals that stop the work. Their handlers are replaced until the first has come or the work
    // has ended.
    std::vector<int> stop_on = {};
    io::backend backend = io::backend::automatic;
    // The world that the loop is in, instead of this machine: for tests. Lifetime: outlives run().
    io::simulation* simulation = nullptr;
};

namespace internal {

// The loop of one io::run and the end of its work, without what depends on the type of the work.
// Threads: the one in io::run(); end_work() by the one that completes the work.
class run_state : immovable {
public:
    // Errors: std::system_error.
    explicit run_state(const run_options& options);

    context& loop() noexcept { return loop_; }
    inplace_stop_token stop_token() const noexcept { return stop_.get_token(); }
    const execution::any_scheduler& timers() const noexcept { return timers_; }

    // Starts the work by start.complete(), on the loop. Blocks: until the work has ended, and what
    // it left on the loop. Errors: std::bad_alloc; then nothing was started.
    void run(operation& start);
    // The result of the work is stored.
    void end_work() noexcept;

private:
    void end_on_loop() noexcept;

    inplace_stop_source stop_;  // outlives the loop, whose end may still use its token
    context loop_;
    const execution::any_scheduler timers_;
    std::optional<context::work_guard> guard_;  // from the start of the work to its end
    std::optional<signal_set> signals_;         // until a signal has come, or the work has ended
    block_latch ended_;

    struct end_request : operation {
        explicit end_request(run_state& s) noexcept : operation(&complete_work), state(s) {}
        static void complete_work(operation* op) noexcept {
            static_cast<end_request*>(op)->state.end_on_loop();
        }
        run_state& state;
    };
    end_request end_;  // posted once, if the work completes off the loop
};

// What the work sees.
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
    // For tasks on schedulers without timers. Those on another loop have its timers.
    execution::inherited_timer query(execution::get_inherited_timer_t) const noexcept {
        return {state_->timers(), false};
    }
    inplace_stop_token query(get_stop_token_t) const noexcept { return state_->stop_token(); }

private:
    run_state* state_ = nullptr;
};

// No value: bool; one: an optional; several: an optional of a tuple.
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

// The result of work that completes with values in one way, or in none.
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
using run_result_t = typename decltype(io::internal::run_result_type<Sndr>())::type;

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

// What a run that does not type-check returns, so that its error stays alone.
struct no_run_result {};

template <class F>
inline constexpr bool makes_work = false;
template <class F>
    requires std::is_invocable_v<F, context&>
inline constexpr bool makes_work<F> = execution::sender<std::invoke_result_t<F, context&>>;

}  // namespace internal

// Returns std::optional<T> for work that sends a T, an optional of a tuple for several values, bool
// for none: empty or false if the work was stopped. A callable lives until the work has ended.
// Blocks: until the work has ended, and everything that it has left on the loop.
// Errors: the work's: an exception_ptr's exception, an error_code as system_error, anything else
// as it is; std::system_error if no loop can be made, or the signals not be received.
// Threads: any that runs no loop. Cost: that of a context.
struct run_t {
    template <class Work>
    auto operator()(Work&& work, const run_options& options = {}) const {
        if constexpr (execution::sender<Work>) {
            return run_sender<Work>(options, [&work](context&) noexcept -> Work&& {
                return static_cast<Work&&>(work);
            });
        } else if constexpr (internal::makes_work<Work>) {
            return run_sender<std::invoke_result_t<Work, context&>>(
                options, [&work](context& loop) -> decltype(auto) {
                    return execution::internal::invoke(static_cast<Work&&>(work), loop);
                });
        } else {
            using Error = execution::pipeline_error<
                execution::in_algorithm<run_t>, execution::got<Work>,
                execution::wanted<execution::callable_returning_a_sender_with_arguments<context&>>>;
            static_assert(execution::internal::diagnosis<Error>::reported);
            return internal::no_run_result();
        }
    }

private:
    template <class Sndr, class Make>
    static auto run_sender(const run_options& options, Make make) {
        using Sigs = execution::signatures_of<Sndr, internal::run_env>;
        if constexpr (!execution::is_completion_signatures<Sigs>) {
            static_assert(execution::internal::diagnosis<Sigs>::reported);
            return internal::no_run_result();
        } else if constexpr (Sigs::count_of(execution::set_value_t()) > 1) {
            using Error = execution::pipeline_error<
                execution::in_algorithm<run_t>, execution::got<Sigs>,
                execution::wanted<execution::at_most_one_value_completion>>;
            static_assert(execution::internal::diagnosis<Error>::reported);
            return internal::no_run_result();
        } else {
            using Result = internal::run_result_t<Sndr>;
            internal::run_outcome<Result> outcome(options);
            auto op =
                execution::connect(make(outcome.loop()), internal::run_receiver<Result>(outcome));
            internal::run_start<decltype(op)> start(op);
            outcome.run(start);
            return outcome.take();
        }
    }
};
inline constexpr run_t run{};

}  // namespace coppice::io
