// timeout: give a sender a limited time, then stop it and send std::errc::timed_out.
#pragma once
// The sender and a timer run side by side; who completes first decides, and stops the other. The
// sender finds the time of its end in its environment (get_deadline), or the receiver's deadline if
// that comes sooner. The timer is that of the environment's timed scheduler, or, where it names
// none for certain, that of the sender's attributes: an operation of an io::context names its
// context's; or else what the task that awaits has: the one that was named around it, or around
// those that await it, or its scheduler, if that has timers. A sender that completes inside its
// start needs no timer.
//
//   outcome_   running -> finished | expired, by who is first
//   pending_   the sender and the timer; the last to arrive completes the receiver
//
// Source: ours.

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/exec/alternatives.hpp>
#include <coppice/exec/closure.hpp>
#include <coppice/exec/stop_registration.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/stop/finite.hpp>

#include <system_error>

namespace coppice::execution {

// Wanted by timeout: an environment, or a sender, that names a timed scheduler.
struct timed_scheduler_in_the_environment {};

// What the sender (Index 0) and the timer (Index 1) see of their stop source.
template <std::size_t Index>
using timeout_token_t = finite_inplace_stop_token<2, Index>;

// What the sender sees: its own stop token and deadline before the receiver's environment.
template <class Env>
class timeout_env {
public:
    timeout_env(timeout_token_t<0> token, instant deadline, Env&& base) noexcept
        : token_(token), deadline_(deadline), base_(static_cast<Env&&>(base)) {}
    timeout_token_t<0> query(get_stop_token_t) const noexcept { return token_; }
    instant query(get_deadline_t) const noexcept { return deadline_; }
    instant query(get_unwatched_deadline_t) const noexcept { return get_unwatched_deadline(base_); }
    template <class Query, class... Args>
        requires(!one_of<Query, get_stop_token_t, get_deadline_t, get_unwatched_deadline_t>) &&
                is_forwarding_query<Query> && has_query<Env, Query, Args...>
    decltype(auto) query(Query tag, Args&&... args) const noexcept {
        return static_cast<const Env&>(base_).query(tag, static_cast<Args&&>(args)...);
    }

private:
    timeout_token_t<0> token_;
    instant deadline_;
    [[no_unique_address]] Env base_;
};
// What the timer sees: only that it may be stopped.
using timer_env = prop<get_stop_token_t, timeout_token_t<1>>;

struct timeout_t {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr, time_span limit) const;
    constexpr auto operator()(time_span limit) const noexcept {
        return execution::bind_adaptor(*this, limit);
    }
};

// How a timer can fail, but for being stopped.
template <class TimerSigs>
struct timer_errors;
template <class... Fns>
struct timer_errors<completion_signatures<Fns...>> {
    using type = signatures_union_t<
        std::conditional_t<signature_has_tag<set_error_t, Fns>, completion_signatures<Fns>,
                           completion_signatures<>>...>;
};
// Everything that may have to be kept: the sender's completions and the timer's errors.
template <class Sigs, class TimerSigs>
using timeout_kept_t =
    signatures_union_t<Sigs, decltype(execution::transform_if_valid<timer_errors, TimerSigs>())>;

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

// Whether Env names a timed scheduler, or has one that is timed for certain.
template <class Env>
inline constexpr bool names_certain_timer =
    has_query<Env, get_timed_scheduler_t> ||
    certainly_timed_scheduler<call_result_t<get_timed_scheduler_t, Env>>;

// The environment's timed scheduler, or the sender's, or one of the environment that may be timed.
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

// Sigs are those of timeout_kept_t.
template <class Sigs, class Sch, class Rcvr>
class timeout_state : immovable {
public:
    template <class Child>
    timeout_state(Rcvr r, const Child& child) noexcept
        : rcvr(static_cast<Rcvr&&>(r)),
          sch(execution::timeout_scheduler(child, execution::get_env(std::as_const(rcvr)))) {}

    [[no_unique_address]] Rcvr rcvr;
    [[no_unique_address]] Sch sch;
    finite_inplace_stop_source<2> source;  // of the sender and the timer
    instant end = instant::never();        // of the limit; written before the sender is started
    instant deadline = instant::never();   // the receiver's, if that comes sooner

    // Before the sender is started.
    void listen() noexcept {
        on_stop_.engage(get_stop_token(execution::get_env(rcvr)), request_stop_of(source));
    }
    // The sender completed, or the timer failed.
    template <class Tag, class... Args>
    void finish(Tag tag, Args&&... args) noexcept {
        if (decide(outcome::finished)) {
            result_.keep(tag, static_cast<Args&&>(args)...);
            source.request_stop();
        }
        arrive();
    }
    void expire() noexcept {
        if (decide(outcome::expired)) source.request_stop();
        arrive();
    }
    // A sender that keeps the deadline by itself may stop before the timer comes: that is the same.
    void sender_stopped() noexcept {
        if (deadline == end && now(sch) >= end) {
            expire();
        } else {
            finish(set_stopped_t());
        }
    }
    // Whether both have arrived. relaxed: whoever asks knows it in another way, or is wrong
    bool over() const noexcept { return pending_.load(relaxed) == 0; }
    // For the starter, who has not arrived yet.
    bool decided() const noexcept {
        return outcome_.load(relaxed) != outcome::running;  // relaxed: reads nothing else
    }
    // The last thing each of the two does here.
    void arrive() noexcept {
        // edge timeout.arrive (release), edge timeout.arrive (acquire): the last sees the result
        if (pending_.fetch_sub(1, acq_rel) != 1) return;
        on_stop_.reset();
        // relaxed: ordered by timeout.arrive
        if (outcome_.load(relaxed) == outcome::finished) {
            result_.deliver(rcvr);
        } else {
            set_error(static_cast<Rcvr&&>(rcvr), std::make_error_code(std::errc::timed_out));
        }
    }

private:
    enum class outcome : unsigned char { running, finished, expired };

