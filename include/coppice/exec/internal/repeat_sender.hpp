// The sender of repeat_until and retry.
#pragma once
// Each round connects a copy of the sender, in the same place. If a round completes inside its
// start, the next one follows in a loop, not by a call (starting.hpp). If a round completes
// elsewhere, the next one starts there.

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/internal/child_attrs.hpp>
#include <coppice/exec/internal/starting.hpp>

namespace coppice::execution {
struct repeat_until_t;
struct retry_t;
}  // namespace coppice::execution

namespace coppice::execution::internal {

struct values_that_convert_to_one_bool {};  // wanted by repeat_until
struct copyable_sender {};                  // wanted by both

// The completions of the operation: those of a round that end it.
template <class Sigs, class Algorithm>
struct repeat_signatures;
template <class... Fns>
struct repeat_signatures<completion_signatures<Fns...>, repeat_until_t> {
    template <class Fn>
    struct of {
        using type = completion_signatures<Fn>;
    };
    template <class... Args>
    struct of<set_value_t(Args...)> {
        using type = pipeline_error<in_algorithm<repeat_until_t>, got<Args...>,
                                    wanted<values_that_convert_to_one_bool>>;
    };
    template <std::convertible_to<bool> Arg>
    struct of<set_value_t(Arg)> {
        using type =
            set_union_t<completion_signatures<set_value_t()>,
                        exception_signature<!noexcept(static_cast<bool>(std::declval<Arg>()))>>;
    };
    using type = signatures_union_t<typename of<Fns>::type...>;
};
template <class... Fns>
struct repeat_signatures<completion_signatures<Fns...>, retry_t> {
    using type = signatures_union_t<
        std::conditional_t<signature_has_tag<set_error_t, Fns>, completion_signatures<>,
                           completion_signatures<Fns>>...>;
};

// The completion for a stop between rounds.
template <class Env>
using repeat_stopped_t =
    std::conditional_t<unstoppable_token<stop_token_of_t<Env>>, completion_signatures<>,
                       completion_signatures<set_stopped_t()>>;

template <class Algorithm, class Child, class Rcvr>
class repeat_operation {
public:
    using operation_state_concept = operation_state_tag;

    class child_receiver {
    public:
        using receiver_concept = receiver_tag;
        explicit child_receiver(repeat_operation& op) noexcept : op_(&op) {}
        template <class... Args>
        void set_value(Args&&... args) && noexcept {
            if constexpr (std::is_same_v<Algorithm, repeat_until_t>) {
                op_->round_ended_with(static_cast<Args&&>(args)...);
            } else {
                op_->end_with(set_value_t(), static_cast<Args&&>(args)...);
            }
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            if constexpr (std::is_same_v<Algorithm, repeat_until_t>) {
                op_->end_with(set_error_t(), static_cast<Error&&>(error));
            } else {
                op_->round_ended();
            }
        }
        void set_stopped() && noexcept { op_->end_with(set_stopped_t()); }
        child_env_t<Rcvr> get_env() const noexcept { return internal::child_env(op_->rcvr_); }

    private:
        repeat_operation* op_;
    };

    template <class Init>
    repeat_operation(Init&& child, Rcvr rcvr) noexcept(std::is_nothrow_constructible_v<Child, Init>)
        : rcvr_(static_cast<Rcvr&&>(rcvr)), child_(static_cast<Init&&>(child)) {}
    repeat_operation(repeat_operation&&) = delete;
    ~repeat_operation() {
        COPPICE_CHECK(!running_,
                      "an operation of repeat_until or retry was destroyed while it was running: "
                      "keep it until it completes");
    }

    void start() & noexcept {
        COPPICE_CHECK(
            !started_,
            "an operation of repeat_until or retry was started twice: connect its sender again");
        started_ = true;
        run();
    }

private:
    // Only completions that end the operation: the receiver need not accept others.
    using Kept =
        typename repeat_signatures<completion_signatures_of_t<const Child&, child_env_t<Rcvr>>,
                                   Algorithm>::type;
    using round = connect_result_t<const Child&, child_receiver>;
    static constexpr bool nothrow = nothrow_connectable<const Child&, child_receiver>;

    // Called by a round's completion that ends the operation.
    template <class Tag, class... Args>
    void end_with(Tag tag, Args&&... args) noexcept {
        result_.keep(tag, static_cast<Args&&>(args)...);
        round_ended();
    }
    template <class Arg>
    void round_ended_with(Arg&& arg) noexcept {
        bool done = false;
        if constexpr (noexcept(static_cast<bool>(static_cast<Arg&&>(arg)))) {
            done = static_cast<bool>(static_cast<Arg&&>(arg));
        } else {
            try {
                done = static_cast<bool>(static_cast<Arg&&>(arg));
            } catch (...) {
                end_with(set_error_t(), std::current_exception());
                return;
            }
        }
        if (done) {
            end_with(set_value_t());
        } else {
            round_ended();
        }
    }
    void round_ended() noexcept {
        // run() is in start(), and continues there
        if (starting::takes_completion_of(this, mark_)) return;
        if (finish_round()) return;
        run();
    }

