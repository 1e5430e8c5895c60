// when_any: start several senders at once, complete with the first result, after all have ended.
#pragma once
// The first value or error decides; the others are asked to stop, and are waited for, because their
// operations are part of this one. A child that completes with set_stopped is out of the race, and
// when all are, or a stop was requested from outside before anyone won, that is the completion.
// Like when_all, each child has its slot of one finite stop source.
//
//   decided_   false -> true, by the first value or error; who turns it stores the result
//   pending_   children that have not arrived; the last one completes the receiver
//
// Source: ours; the stop source as in P3409R1.

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/exec/alternatives.hpp>
#include <coppice/exec/closure.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/exec/stop_registration.hpp>
#include <coppice/stop/finite.hpp>

namespace coppice::execution {

template <std::size_t Count, std::size_t Index, class Env>
using when_any_env_t = stop_token_env<finite_inplace_stop_token<Count, Index>, Env>;

template <std::size_t Count, class Rcvr, class Sigs>
class when_any_state : immovable {
public:
    explicit when_any_state(Rcvr rcvr) noexcept : rcvr_(static_cast<Rcvr&&>(rcvr)) {}

    // Whether every child has arrived. relaxed: whoever asks knows it in another way, or is wrong
    bool over() const noexcept { return pending_.load(relaxed) == 0; }
    void listen() noexcept {
        on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), request_stop_of(source_));
    }
    template <std::size_t Index>
    auto child_env() const noexcept {
        using Env = env_of_t<const Rcvr&>;
        return when_any_env_t<Count, Index, Env>(source_.template get_token<Index>(),
                                                 execution::get_env(rcvr_));
    }
    template <class Tag, class... Args>
    void decide(Tag tag, Args&&... args) noexcept {
        // relaxed: says only who stores; arrive() publishes the result
        if (!decided_.exchange(true, relaxed)) {
            result_.keep(tag, static_cast<Args&&>(args)...);
            source_.request_stop();
        }
        arrive();
    }
    // The last thing a child does here.
    void arrive() noexcept {
        // edge when_any.arrive (release), edge when_any.arrive (acquire): the last sees the result
        if (pending_.fetch_sub(1, acq_rel) != 1) return;
        on_stop_.reset();
        if (result_.empty()) {
            set_stopped(static_cast<Rcvr&&>(rcvr_));
        } else {
            result_.deliver(rcvr_);
        }
    }

private:
    [[no_unique_address]] Rcvr rcvr_;
    tolerant_finite_stop_source<Count> source_;
    atomic<std::size_t> pending_{Count};
    atomic<bool> decided_{false};
    completion_store<Sigs> result_;  // written by who decided
    [[no_unique_address]] stop_registration<stop_token_of_t<env_of_t<Rcvr>>,
                                            request_stop_of<tolerant_finite_stop_source<Count>>>
        on_stop_;
};

template <class State, std::size_t Index>
class when_any_receiver {
public:
    using receiver_concept = receiver_tag;
    explicit when_any_receiver(State& state) noexcept : state_(&state) {}
    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        state_->decide(set_value_t(), static_cast<Args&&>(args)...);
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        state_->decide(set_error_t(), static_cast<Error&&>(error));
    }
    void set_stopped() && noexcept { state_->arrive(); }
    auto get_env() const noexcept { return state_->template child_env<Index>(); }

private:
    State* state_;
};

template <std::size_t Index, class Child, class State>
struct when_any_child_operation {
    using child_receiver = when_any_receiver<State, Index>;
    when_any_child_operation(Child&& child, State& state)
        : operation(execution::connect(static_cast<Child&&>(child), child_receiver(state))) {}
    connect_result_t<Child, child_receiver> operation;
};

template <class Indices, class Rcvr, class... Children>
class when_any_operation;
template <std::size_t... Is, class Rcvr, class... Children>
class when_any_operation<std::index_sequence<Is...>, Rcvr, Children...> {
    static constexpr std::size_t count = sizeof...(Children);
    using Sigs = signatures_union_t<
        completion_signatures_of_t<Children, when_any_env_t<count, Is, env_of_t<const Rcvr&>>>...>;
    using state_type = when_any_state<count, Rcvr, Sigs>;

