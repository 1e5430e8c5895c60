// affine_sender: completes where it was started; transfers back only if the child is elsewhere.
#pragma once
// Where the child completes is asked once, when the sender is connected. A completion that already
// arrives on the start scheduler is delivered there. Any other schedules, without a stop token.

#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/internal/attrs.hpp>
#include <coppice/exec/on.hpp>
#include <coppice/exec/write_env.hpp>

namespace coppice::execution {

struct affine_t;

namespace internal {

// Returns true if a sender with these attributes completes with Tag on sch.
template <class Tag, class Attrs, class Env, class Sch>
bool completes_on(const Attrs& attrs, const Env& env, const Sch& sch) noexcept {
    using ask = get_completion_scheduler_t<Tag>;
    if constexpr (callable<ask, const Attrs&, const Env&>) {
        using Where = call_result_t<ask, const Attrs&, const Env&>;
        if constexpr (requires(const Where& where) { static_cast<bool>(where == sch); }) {
            return ask()(attrs, env) == sch;
        } else {
            return false;
        }
    } else {
        return false;
    }
}

using unstoppable_data = prop<get_stop_token_t, never_stop_token>;
template <class Sch>
using unstoppable_schedule_t =
    write_env_sender<write_env_t, unstoppable_data, schedule_result_t<const Sch&>>;

// The child's own completions, if the transfer back cannot fail.
template <class Sigs, class Sch, class Env>
struct affine_signatures {
    using type =
        pipeline_error<in_algorithm<affine_t>, got<Sch>, wanted<infallible_start_scheduler>>;
};
template <class... Fns, class Sch, class Env>
    requires(!(stores_results<Fns> && ...))
struct affine_signatures<completion_signatures<Fns...>, Sch, Env> {
    using type =
        pipeline_error<in_algorithm<affine_t>, got<Fns...>, wanted<decay_copyable_results>>;
};
template <class... Fns, class Sch, class Env>
    requires(stores_results<Fns> && ...) && infallible_scheduler<Sch, Env>
struct affine_signatures<completion_signatures<Fns...>, Sch, Env> {
    using type = delivered_signatures_t<completion_signatures<Fns...>>;
};

template <class ScheduleSender, class Sigs, class Rcvr>
class affine_state : public transfer_state<ScheduleSender, Sigs, Rcvr> {
public:
    // where(tag) returns true if the child's completions with that tag already arrive on the start
    // scheduler.
    template <class Where>
    affine_state(ScheduleSender&& sndr, Where where, Rcvr r) noexcept(
        std::is_nothrow_constructible_v<transfer_state<ScheduleSender, Sigs, Rcvr>, ScheduleSender,
                                        Rcvr>)
        : transfer_state<ScheduleSender, Sigs, Rcvr>(static_cast<ScheduleSender&&>(sndr),
                                                     static_cast<Rcvr&&>(r)),
          values_here_(where(set_value_t())),
          errors_here_(where(set_error_t())),
          stops_here_(where(set_stopped_t())) {}

    bool here(set_value_t) const noexcept { return values_here_; }
    bool here(set_error_t) const noexcept { return errors_here_; }
    bool here(set_stopped_t) const noexcept { return stops_here_; }

private:
    bool values_here_;
    bool errors_here_;
    bool stops_here_;
};

// Keeps the child's completion, and delivers it here or moves it to the start scheduler first.
template <class State, class Rcvr>
class affine_receiver : public passing_receiver<State, Rcvr> {
public:
    using passing_receiver<State, Rcvr>::passing_receiver;
    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        complete(set_value_t(), static_cast<Args&&>(args)...);
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        complete(set_error_t(), static_cast<Error&&>(error));
    }
    void set_stopped() && noexcept { complete(set_stopped_t()); }

private:
    template <class Tag, class... Args>
    void complete(Tag tag, Args&&... args) noexcept {
        this->state_->keep(tag, static_cast<Args&&>(args)...);
        if (this->state_->here(tag)) {
            this->state_->deliver_here();
        } else {
            this->state_->move_over();
        }
    }
};

template <class Child, class Sch, class Rcvr>
using affine_state_of = affine_state<unstoppable_schedule_t<Sch>,
                                     completion_signatures_of_t<Child, child_env_t<Rcvr>>, Rcvr>;
template <class Child, class Sch, class Rcvr>
using affine_operation =
    adaptor_operation<Child, affine_state_of<Child, Sch, Rcvr>,
                      affine_receiver<affine_state_of<Child, Sch, Rcvr>, Rcvr>>;
template <class Env>
using start_scheduler_of_t = std::remove_cvref_t<call_result_t<get_start_scheduler_t, Env>>;

// Decomposes as [tag, data, child].
template <class Child>
struct affine_sender {
    using sender_concept = sender_tag;
    using tag_type = affine_t;
    using decomposable = void;

    [[no_unique_address]] Child child;

    template <class Init>
    constexpr explicit affine_sender(construct_each, Init&& init) noexcept(
        std::is_nothrow_constructible_v<Child, Init>)
        : child(static_cast<Init&&>(init)) {}

    constexpr inline_attrs<set_value_t, set_error_t, set_stopped_t> get_env() const noexcept {
        return {};
    }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return signatures<Self, Env...>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && {
        return attach(static_cast<Child&&>(child), static_cast<Rcvr&&>(rcvr));
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Child>
    auto connect(Rcvr rcvr) const& {
        return attach(child, static_cast<Rcvr&&>(rcvr));
    }

private:
    template <class Self, class... None>
        requires(sizeof...(None) == 0)
    static consteval dependent_signatures signatures() noexcept {
        return {};
    }
    template <class Self, class Env>
    static consteval auto signatures() noexcept {
        if constexpr (callable<get_start_scheduler_t, Env>) {
            return internal::transform_if_valid<affine_signatures,
                                                signatures_of<like_t<Self, Child>, fwd_env_t<Env>>,
                                                start_scheduler_of_t<Env>, Env>();
        } else {
            return pipeline_error<in_algorithm<affine_t>, got<Env>,
                                  wanted<start_scheduler_in_the_environment>>();
        }
    }
    template <class Sndr, class Rcvr>
    static auto attach(Sndr&& sndr, Rcvr&& rcvr) {
        using Sch = start_scheduler_of_t<env_of_t<const Rcvr&>>;
        const Sch sch = get_start_scheduler(execution::get_env(rcvr));
        const auto where = [&sndr, &rcvr, &sch]<class Tag>(Tag) noexcept {
            return internal::completes_on<Tag>(execution::get_env(sndr), internal::child_env(rcvr),
                                               sch);
        };
        return affine_operation<Sndr, Sch, Rcvr>(static_cast<Sndr&&>(sndr),
                                                 unstoppable(schedule(sch)), where,
                                                 static_cast<Rcvr&&>(rcvr));
    }
};

}  // namespace internal

}  // namespace coppice::execution
