// The sender of starts_on.
#pragma once
// The draft writes it as let_value over a schedule. Here the child is connected together with the
// schedule operation, so connecting it cannot fail later.

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/continues_on_sender.hpp>

namespace coppice::execution {
struct starts_on_t;
}

namespace coppice::execution::internal {

// The environment of a child that starts on Sch.
template <class Sch, class Env>
using started_env_t = join_env_t<scheduler_env<Sch>, fwd_env_t<Env>>;

template <class Sch, class Rcvr>
struct starts_on_state {
    starts_on_state(const Sch& s, Rcvr r) noexcept : sch(s), rcvr(static_cast<Rcvr&&>(r)) {}
    [[no_unique_address]] Sch sch;
    [[no_unique_address]] Rcvr rcvr;
};

template <class Sch, class Rcvr>
class starts_on_receiver : public passing_receiver<starts_on_state<Sch, Rcvr>, Rcvr> {
public:
    using passing_receiver<starts_on_state<Sch, Rcvr>, Rcvr>::passing_receiver;
    auto get_env() const noexcept -> started_env_t<Sch, env_of_t<const Rcvr&>> {
        return {scheduler_env<Sch>(this->state_->sch), internal::child_env(this->state_->rcvr)};
    }
};

template <class Child, class Sch, class Rcvr>
class starts_on_operation : public starts_on_state<Sch, Rcvr> {
    using schedule_sender = schedule_result_t<const Sch&>;
    using child_receiver = starts_on_receiver<Sch, Rcvr>;

    // Its state is the base class, because this class is not complete yet.
    class schedule_receiver : public passing_receiver<starts_on_state<Sch, Rcvr>, Rcvr> {
    public:
        using passing_receiver<starts_on_state<Sch, Rcvr>, Rcvr>::passing_receiver;
        void set_value() && noexcept {
            execution::start(static_cast<starts_on_operation&>(*this->state_).child_);
        }
    };

public:
    using operation_state_concept = operation_state_tag;

    starts_on_operation(Child&& child, const Sch& s,
                        Rcvr r) noexcept(noexcept(schedule(s)) &&
                                         nothrow_connectable<schedule_sender, schedule_receiver> &&
                                         nothrow_connectable<Child, child_receiver>)
        : starts_on_state<Sch, Rcvr>(s, static_cast<Rcvr&&>(r)),
          schedule_(
              execution::connect(schedule(std::as_const(this->sch)), schedule_receiver(*this))),
          child_(execution::connect(static_cast<Child&&>(child), child_receiver(*this))) {}
    starts_on_operation(starts_on_operation&&) = delete;
    void start() & noexcept { execution::start(schedule_); }

private:
    connect_result_t<schedule_sender, schedule_receiver> schedule_;
    connect_result_t<Child, child_receiver> child_;
};

// Completes where the child would if it were started on the scheduler.
template <class Sch, class Child>
class starts_on_attrs : public forwarded_attrs<Child> {
    // Returns true if the schedule operation may complete with Tag.
    template <class Tag, class Env>
    static consteval bool schedule_sends() noexcept {
        if constexpr (std::is_same_v<Tag, set_value_t>) {
            return false;
        } else {
            using Sigs = signatures_of<schedule_result_t<const Sch&>, fwd_env_t<Env>>;
            if constexpr (is_completion_signatures<Sigs>) {
                return Sigs::count_of(Tag()) != 0;
            } else {
                return true;
            }
        }
    }

public:
    constexpr starts_on_attrs(const Sch& sch, const Child& child) noexcept
        : forwarded_attrs<Child>(child), sch_(&sch) {}
    using forwarded_attrs<Child>::query;

    // Not answered if scheduling may fail with Tag: it is not known where that would happen.
    template <template <class> class Query, completion_tag Tag, class Env>
        requires says_where<Query<Tag>> && (!schedule_sends<Tag, Env>()) &&
                 callable<Query<Tag>, env_of_t<const Child&>, started_env_t<Sch, const Env&>>
    constexpr auto query(Query<Tag> ask, const Env& env) const noexcept {
        return ask(
            execution::get_env(*this->child_),
            started_env_t<Sch, const Env&>(scheduler_env<Sch>(*sch_), internal::forward_env(env)));
    }

private:
    const Sch* sch_;
};

template <class Sch>
struct starts_on_algorithm {
    using tag_type = starts_on_t;
    template <class Child, class Rcvr>
    using operation = starts_on_operation<Child, Sch, Rcvr>;

    template <class Sndr>
    static constexpr auto attrs(const Sndr& sndr) noexcept {
        return starts_on_attrs<Sch, decltype(sndr.child)>(sndr.data, sndr.child);
    }
    template <class Child, class... Env>
    static consteval auto signatures() noexcept {
        using Schedule = schedule_result_t<const Sch&>;
        using Failures =
            decltype(internal::transform_if_valid<failure_signatures,
                                                  signatures_of<Schedule, fwd_env_t<Env>...>>());
        return signatures_union_t<signatures_of<Child, started_env_t<Sch, Env>...>, Failures>();
    }
};
template <class Sch, class Child>
using starts_on_sender = adaptor_sender<starts_on_algorithm<Sch>, Sch, Child>;

}  // namespace coppice::execution::internal
