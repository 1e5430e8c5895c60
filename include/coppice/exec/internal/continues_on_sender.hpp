// The senders of continues_on and schedule_from.
#pragma once
// The child's results are stored, the schedule operation is started, and its completion delivers
// them. Both operations are made when the sender is connected.

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/internal/child_attrs.hpp>

namespace coppice::execution {
struct schedule_from_t;
struct continues_on_t;
}  // namespace coppice::execution

namespace coppice::execution::internal {

// Decomposes as [tag, data, child].
template <class Child>
struct schedule_from_sender {
    using sender_concept = sender_tag;
    using tag_type = schedule_from_t;
    using decomposable = void;

    [[no_unique_address]] Child child;

    template <class Init>
    constexpr explicit schedule_from_sender(construct_each, Init&& init) noexcept(
        std::is_nothrow_constructible_v<Child, Init>)
        : child(static_cast<Init&&>(init)) {}

    constexpr auto get_env() const noexcept {
        return child_attrs<Child, set_value_t, set_error_t, set_stopped_t>(child);
    }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return signatures_of<like_t<Self, Child>, Env...>();
    }
    template <receiver Rcvr>
    constexpr auto connect(Rcvr rcvr) && noexcept(nothrow_connectable<Child, Rcvr>)
        -> connect_result_t<Child, Rcvr> {
        return execution::connect(static_cast<Child&&>(child), static_cast<Rcvr&&>(rcvr));
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Child>
    constexpr auto connect(Rcvr rcvr) const& noexcept(nothrow_connectable<const Child&, Rcvr>)
        -> connect_result_t<const Child&, Rcvr> {
        return execution::connect(child, static_cast<Rcvr&&>(rcvr));
    }
};

// The signatures without the value completions: the ways in which a schedule sender fails.
template <class Sigs>
struct failure_signatures;
template <class... Fns>
struct failure_signatures<completion_signatures<Fns...>> {
    using type =
        signatures_union_t<std::conditional_t<signature_has_value<Fns>, completion_signatures<>,
                                              completion_signatures<Fns>>...>;
};

template <class ChildSigs, class ScheduleSigs>
struct continues_on_signatures;
template <class... Fns, class ScheduleSigs>
struct continues_on_signatures<completion_signatures<Fns...>, ScheduleSigs> {
    using delivered = typename delivered_signatures<completion_signatures<Fns...>>::type;
    using complete = signatures_union_t<
        delivered, decltype(internal::transform_if_valid<failure_signatures, ScheduleSigs>())>;
    using type = std::conditional_t<
        (stores_results<Fns> && ...), complete,
        pipeline_error<in_algorithm<continues_on_t>, got<Fns...>, wanted<decay_copyable_results>>>;
};

// What the schedule operation delivers: the receiver, and the child's results.
template <class Sigs, class Rcvr>
struct transfer_results : immovable {
    explicit transfer_results(Rcvr r) noexcept : rcvr(static_cast<Rcvr&&>(r)) {}
    [[no_unique_address]] Rcvr rcvr;
    completion_store<Sigs> results;
};

template <class Sigs, class Rcvr>
class transfer_receiver : public passing_receiver<transfer_results<Sigs, Rcvr>, Rcvr> {
public:
    using passing_receiver<transfer_results<Sigs, Rcvr>, Rcvr>::passing_receiver;
    void set_value() && noexcept { this->state_->results.deliver(this->state_->rcvr); }
};

// Stores the child's results while the schedule operation runs, then delivers them.
template <class ScheduleSender, class Sigs, class Rcvr>
class transfer_state : public transfer_results<Sigs, Rcvr> {
public:
    using schedule_receiver = transfer_receiver<Sigs, Rcvr>;

    transfer_state(ScheduleSender&& sndr,
                   Rcvr r) noexcept(nothrow_connectable<ScheduleSender, schedule_receiver>)
        : transfer_results<Sigs, Rcvr>(static_cast<Rcvr&&>(r)),
          schedule_(
              execution::connect(static_cast<ScheduleSender&&>(sndr), schedule_receiver(*this))) {}