    bool decide(outcome mine) noexcept {
        outcome expected = outcome::running;
        // relaxed: says only who was first; arrive() publishes the result
        return outcome_.compare_exchange_strong(expected, mine, relaxed, relaxed);
    }

    atomic<unsigned> pending_{2};
    atomic<outcome> outcome_{outcome::running};
    completion_store<Sigs> result_;  // written by who decided `finished`
    [[no_unique_address]] stop_registration<
        stop_token_of_t<env_of_t<Rcvr>>, request_stop_of<finite_inplace_stop_source<2>>> on_stop_;
};

template <class State, class Rcvr>
class timeout_child_receiver {
public:
    using receiver_concept = receiver_tag;
    explicit timeout_child_receiver(State& state) noexcept : state_(&state) {}
    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        state_->finish(set_value_t(), static_cast<Args&&>(args)...);
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        state_->finish(set_error_t(), static_cast<Error&&>(error));
    }
    void set_stopped() && noexcept { state_->sender_stopped(); }
    auto get_env() const noexcept -> timeout_env<env_of_t<const Rcvr&>> {
        return timeout_env<env_of_t<const Rcvr&>>(state_->source.template get_token<0>(),
                                                  state_->deadline,
                                                  execution::get_env(std::as_const(state_->rcvr)));
    }

private:
    State* state_;
};

template <class State>
class timeout_timer_receiver {
public:
    using receiver_concept = receiver_tag;
    explicit timeout_timer_receiver(State& state) noexcept : state_(&state) {}
    void set_value() && noexcept { state_->expire(); }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        state_->finish(set_error_t(), static_cast<Error&&>(error));
    }
    void set_stopped() && noexcept { state_->arrive(); }
    timer_env get_env() const noexcept {
        return timer_env(get_stop_token, state_->source.template get_token<1>());
    }

private:
    State* state_;
};

// The type is asked of a function: an alias of an alias is mixed up with its neighbours by GCC 12.
template <class Child, class Env>
using timeout_scheduler_t = decltype(execution::timeout_scheduler(
    std::declval<const std::remove_cvref_t<Child>&>(), std::declval<Env>()));
template <class Sch>
using timer_sender_t = call_result_t<schedule_after_t, const Sch&, time_span>;

template <class Child, class Rcvr>
class timeout_operation {
    using Sch = timeout_scheduler_t<Child, env_of_t<const Rcvr&>>;
    using Sigs =
        timeout_kept_t<completion_signatures_of_t<Child, timeout_env<env_of_t<const Rcvr&>>>,
                       completion_signatures_of_t<timer_sender_t<Sch>, timer_env>>;
    using state_type = timeout_state<Sigs, Sch, Rcvr>;
    using child_receiver = timeout_child_receiver<state_type, Rcvr>;
    using timer_receiver = timeout_timer_receiver<state_type>;

public:
    using operation_state_concept = operation_state_tag;

    timeout_operation(Child&& child, time_span limit, Rcvr rcvr)
        : state_(static_cast<Rcvr&&>(rcvr), child),
          limit_(limit),
          timer_(execution::connect(schedule_after(state_.sch, limit), timer_receiver(state_))),
          child_(execution::connect(static_cast<Child&&>(child), child_receiver(state_))) {}
    timeout_operation(timeout_operation&&) = delete;
    ~timeout_operation() {
        COPPICE_CHECK(!started_ || state_.over(),
                      "an operation of timeout was destroyed while it was running");
    }

    void start() & noexcept {
        COPPICE_CHECK(!started_, "an operation of timeout was started twice");
        started_ = true;
        const instant outer = get_deadline(execution::get_env(std::as_const(state_.rcvr)));
        state_.end = now(state_.sch) + limit_;
        state_.deadline = state_.end < outer ? state_.end : outer;
        state_.listen();
        execution::start(child_);
        if (state_.decided()) {
            state_.arrive();  // in the timer's place; may end this
        } else {
            execution::start(timer_);
        }
    }

private:
    state_type state_;
    time_span limit_;
    connect_result_t<timer_sender_t<Sch>, timer_receiver> timer_;
    connect_result_t<Child, child_receiver> child_;
    bool started_ = false;
};

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
        return {static_cast<Child&&>(child), data, static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Child>
    auto connect(Rcvr rcvr) const& -> timeout_operation<const Child&, Rcvr> {
        return {child, data, static_cast<Rcvr&&>(rcvr)};
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
            return execution::transform_if_valid<timeout_signatures, Kept>();
        } else {
            return pipeline_error<in_algorithm<timeout_t>, got<Env>,
                                  wanted<timed_scheduler_in_the_environment>>();
        }
    }
};

// Stops sndr after `limit` and then sends std::errc::timed_out as an std::error_code. Whatever sndr
// sends after that is dropped; it is waited for. Cost: no allocation, and no timer for a sender
// that completes inside its start. Units: any <chrono> duration.
template <sender Sndr>
constexpr auto timeout_t::operator()(Sndr&& sndr, time_span limit) const {
    return timeout_sender<std::decay_t<Sndr>>(limit, static_cast<Sndr&&>(sndr));
}
inline constexpr timeout_t timeout{};

}  // namespace coppice::execution
