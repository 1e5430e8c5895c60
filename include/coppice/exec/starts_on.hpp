// starts_on: starts a sender on a scheduler; completes wherever the sender completes.
#pragma once
// The draft writes it as let_value over a schedule. Here the child is connected together with the
// schedule operation, so connecting it cannot fail later. Source: [exec.starts.on].

#include <coppice/exec/closure.hpp>
#include <coppice/exec/continues_on.hpp>

namespace coppice::execution {

// The environment of a child that starts on Sch.
template <class Sch, class Env>
using started_env_t = join_env_t<scheduler_env<Sch>, fwd_env_t<Env>>;

template <class Child, class Sch, class Rcvr>
class starts_on_operation {
public:
    using operation_state_concept = operation_state_tag;

    class child_receiver {
    public:
        using receiver_concept = receiver_tag;
        explicit child_receiver(starts_on_operation& op) noexcept : op_(&op) {}
        template <class... Args>
        void set_value(Args&&... args) && noexcept {
            execution::set_value(static_cast<Rcvr&&>(op_->rcvr_), static_cast<Args&&>(args)...);
        }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            execution::set_error(static_cast<Rcvr&&>(op_->rcvr_), static_cast<Error&&>(error));
        }
        void set_stopped() && noexcept { execution::set_stopped(static_cast<Rcvr&&>(op_->rcvr_)); }
        auto get_env() const noexcept -> started_env_t<Sch, env_of_t<const Rcvr&>> {
            return {scheduler_env<Sch>(op_->sch_), execution::child_env(op_->rcvr_)};
        }

    private:
        starts_on_operation* op_;
    };
    class schedule_receiver {
    public:
        using receiver_concept = receiver_tag;
        explicit schedule_receiver(starts_on_operation& op) noexcept : op_(&op) {}
        void set_value() && noexcept { execution::start(op_->child_); }
        template <class Error>
        void set_error(Error&& error) && noexcept {
            execution::set_error(static_cast<Rcvr&&>(op_->rcvr_), static_cast<Error&&>(error));
        }
        void set_stopped() && noexcept { execution::set_stopped(static_cast<Rcvr&&>(op_->rcvr_)); }
        child_env_t<Rcvr> get_env() const noexcept { return execution::child_env(op_->rcvr_); }

    private:
        starts_on_operation* op_;
    };
    using schedule_sender = schedule_result_t<const Sch&>;

    starts_on_operation(const Sch& sch, Child&& child, Rcvr rcvr) noexcept(
        noexcept(schedule(sch)) && nothrow_connectable<schedule_sender, schedule_receiver> &&
        nothrow_connectable<Child, child_receiver>)
        : sch_(sch),
          rcvr_(static_cast<Rcvr&&>(rcvr)),
          schedule_(execution::connect(schedule(sch_), schedule_receiver(*this))),
          child_(execution::connect(static_cast<Child&&>(child), child_receiver(*this))) {}
    starts_on_operation(starts_on_operation&&) = delete;
    void start() & noexcept { execution::start(schedule_); }

private:
    [[no_unique_address]] Sch sch_;
    [[no_unique_address]] Rcvr rcvr_;
    connect_result_t<schedule_sender, schedule_receiver> schedule_;
    connect_result_t<Child, child_receiver> child_;
};

struct starts_on_t {
    template <scheduler Sch, sender Sndr>
    constexpr auto operator()(Sch&& sch, Sndr&& sndr) const;
};

// Decomposes as [tag, data, child]: data is the scheduler.
template <class Sch, class Child>
struct starts_on_sender {
    using sender_concept = sender_tag;
    using tag_type = starts_on_t;
    using decomposable = void;

    [[no_unique_address]] Sch data;
    [[no_unique_address]] Child child;

    template <class SchInit, class ChildInit>
    constexpr starts_on_sender(SchInit&& s, ChildInit&& c) noexcept(
        std::is_nothrow_constructible_v<Child, ChildInit>)
        : data(static_cast<SchInit&&>(s)), child(static_cast<ChildInit&&>(c)) {}

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
    // The completions are where the child's would be if it were started on the scheduler.
    class attrs {
    public:
        constexpr explicit attrs(const starts_on_sender& sndr) noexcept : sndr_(&sndr) {}
        template <class Query, class... Args>
            requires is_forwarding_query<Query> &&
                     (!says_where<Query>) && has_query<env_of_t<const Child&>, Query, Args...>
        constexpr decltype(auto) query(Query ask, Args&&... args) const noexcept {
            return execution::query_attrs(sndr_->child, ask, static_cast<Args&&>(args)...);
        }
        // Not answered if scheduling may fail with Tag: it is not known where that would happen.
        template <template <class> class Query, completion_tag Tag, class Env>
            requires says_where<Query<Tag>> && (!schedule_sends<Tag, Env>()) &&
                     internal::callable<Query<Tag>, env_of_t<const Child&>,
                                        started_env_t<Sch, const Env&>>
        constexpr auto query(Query<Tag> ask, const Env& env) const noexcept {
            return ask(execution::get_env(sndr_->child),
                       started_env_t<Sch, const Env&>(scheduler_env<Sch>(sndr_->data),
                                                      execution::forward_env(env)));
        }

    private:
        const starts_on_sender* sndr_;
    };
    constexpr attrs get_env() const noexcept { return attrs(*this); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        using Schedule = schedule_result_t<const Sch&>;
        using Failures =
            decltype(execution::transform_if_valid<failure_signatures,
                                                   signatures_of<Schedule, fwd_env_t<Env>...>>());
        using Sigs = signatures_of<internal::like_t<Self, Child>, started_env_t<Sch, Env>...>;
        return signatures_union_t<Sigs, Failures>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<starts_on_operation<Child, Sch, Rcvr>, const Sch&, Child,
                                        Rcvr>) -> starts_on_operation<Child, Sch, Rcvr> {
        return {data, static_cast<Child&&>(child), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Child>
    auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<starts_on_operation<const Child&, Sch, Rcvr>, const Sch&,
                                        const Child&, Rcvr>)
        -> starts_on_operation<const Child&, Sch, Rcvr> {
        return {data, child, static_cast<Rcvr&&>(rcvr)};
    }
};

// Starts sndr on sch. Cost: no allocation.
template <scheduler Sch, sender Sndr>
constexpr auto starts_on_t::operator()(Sch&& sch, Sndr&& sndr) const {
    using result = starts_on_sender<std::decay_t<Sch>, std::decay_t<Sndr>>;
    static_assert(pipeline_check<result>::done);
    return result(static_cast<Sch&&>(sch), static_cast<Sndr&&>(sndr));
}
inline constexpr starts_on_t starts_on{};

}  // namespace coppice::execution
