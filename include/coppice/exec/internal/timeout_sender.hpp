// timeout_sender: the operation of a timeout; its sender and its timer meet in one join.
#pragma once
// The first of the two to complete decides the outcome and stops the other one.
//
//   outcome_   running -> finished | expired, by the first to complete, or by the due notice
//
// The scheduler of the timer may be busy with the sender itself. So a thread that finds the timer
// due gives notice (due_notice.hpp), which stops the sender there and then. The timer completes
// later, where it always does, and only then has it arrived.
//
// A sender may also stop while the outcome is open: by its own decision, because of a stop from
// outside, or, in a user's sender, because it watches the deadline. Only the last is a timeout. The
// stop is passed on as stopped if the sender never asked for the deadline, if it stops before the
// end, or if a stop from outside was requested. If it did ask and stops after the end, it cannot be
// told from a sender that keeps the deadline, and the result is a timeout.
//
// join.hpp says how the two meet, and what a stop from outside does.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/internal/child_attrs.hpp>
#include <coppice/exec/internal/join.hpp>
#include <coppice/exec/internal/timeout_env.hpp>
#include <coppice/exec/timed_scheduler.hpp>

#include <system_error>

namespace coppice::execution {

struct timeout_t;

namespace internal {

// Wanted by timeout: an environment or a sender that names a timed scheduler.
struct timed_scheduler_in_the_environment {};

// The ways in which a timer can fail: its errors, and the stop with which the end of its pool or
// loop ends it.
template <class TimerSigs>
struct timer_failures;
template <class... Fns>
struct timer_failures<completion_signatures<Fns...>> {
    using type = signatures_union_t<
        std::conditional_t<signature_has_tag<set_value_t, Fns>, completion_signatures<>,
                           completion_signatures<Fns>>...>;
};
// All completions that may have to be stored: the sender's, and the timer's failures.
template <class Sigs, class TimerSigs>
using timeout_kept_t =
    signatures_union_t<Sigs, decltype(internal::transform_if_valid<timer_failures, TimerSigs>())>;

template <class Sigs>
struct timeout_signatures;
template <class... Fns>
struct timeout_signatures<completion_signatures<Fns...>> {
    using complete = set_insert_t<delivered_signatures_t<completion_signatures<Fns...>>,
                                  set_error_t(std::error_code)>;
    using type = std::conditional_t<
        (stores_results<Fns> && ...), complete,
        pipeline_error<in_algorithm<timeout_t>, got<Fns...>, wanted<decay_copyable_results>>>;
};

// True if Env names a timed scheduler, or has one that always has timers.
template <class Env>
inline constexpr bool names_certain_timer =
    has_query<Env, get_timed_scheduler_t> ||
    certainly_timed_scheduler<call_result_t<get_timed_scheduler_t, Env>>;

// Returns the timer's scheduler; the comment at the top of this file has the order.
template <class Child, class Env>
constexpr auto timeout_scheduler(const Child& child, const Env& env) noexcept {
    if constexpr (!callable<get_timed_scheduler_t, env_of_t<const Child&>>) {
        return get_timed_scheduler(env);
    } else if constexpr (!callable<get_timed_scheduler_t, const Env&>) {
        return get_timed_scheduler(execution::get_env(child));
    } else if constexpr (names_certain_timer<const Env&>) {
        return get_timed_scheduler(env);
    } else {
        return get_timed_scheduler(execution::get_env(child));
    }
}
template <class Child, class Env>
inline constexpr bool names_a_timer =
    callable<get_timed_scheduler_t, Env> || callable<get_timed_scheduler_t, env_of_t<const Child&>>;

// Sigs are those of timeout_kept_t. The sender is the child at place 0, the timer that at place 1.
template <class Sigs, class Sch, class Rcvr>
class timeout_state
    : public join_state<timeout_state<Sigs, Sch, Rcvr>, Rcvr, tolerant_finite_stop_source<2>> {
    using Env = env_of_t<const Rcvr&>;

public:
    static constexpr char name[] = "timeout";

    template <class Sndr>
    timeout_state(Rcvr rcvr, const Sndr& sndr) noexcept
        : timeout_state::join_state(static_cast<Rcvr&&>(rcvr), 2),
          limit_(sndr.data),
          sch_(internal::timeout_scheduler(sndr.child, outer_env())) {}

    auto timer() const { return schedule_after(sch_, limit_); }
    // Called before the sender is started.
    void set_deadline() noexcept {
        const instant outer = get_deadline(outer_env());
        end_ = now(sch_) + limit_;
        deadline_.set(end_ < outer ? end_ : outer);
    }
    // Called after the sender was started. Returns true if the outcome is decided; the starter has
    // then arrived in place of the timer, which must not be started.
    bool arrive_for_timer() noexcept {
        if (outcome_.load(relaxed) == outcome::running)
            return false;  // relaxed: reads nothing else
        this->arrive();
        return true;
    }

    timeout_env<Env> child_env(join_place<0>) const noexcept {
        return timeout_env<Env>(this->source_.template get_token<0>(), deadline_, outer_env());
    }
    timer_env child_env(join_place<1>) const noexcept {
        // The const is that of a getter: the notice goes to the state itself.
        return timer_env(this->source_.template get_token<1>(),
                         due_notice(&be_told, const_cast<timeout_state*>(this)));
    }
    template <class... Args>
    void value(join_place<0>, Args&&... args) noexcept {
        finish(set_value_t(), static_cast<Args&&>(args)...);
    }
    void value(join_place<1>) noexcept { expire(); }
    template <class Error>
    void error(Error&& error) noexcept {
        finish(set_error_t(), static_cast<Error&&>(error));
    }
    // A sender that keeps the deadline itself may stop before the timer fires. That is a timeout,
    // too.
    void stopped(join_place<0>) noexcept {
        if (may_have_kept_the_deadline()) {
            expire();
        } else {
            finish(set_stopped_t());
        }
    }
    // A timer that no stop request has stopped has ended with its pool or loop. The sender has no
    // limit then, and might wait forever.
    void stopped(join_place<1>) noexcept {
        if (this->source_.stop_requested()) {
            this->arrive();
        } else {
            finish(set_stopped_t());
        }
    }
    void complete() noexcept {
        // relaxed: ordered by join.arrive
        if (outcome_.load(relaxed) == outcome::finished) {
            result_.deliver(this->rcvr_);
        } else {
            set_error(static_cast<Rcvr&&>(this->rcvr_), std::make_error_code(std::errc::timed_out));
        }
    }

private:
    enum class outcome : unsigned char { running, finished, expired };

    Env outer_env() const noexcept { return execution::get_env(std::as_const(this->rcvr_)); }
    // True only after the end. While the outcome is open, only a stop from outside stops the
    // source.
    bool may_have_kept_the_deadline() const noexcept {
        return deadline_.was_asked() && deadline_.when() == end_ &&
               !this->source_.stop_requested() && now(sch_) >= end_;
    }
    bool decide(outcome mine) noexcept {
        outcome expected = outcome::running;
        // relaxed: only decides which outcome was first; arrive() publishes the result
        return outcome_.compare_exchange_strong(expected, mine, relaxed, relaxed);
    }
    // Called when the sender has completed, or the timer has failed.
    template <class Tag, class... Args>
    void finish(Tag tag, Args&&... args) noexcept {
        const bool first = decide(outcome::finished);
        if (first) result_.keep(tag, static_cast<Args&&>(args)...);
        this->arrive(first);
    }
    void expire() noexcept { this->arrive(decide(outcome::expired)); }
    // The due notice. The timer has not arrived, so the operation is there until this returns. A
    // time that never comes: see stopped().
    static void be_told(void* state, due_notice::event what) noexcept {
        timeout_state& self = *static_cast<timeout_state*>(state);
        const bool expires = what == due_notice::event::has_come;
        if (!self.decide(expires ? outcome::expired : outcome::finished)) return;
        if (!expires) self.result_.keep(set_stopped_t());
        self.source_.request_stop();
    }

    atomic<outcome> outcome_{outcome::running};
    completion_store<Sigs> result_;  // written by the thread that decided `finished`
    time_span limit_;
    instant end_ = instant::never();  // end of the limit; written before the sender is started
    timeout_deadline deadline_;       // holds end_, or the receiver's deadline if that is earlier
    [[no_unique_address]] Sch sch_;
};

// The type is deduced from a function: GCC 12 confuses an alias of an alias with its neighbors.
template <class Child, class Env>
using timeout_scheduler_t = decltype(internal::timeout_scheduler(
    std::declval<const std::remove_cvref_t<Child>&>(), std::declval<Env>()));
template <class Sch>
using timer_sender_t = call_result_t<schedule_after_t, const Sch&, time_span>;

template <class State, class Sch, class Child>
class timeout_children {
public:
    template <class Sndr>
    timeout_children(Sndr&& sndr, State& state)
        : timer_(state.timer(), state, {}), child_(static_cast<Child&&>(sndr.child), state, {}) {}

