// any_scheduler: a scheduler of any type, for interfaces; the draft's task_scheduler.
#pragma once
// Holds any scheduler whose schedule operation cannot fail, though it may be stopped. Copies
// allocate nothing and do not throw: a small scheduler is copied, a larger one is shared.
//
// A bulk that follows it runs on the held scheduler. For a scheduler that has a domain of its own,
// as a pool's, include bulk.hpp first; programs without bulk do not compile what that needs.
//
// Source: [exec.task.scheduler], with parallel bulk as in P3927R2; timers, teams, and the implicit
// conversion are ours.

#include <coppice/exec/internal/erased_scheduler.hpp>
#include <coppice/exec/timed_scheduler.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <type_traits>

namespace coppice::execution {

namespace internal {

class any_schedule_sender;
class any_timer_sender;

}  // namespace internal

// A value that is never empty. Threads: one per object, any number of objects.
class any_scheduler {
public:
    using scheduler_concept = scheduler_tag;

    // Holds a copy of `sch`. If `sch` has a domain of its own, include exec/bulk.hpp before.
    // Errors: what copying it, and allocation, throw.
    // Cost: an allocation if it is larger than three pointers, or if copying it may throw.
    template <class Sch>
        requires(!std::same_as<std::decay_t<Sch>, any_scheduler>) &&
                internal::holdable_scheduler<std::decay_t<Sch>>
    any_scheduler(Sch&& sch) {
        internal::hold_scheduler(sch_, static_cast<Sch&&>(sch), std::allocator<void>());
    }
    // As above. A copy of `allocator` allocates the scheduler and its large operations.
    template <class Sch, class Allocator>
        requires(!std::same_as<std::decay_t<Sch>, any_scheduler>) &&
                internal::holdable_scheduler<std::decay_t<Sch>> &&
                requires { typename Allocator::value_type; }
    explicit any_scheduler(Sch&& sch, Allocator allocator) {
        internal::hold_scheduler(sch_, static_cast<Sch&&>(sch), allocator);
    }
    // There is no move: a moved-from object would hold no scheduler.
    any_scheduler(const any_scheduler& other) noexcept { other.sch_.get()->copy_to(sch_); }
    any_scheduler& operator=(const any_scheduler& other) noexcept {
        const any_scheduler copy(other);  // `other` may be inside the scheduler that *this holds
        copy.sch_.get()->copy_to(sch_);
        return *this;
    }

    // Returns a sender that completes on the held scheduler.
    // Cost: connecting it allocates if the held scheduler's operation is larger than
    // any_sender's operation_size.
    internal::any_schedule_sender schedule() const;

    // Returns true if the held scheduler has timers, and these can only be stopped. If it returns
    // false, now() and schedule_after() end the process.
    bool has_timers() const noexcept { return sch_.get()->has_timers(); }
    // Returns a sender that completes on the held scheduler after `span`.
    // Cost: connecting it allocates nothing on this library's schedulers.
    internal::any_timer_sender schedule_after(time_span span) const;
    // Returns a sender that completes on the held scheduler at `when`, or at once if that has
    // passed. Cost: as schedule_after.
    internal::any_timer_sender schedule_at(instant when) const;
    // Returns the time of the held scheduler's clock.
    instant now() const noexcept { return sch_.get()->now(); }

    forward_progress_guarantee query(get_forward_progress_guarantee_t) const noexcept {
        return sch_.get()->progress();
    }
    const internal::fork_team* query(internal::get_fork_team_t) const noexcept {
        return sch_.get()->team();
    }
    bool query(internal::runs_here_t) const noexcept { return sch_.get()->runs_on_this_thread(); }
    internal::task_scheduler_domain query(get_domain_t) const noexcept { return {}; }
    internal::task_scheduler_domain query(get_completion_domain_t<set_value_t>) const noexcept {
        return {};
    }