    struct operations : when_any_child_operation<Is, Children, state_type>... {
        template <class Sndr>
        operations(Sndr&& sndr, state_type& state)
            : when_any_child_operation<Is, Children, state_type>(
                  static_cast<Children&&>(sndr.children.template get<Is>()), state)... {}
    };

public:
    using operation_state_concept = operation_state_tag;

    template <class Sndr>
    when_any_operation(Sndr&& sndr, Rcvr rcvr)
        : state_(static_cast<Rcvr&&>(rcvr)), operations_(static_cast<Sndr&&>(sndr), state_) {}
    when_any_operation(when_any_operation&&) = delete;
    ~when_any_operation() {
        COPPICE_CHECK(!started_ || state_.over(),
                      "an operation of when_any was destroyed while it was running");
    }

    void start() & noexcept {
        COPPICE_CHECK(!started_, "an operation of when_any was started twice");
        started_ = true;
        state_.listen();
        (execution::start(
             static_cast<when_any_child_operation<Is, Children, state_type>&>(operations_)
                 .operation),
         ...);
    }

private:
    state_type state_;
    operations operations_;
    bool started_ = false;
};

// Sends what the first child to complete with a value or an error sent. At least one sender.
// Cost: no allocation; the winning results are moved once.
struct when_any_t {
    template <sender... Sndrs>
        requires(sizeof...(Sndrs) != 0)
    constexpr auto operator()(Sndrs&&... sndrs) const;
};

// Decomposes as [tag, data, children...].
template <class... Children>
struct when_any_sender {
    using sender_concept = sender_tag;
    using tag_type = when_any_t;
    using decomposable = void;

    product<Children...> children;

    template <class... Inits>
    constexpr explicit when_any_sender(construct_each, Inits&&... inits) noexcept(
        (std::is_nothrow_constructible_v<Children, Inits> && ...))
        : children(construct_each(), static_cast<Inits&&>(inits)...) {}
    template <class Rcvr, class... Cs>
    using operation = when_any_operation<std::index_sequence_for<Cs...>, Rcvr, Cs...>;

    constexpr env<> get_env() const noexcept { return {}; }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Sigs = decltype(signatures<Self, Env...>(std::index_sequence_for<Children...>()));
        return execution::transform_if_valid<when_any_delivered, Sigs>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && -> operation<Rcvr, Children...> {
        return {static_cast<when_any_sender&&>(*this), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires(std::copy_constructible<Children> && ...)
    auto connect(Rcvr rcvr) const& -> operation<Rcvr, const Children&...> {
        return {*this, static_cast<Rcvr&&>(rcvr)};
    }

private:
    template <class Sigs>
    struct when_any_delivered;
    template <class... Fns>
    struct when_any_delivered<completion_signatures<Fns...>> {
        using complete =
            set_insert_t<delivered_signatures_t<completion_signatures<Fns...>>, set_stopped_t()>;
        using type = std::conditional_t<
            (stores_results<Fns> && ...), complete,
            pipeline_error<in_algorithm<when_any_t>, got<Fns...>, wanted<decay_copyable_results>>>;
    };
    template <class Self, std::size_t... Is>
    static consteval auto signatures(std::index_sequence<Is...>) noexcept {
        return signatures_union_t<signatures_of<like_t<Self, Children>>...>();
    }
    template <class Self, class Env, std::size_t... Is>
    static consteval auto signatures(std::index_sequence<Is...>) noexcept {
        return signatures_union_t<signatures_of<like_t<Self, Children>,
                                                when_any_env_t<sizeof...(Children), Is, Env>>...>();
    }
};

template <sender... Sndrs>
    requires(sizeof...(Sndrs) != 0)
constexpr auto when_any_t::operator()(Sndrs&&... sndrs) const {
    using result = when_any_sender<std::decay_t<Sndrs>...>;
    static_assert(pipeline_check<result>::done);
    return result(construct_each(), static_cast<Sndrs&&>(sndrs)...);
}
inline constexpr when_any_t when_any{};

}  // namespace coppice::execution