    // Runs rounds until one does not complete inside its start, or the operation has completed.
    void run() noexcept {
        for (;;) {
            if (stop_requested()) {
                set_stopped_if_sent();
                return;
            }
            if (!connect_round()) return;
            starting start_call(this, mark_);
            execution::start(round_.get());
            if (!start_call.has_completed()) return;  // *this may be gone
            if (finish_round()) return;
        }
    }
    // Returns true if that was the last round; the receiver has been completed then.
    bool finish_round() noexcept {
        round_.destroy();
        running_ = false;
        if (result_.empty()) return false;
        result_.deliver(rcvr_);
        return true;
    }
    // Returns false if connecting threw; the receiver has been completed then.
    bool connect_round() noexcept {
        const auto make = [this]() noexcept(nothrow) {
            return execution::connect(std::as_const(child_), child_receiver(*this));
        };
        if constexpr (nothrow) {
            round_.construct_with(make);
        } else {
            try {
                round_.construct_with(make);
            } catch (...) {
                set_error(static_cast<Rcvr&&>(rcvr_), std::current_exception());
                return false;
            }
        }
        running_ = true;
        return true;
    }
    bool stop_requested() const noexcept {
        return get_stop_token(execution::get_env(rcvr_)).stop_requested();
    }
    void set_stopped_if_sent() noexcept {
        if constexpr (!unstoppable_token<stop_token_of_t<env_of_t<Rcvr>>>) {
            set_stopped(static_cast<Rcvr&&>(rcvr_));
        }
    }

    [[no_unique_address]] Rcvr rcvr_;
    [[no_unique_address]] Child child_;
    completion_store<Kept> result_;  // empty while another round follows
    manual_lifetime<round> round_;   // alive while running_
    const starting* mark_;  // marks the round's start, and is set before it; see starting.hpp
    bool running_ = false;
    bool started_ = false;
};

// Decomposes as [tag, data, child].
template <class Algorithm, class Child>
struct repeat_sender {
    using sender_concept = sender_tag;
    using tag_type = Algorithm;
    using decomposable = void;

    [[no_unique_address]] Child child;

    template <class Init>
    constexpr explicit repeat_sender(construct_each, Init&& init) noexcept(
        std::is_nothrow_constructible_v<Child, Init>)
        : child(static_cast<Init&&>(init)) {}

    constexpr auto get_env() const noexcept { return child_attrs<Child>(child); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        if constexpr (!std::copy_constructible<Child>) {
            return pipeline_error<in_algorithm<Algorithm>, got<Child>, wanted<copyable_sender>>();
        } else {
            using Sigs = signatures_of<const Child&, fwd_env_t<Env>...>;
            using Ends =
                decltype(internal::transform_if_valid<repeat_signatures, Sigs, Algorithm>());
            using Delivered = decltype(internal::transform_if_valid<delivered_signatures, Ends>());
            if constexpr (sizeof...(Env) == 0) {
                // Only an environment says if a stop can arrive between rounds.
                return signatures_union_t<Delivered, dependent_signatures>();
            } else {
                return signatures_union_t<Delivered, repeat_stopped_t<Env>...,
                                          exception_signature<connect_throws<Env...>()>>();
            }
        }
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept(std::is_nothrow_move_constructible_v<Child>)
        -> repeat_operation<Algorithm, Child, Rcvr> {
        return {static_cast<Child&&>(child), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) const& -> repeat_operation<Algorithm, Child, Rcvr> {
        return {child, static_cast<Rcvr&&>(rcvr)};
    }

private:
    template <class... Env>
    static consteval bool connects_nothrow() noexcept {
        return (nothrow_connectable<const Child&, probe_receiver<fwd_env_t<Env>>> && ...);
    }
    template <class... Env>
    static consteval bool connect_throws() noexcept {
        if constexpr (is_completion_signatures<signatures_of<const Child&, fwd_env_t<Env>...>>) {
            return !connects_nothrow<Env...>();
        } else {
            return false;
        }
    }
};

template <class Algorithm>
struct repeat_adaptor : sender_adaptor_closure<Algorithm> {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr) const {
        using result = repeat_sender<Algorithm, std::decay_t<Sndr>>;
        static_assert(pipeline_check<result>::done);
        return result(construct_each(), static_cast<Sndr&&>(sndr));
    }
    constexpr auto operator()() const noexcept { return execution::bind_adaptor(Algorithm()); }
};

}  // namespace coppice::execution::internal