    friend bool operator==(const any_scheduler& a, const any_scheduler& b) noexcept {
        return a.sch_.get()->equals(*b.sch_.get());
    }
    // Returns true if a holds a scheduler equal to b.
    template <class Sch>
        requires(!std::same_as<Sch, any_scheduler>) && coppice::execution::scheduler<Sch>
    friend bool operator==(const any_scheduler& a, const Sch& b) noexcept {
        return a.sch_.get()->type() == &internal::scheduler_mark<Sch> &&
               *static_cast<const Sch*>(a.sch_.get()->scheduler()) == b;
    }
    // For the library's own senders. Returns the held scheduler.
    const internal::erased_scheduler& held() const noexcept { return *sch_.get(); }

private:
    internal::erased_scheduler::storage sch_;  // never empty
};

// The scheduler type of tasks. Source: [exec.task.scheduler].
using task_scheduler = any_scheduler;

namespace internal {

// Base of both senders: they complete on the scheduler, and hold a copy of it.
class any_scheduler_sender {
public:
    class attrs {
    public:
        explicit attrs(const any_scheduler& sch) noexcept : sch_(&sch) {}
        template <class Tag>
            requires(!std::is_same_v<Tag, set_error_t>)
        any_scheduler query(get_completion_scheduler_t<Tag>) const noexcept {
            return *sch_;
        }

    private:
        const any_scheduler* sch_;
    };
    attrs get_env() const noexcept { return attrs(sch_); }

protected:
    explicit any_scheduler_sender(const any_scheduler& sch) : sch_(sch) {}
    template <std::size_t Size, class Sent, class Rcvr, class ConnectInto>
    static auto connect_erased(ConnectInto connect_into, Rcvr rcvr) {
        return any_sender_operation<Size, Rcvr, Sent, set_value_t(), set_stopped_t()>(
            connect_into, static_cast<Rcvr&&>(rcvr));
    }
    const erased_scheduler& held() const noexcept { return sch_.held(); }

private:
    any_scheduler sch_;
};

class any_schedule_sender : public any_scheduler_sender {
public:
    using sender_concept = sender_tag;
    explicit any_schedule_sender(const any_scheduler& sch) : any_scheduler_sender(sch) {}
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        if constexpr (sizeof...(Env) != 0 && (unstoppable_token<stop_token_of_t<Env>> && ...)) {
            return completion_signatures<set_value_t()>();
        } else {
            return completion_signatures<set_value_t(), set_stopped_t()>();
        }
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) const {
        using sent = decltype(get_completion_signatures<any_schedule_sender, env_of_t<Rcvr>>());
        return connect_erased<any_operation_size, sent>(
            [this](any_operation_storage& to, schedule_receiver outer) {
                held().schedule_into(to, outer);
            },
            static_cast<Rcvr&&>(rcvr));
    }
};

class any_timer_sender : public any_scheduler_sender {
public:
    using sender_concept = sender_tag;
    any_timer_sender(const any_scheduler& sch, time_span after)
        : any_scheduler_sender(sch), after_(after), is_span_(true) {
        check_timers(sch.has_timers());
    }
    any_timer_sender(const any_scheduler& sch, instant at)
        : any_scheduler_sender(sch), at_(at), is_span_(false) {
        check_timers(sch.has_timers());
    }
    // A deadline, or the end of the held scheduler, may stop it, also under a receiver that cannot
    // be stopped.
    template <class Self, class... Env>
    static consteval completion_signatures<set_value_t(), set_stopped_t()>
    get_completion_signatures() noexcept {
        return {};
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) const {
        using sent = completion_signatures<set_value_t(), set_stopped_t()>;
        return connect_erased<timer_size, sent>(
            [this](timer_storage& to, schedule_receiver outer) {
                if (is_span_) {
                    held().schedule_after_into(to, outer, after_);
                } else {
                    held().schedule_at_into(to, outer, at_);
                }
            },
            static_cast<Rcvr&&>(rcvr));
    }

private:
    time_span after_;
    instant at_;
    bool is_span_;
};

}  // namespace internal

inline internal::any_schedule_sender any_scheduler::schedule() const {
    return internal::any_schedule_sender(*this);
}
inline internal::any_timer_sender any_scheduler::schedule_after(time_span span) const {
    return internal::any_timer_sender(*this, span);
}
inline internal::any_timer_sender any_scheduler::schedule_at(instant when) const {
    return internal::any_timer_sender(*this, when);
}
inline const any_scheduler& internal::inherited_timer::required() const noexcept {
    internal::check_timers(scheduler_ != nullptr);
    return *scheduler_;
}

}  // namespace coppice::execution
