// continues_on, schedule_from: complete on a given scheduler instead of the child's.
#pragma once
// The child's results are stored, the scheduler's operation is started, and its completion delivers
// them. Both operations are made when the sender is connected, so nothing is allocated. If making
// one throws, connect throws. If the scheduler's operation fails or is stopped, the whole operation
// completes the same way. Source: [exec.continues.on], [exec.schedule.from].

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/alternatives.hpp>
#include <coppice/exec/scheduler.hpp>

namespace coppice::execution {

// Passes its child through. A domain replaces it to control how its execution resource is left.
struct schedule_from_t {
    template <sender Sndr>
    constexpr auto operator()(Sndr&& sndr) const;
};
// Decomposes as [tag, data, child].
template <class Child>
struct schedule_from_sender {
    using sender_concept = sender_tag;
    using tag_type = schedule_from_t;
    using decomposable = void;

    [[no_unique_address]] Child child;

    template <class Init>
    constexpr explicit schedule_from_sender(internal::construct_each, Init&& init) noexcept(
        std::is_nothrow_constructible_v<Child, Init>)
        : child(static_cast<Init&&>(init)) {}

    constexpr auto get_env() const noexcept {
        return child_attrs<Child, set_value_t, set_error_t, set_stopped_t>(child);
    }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return signatures_of<internal::like_t<Self, Child>, Env...>();
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
template <sender Sndr>
constexpr auto schedule_from_t::operator()(Sndr&& sndr) const {
    return schedule_from_sender<std::decay_t<Sndr>>(internal::construct_each(),
                                                    static_cast<Sndr&&>(sndr));
}
inline constexpr schedule_from_t schedule_from{};

struct continues_on_t;

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
        delivered, decltype(execution::transform_if_valid<failure_signatures, ScheduleSigs>())>;
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

template <class Child, class Sch, class Rcvr>
using continues_on_state =
    transfer_state<schedule_result_t<const Sch&>,
                   completion_signatures_of_t<Child, child_env_t<Rcvr>>, Rcvr>;
template <class Child, class Sch, class Rcvr>
using continues_on_operation =
    adaptor_operation<Child, continues_on_state<Child, Sch, Rcvr>,
                      continues_on_receiver<continues_on_state<Child, Sch, Rcvr>, Rcvr>>;

// Completes on sch with the child's results. Cost: no allocation; the results are moved once.
struct continues_on_t {
    template <sender Sndr, scheduler Sch>
    constexpr auto operator()(Sndr&& sndr, Sch&& sch) const;
    template <scheduler Sch>
    constexpr auto operator()(Sch&& sch) const {
        return execution::bind_adaptor(*this, static_cast<Sch&&>(sch));
    }
};

// Decomposes as [tag, data, child]: data is the scheduler, child a schedule_from.
template <class Sch, class Child>
struct continues_on_sender {
    using sender_concept = sender_tag;
    using tag_type = continues_on_t;
    using decomposable = void;

    [[no_unique_address]] Sch data;
    [[no_unique_address]] Child child;

    template <class SchInit, class ChildInit>
    constexpr continues_on_sender(SchInit&& s, ChildInit&& c) noexcept(
        std::is_nothrow_constructible_v<Child, ChildInit>)
        : data(static_cast<SchInit&&>(s)), child(static_cast<ChildInit&&>(c)) {}

    // Returns true if all completions with Tag arrive on the scheduler. Completions of the schedule
    // operation itself may arrive elsewhere.
    template <class Tag, class Env>
    static consteval bool moves_over() noexcept {
        using Schedule = signatures_of<schedule_result_t<const Sch&>, fwd_env_t<Env>>;
        using Sigs = decltype(get_completion_signatures<continues_on_sender, Env>());
        if constexpr (is_completion_signatures<Schedule> && is_completion_signatures<Sigs>) {
            return Schedule::count_of(Tag()) == 0 && Sigs::count_of(Tag()) != 0;
        } else {
            return false;
        }
    }
    // Completions arrive on the scheduler, wherever the child completes.
    class attrs {
    public:
        constexpr explicit attrs(const continues_on_sender& sndr) noexcept : sndr_(&sndr) {}
        template <class Query, class... Args>
            requires is_forwarding_query<Query> &&
                     (!says_where<Query>) && has_query<env_of_t<const Child&>, Query, Args...>
        constexpr decltype(auto) query(Query ask, Args&&... args) const noexcept {
            return execution::query_attrs(sndr_->child, ask, static_cast<Args&&>(args)...);
        }
        template <class... Env>
        constexpr auto query(get_completion_scheduler_t<set_value_t> ask,
                             const Env&... env) const noexcept {
            if constexpr (internal::callable<get_completion_scheduler_t<set_value_t>, const Sch&,
                                             const Env&...>) {
                return ask(sndr_->data, env...);
            } else {
                return Sch(sndr_->data);
            }
        }
        template <completion_tag Tag, class Env>
            requires(!std::is_same_v<Tag, set_value_t>) && (moves_over<Tag, Env>())
        constexpr auto query(get_completion_scheduler_t<Tag>, const Env& env) const noexcept {
            return query(get_completion_scheduler<set_value_t>, env);
        }

    private:
        const continues_on_sender* sndr_;
    };
    constexpr attrs get_env() const noexcept { return attrs(*this); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Schedule = schedule_result_t<const Sch&>;
        using Sigs = signatures_of<internal::like_t<Self, Child>, fwd_env_t<Env>...>;
        return execution::transform_if_valid<continues_on_signatures, Sigs,
                                             signatures_of<Schedule, fwd_env_t<Env>...>>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<continues_on_operation<Child, Sch, Rcvr>, Child,
                                        schedule_result_t<const Sch&>, Rcvr> &&
        noexcept(schedule(std::declval<const Sch&>())))
        -> continues_on_operation<Child, Sch, Rcvr> {
        return {static_cast<Child&&>(child), schedule(std::as_const(data)),
                static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Child>
    auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<continues_on_operation<const Child&, Sch, Rcvr>,
                                        const Child&, schedule_result_t<const Sch&>, Rcvr> &&
        noexcept(schedule(std::declval<const Sch&>())))
        -> continues_on_operation<const Child&, Sch, Rcvr> {
        return {child, schedule(data), static_cast<Rcvr&&>(rcvr)};
    }
};

template <sender Sndr, scheduler Sch>
constexpr auto continues_on_t::operator()(Sndr&& sndr, Sch&& sch) const {
    using result = continues_on_sender<std::decay_t<Sch>, schedule_from_sender<std::decay_t<Sndr>>>;
    static_assert(pipeline_check<result>::done);
    return result(static_cast<Sch&&>(sch), schedule_from(static_cast<Sndr&&>(sndr)));
}
inline constexpr continues_on_t continues_on{};

}  // namespace coppice::execution