    void start(State& state) noexcept {
        state.set_deadline();
        execution::start(child_.operation);
        if (!state.arrive_for_timer()) execution::start(timer_.operation);
    }

private:
    join_child<State, join_place<1>, timer_sender_t<Sch>> timer_;
    join_child<State, join_place<0>, Child> child_;
};

template <class Child, class Rcvr>
struct timeout_types {
    using Env = env_of_t<const Rcvr&>;
    using Sch = timeout_scheduler_t<Child, Env>;
    using Sigs = timeout_kept_t<completion_signatures_of_t<Child, timeout_env<Env>>,
                                completion_signatures_of_t<timer_sender_t<Sch>, timer_env>>;
    using state = timeout_state<Sigs, Sch, Rcvr>;
    using children = timeout_children<state, Sch, Child>;
};
template <class Child, class Rcvr>
using timeout_operation = join_operation<timeout_types<Child, Rcvr>>;

// Decomposes as [tag, data, child]: data is the limit.
template <class Child>
struct timeout_sender {
    using sender_concept = sender_tag;
    using tag_type = timeout_t;
    using decomposable = void;

    time_span data;
    [[no_unique_address]] Child child;

    template <class Init>
    constexpr timeout_sender(time_span limit,
                             Init&& init) noexcept(std::is_nothrow_constructible_v<Child, Init>)
        : data(limit), child(static_cast<Init&&>(init)) {}

    constexpr auto get_env() const noexcept { return child_attrs<Child>(child); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return signatures<Self, Env...>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && -> timeout_operation<Child, Rcvr> {
        return {static_cast<timeout_sender&&>(*this), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Child>
    auto connect(Rcvr rcvr) const& -> timeout_operation<const Child&, Rcvr> {
        return {*this, static_cast<Rcvr&&>(rcvr)};
    }

private:
    template <class Self, class... None>
        requires(sizeof...(None) == 0)
    static consteval dependent_signatures signatures() noexcept {
        return {};
    }
    template <class Self, class Env>
    static consteval auto signatures() noexcept {
        if constexpr (names_a_timer<Child, Env>) {
            using Timer = timer_sender_t<timeout_scheduler_t<Child, Env>>;
            using Kept = timeout_kept_t<signatures_of<like_t<Self, Child>, timeout_env<Env>>,
                                        signatures_of<Timer, timer_env>>;
            return internal::transform_if_valid<timeout_signatures, Kept>();
        } else {
            return pipeline_error<in_algorithm<timeout_t>, got<Env>,
                                  wanted<timed_scheduler_in_the_environment>>();
        }
    }
};

}  // namespace internal

}  // namespace coppice::execution