    template <class Tag, class... Args>
    void keep(Tag tag, Args&&... args) noexcept {
        this->results.keep(tag, static_cast<Args&&>(args)...);
    }
    void move_over() noexcept { execution::start(schedule_); }
    void deliver_here() noexcept { this->results.deliver(this->rcvr); }

private:
    connect_result_t<ScheduleSender, schedule_receiver> schedule_;
};

template <class State, class Rcvr>
class continues_on_receiver : public passing_receiver<State, Rcvr> {
public:
    using passing_receiver<State, Rcvr>::passing_receiver;
    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        this->state_->keep(set_value_t(), static_cast<Args&&>(args)...);
        this->state_->move_over();
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        this->state_->keep(set_error_t(), static_cast<Error&&>(error));
        this->state_->move_over();
    }
    void set_stopped() && noexcept {
        this->state_->keep(set_stopped_t());
        this->state_->move_over();
    }
};

template <class Sch, class Sigs, class Rcvr>
class continues_on_state : public transfer_state<schedule_result_t<const Sch&>, Sigs, Rcvr> {
    using base = transfer_state<schedule_result_t<const Sch&>, Sigs, Rcvr>;

public:
    continues_on_state(const Sch& sch, Rcvr r) noexcept(
        noexcept(schedule(sch)) &&
        std::is_nothrow_constructible_v<base, schedule_result_t<const Sch&>, Rcvr>)
        : base(schedule(sch), static_cast<Rcvr&&>(r)) {}
};

// Completions arrive on the scheduler, wherever the child completes. Sndr is a continues_on sender.
template <class Sndr, class Sch, class Child>
class continues_on_attrs : public forwarded_attrs<Child> {
    // Returns true if all completions with Tag arrive on the scheduler. Completions of the schedule
    // operation itself may arrive elsewhere.
    template <class Tag, class Env>
    static consteval bool moves_over() noexcept {
        using Schedule = signatures_of<schedule_result_t<const Sch&>, fwd_env_t<Env>>;
        using Sigs = decltype(get_completion_signatures<Sndr, Env>());
        if constexpr (is_completion_signatures<Schedule> && is_completion_signatures<Sigs>) {
            return Schedule::count_of(Tag()) == 0 && Sigs::count_of(Tag()) != 0;
        } else {
            return false;
        }
    }

public:
    constexpr continues_on_attrs(const Sch& sch, const Child& child) noexcept
        : forwarded_attrs<Child>(child), sch_(&sch) {}
    using forwarded_attrs<Child>::query;

    template <class... Env>
    constexpr auto query(get_completion_scheduler_t<set_value_t> ask,
                         const Env&... env) const noexcept {
        if constexpr (callable<get_completion_scheduler_t<set_value_t>, const Sch&,
                               const Env&...>) {
            return ask(*sch_, env...);
        } else {
            return Sch(*sch_);
        }
    }
    template <completion_tag Tag, class Env>
        requires(!std::is_same_v<Tag, set_value_t>) && (moves_over<Tag, Env>())
    constexpr auto query(get_completion_scheduler_t<Tag>, const Env& env) const noexcept {
        return query(get_completion_scheduler<set_value_t>, env);
    }

private:
    const Sch* sch_;
};

template <class Sch>
struct continues_on_algorithm {
    using tag_type = continues_on_t;
    template <class Child, class Rcvr>
    using state =
        continues_on_state<Sch, completion_signatures_of_t<Child, child_env_t<Rcvr>>, Rcvr>;
    template <class Child, class Rcvr>
    using operation = adaptor_operation<Child, state<Child, Rcvr>,
                                        continues_on_receiver<state<Child, Rcvr>, Rcvr>>;

    template <class Sndr>
    static constexpr auto attrs(const Sndr& sndr) noexcept {
        return continues_on_attrs<Sndr, Sch, decltype(sndr.child)>(sndr.data, sndr.child);
    }
    template <class Child, class... Env>
    static consteval auto signatures() noexcept {
        using Schedule = schedule_result_t<const Sch&>;
        return internal::transform_if_valid<continues_on_signatures,
                                            signatures_of<Child, fwd_env_t<Env>...>,
                                            signatures_of<Schedule, fwd_env_t<Env>...>>();
    }
};
// The data is the scheduler, and the child a schedule_from.
template <class Sch, class Child>
using continues_on_sender = adaptor_sender<continues_on_algorithm<Sch>, Sch, Child>;

}  // namespace coppice::execution::internal
