// any_scheduler: a scheduler of any type; for interfaces.
#pragma once
// Holds any scheduler whose schedule can only be stopped, not fail. Copies of small schedulers
// allocate nothing, and neither does scheduling if the operation is small. It is timed if what it
// holds is, which only the program that runs can say: has_timers(). Source: ours.

#include <coppice/base/check.hpp>
#include <coppice/exec/any_sender.hpp>
#include <coppice/exec/timed_scheduler.hpp>

namespace coppice::internal {

class fork_team;  // base/fork_deque.hpp

}  // namespace coppice::internal

namespace coppice::execution {

// Asks a scheduler for the team of its workers, const fork_team*, if it has one: what runs on that
// scheduler may be forked to them. Asks an environment that names no scheduler for the team of the
// pool that its tasks were given to; nullptr: of none. Ours.
struct get_fork_team_t {
    template <class Env>
    constexpr const internal::fork_team* operator()(const Env& env) const noexcept {
        if constexpr (has_query<Env, get_fork_team_t>) {
            return env.query(*this);
        } else {
            return nullptr;
        }
    }
    static constexpr bool query(forwarding_query_t) noexcept { return true; }
};

// The team of the pool that a scheduler belongs to, or nullptr. Ours.
template <class Sch>
const internal::fork_team* team_of(const Sch& sch) noexcept {
    if constexpr (requires { sch.query(get_fork_team_t()); }) {
        return sch.query(get_fork_team_t());
    } else {
        return nullptr;
    }
}

class any_scheduler {
    using schedule_receiver = any_receiver<set_value_t(), set_stopped_t()>;

    class concept_base;
    using storage_type = internal::small_object<concept_base, 4 * sizeof(void*)>;
    // Room for a timer of this library's schedulers.
    static constexpr std::size_t timer_size = 240;
    using timer_storage = any_storage<timer_size>;
    class concept_base {
    public:
        virtual ~concept_base() = default;
        virtual void relocate(storage_type& to) noexcept = 0;
        virtual void copy_to(storage_type& to) const = 0;
        virtual bool equals(const concept_base& other) const noexcept = 0;
        virtual const void* type() const noexcept = 0;
        virtual const void* scheduler() const noexcept = 0;
        virtual forward_progress_guarantee progress() const noexcept = 0;
        virtual const internal::fork_team* team() const noexcept = 0;
        virtual void schedule_into(any_operation_storage& storage,
                                   schedule_receiver rcvr) const = 0;
        virtual bool has_timers() const noexcept = 0;
        virtual instant now() const noexcept = 0;
        virtual void schedule_after_into(timer_storage& storage, schedule_receiver rcvr,
                                         time_span span) const = 0;
    };
    // Whether timers of Sch can only be stopped, not fail.
    template <class Sch>
    static consteval bool has_usable_timers() noexcept {
        if constexpr (timed_scheduler<Sch>) {
            return sender_to<internal::call_result_t<schedule_after_t, const Sch&, time_span>,
                             schedule_receiver>;
        } else {
            return false;
        }
    }
    static void check_timers(bool has) noexcept {
        COPPICE_CHECK(has,
                      "a timer was asked of a scheduler that has none: name one, "
                      "write_env(sender, prop(get_timed_scheduler, loop.get_scheduler()))");
    }
    // Tells types apart.
    template <class Sch>
    static constexpr char type_mark = 0;

    template <class Sch>
    class model final : public concept_base {
    public:
        explicit model(Sch sch) noexcept : sch_(static_cast<Sch&&>(sch)) {}
        void relocate(storage_type& to) noexcept override {
            to.template emplace_with<model>([this] { return model(static_cast<Sch&&>(sch_)); });
        }
        void copy_to(storage_type& to) const override {
            to.template emplace_with<model>([this] { return model(Sch(sch_)); });
        }
        bool equals(const concept_base& other) const noexcept override {
            return other.type() == type() && *static_cast<const Sch*>(other.scheduler()) == sch_;
        }
        const void* type() const noexcept override { return &type_mark<Sch>; }
        const void* scheduler() const noexcept override { return &sch_; }
        forward_progress_guarantee progress() const noexcept override {
            return get_forward_progress_guarantee(sch_);
        }
        const internal::fork_team* team() const noexcept override {
            return execution::team_of(sch_);
        }
        void schedule_into(any_operation_storage& storage, schedule_receiver rcvr) const override {
            using sender_type = schedule_result_t<const Sch&>;
            using operation = any_connected<sender_type, schedule_receiver>;
            storage.emplace_with<operation>(
                [&] { return operation(execution::schedule(sch_), rcvr); });
        }
        bool has_timers() const noexcept override { return has_usable_timers<Sch>(); }
        instant now() const noexcept override {
            if constexpr (has_usable_timers<Sch>()) {
                return execution::now(sch_);
            } else {
                check_timers(false);
                return {};
            }
        }
        void schedule_after_into(timer_storage& storage, schedule_receiver rcvr,
                                 time_span span) const override {
            if constexpr (has_usable_timers<Sch>()) {
                using sender_type =
                    internal::call_result_t<schedule_after_t, const Sch&, time_span>;
                using operation = any_connected<sender_type, schedule_receiver>;
                storage.template emplace_with<operation>(
                    [&] { return operation(execution::schedule_after(sch_, span), rcvr); });
            } else {
                check_timers(false);
            }
        }

    private:
        Sch sch_;
    };

public:
    using scheduler_concept = scheduler_tag;

    // Holds a copy of `sch`. Errors: what copying it, and allocation, throw.
    // Cost: an allocation if it takes more than three pointers.
    template <class Sch>
        requires(!std::same_as<std::decay_t<Sch>, any_scheduler>) &&
                infallible_scheduler<std::decay_t<Sch>, any_env>
    any_scheduler(Sch&& sch) {
        using holder = model<std::decay_t<Sch>>;
        sch_.template emplace_with<holder>(
            [&] { return holder(std::decay_t<Sch>(static_cast<Sch&&>(sch))); });
    }
    any_scheduler(const any_scheduler& other) {
        if (other.sch_.get() != nullptr) other.sch_.get()->copy_to(sch_);
    }
    any_scheduler(any_scheduler&&) noexcept = default;
    any_scheduler& operator=(const any_scheduler& other) {
        if (this != &other) *this = any_scheduler(other);
        return *this;
    }
    any_scheduler& operator=(any_scheduler&&) noexcept = default;

    class sender_base;
    class sender;
    sender schedule() const;

    // Whether it holds a timed scheduler, whose timers can only be stopped. Without: now() and
    // schedule_after() stop the process.
    bool has_timers() const noexcept { return sch_.get()->has_timers(); }
    class timed_sender;
    timed_sender schedule_after(time_span span) const;
    instant now() const noexcept { return sch_.get()->now(); }

    forward_progress_guarantee query(get_forward_progress_guarantee_t) const noexcept {
        return sch_.get()->progress();
    }
    const internal::fork_team* query(get_fork_team_t) const noexcept { return sch_.get()->team(); }
    friend bool operator==(const any_scheduler& a, const any_scheduler& b) noexcept {
        return a.sch_.get()->equals(*b.sch_.get());
    }
    // Whether a holds a scheduler equal to b.
    template <class Sch>
        requires(!std::same_as<Sch, any_scheduler>) && coppice::execution::scheduler<Sch>
    friend bool operator==(const any_scheduler& a, const Sch& b) noexcept {
        return a.sch_.get()->type() == &type_mark<Sch> &&
               *static_cast<const Sch*>(a.sch_.get()->scheduler()) == b;
    }

private:
    storage_type sch_;
};

// What both senders of it are: they complete on the scheduler, and hold a copy of it.
class any_scheduler::sender_base {
public:
    using sender_concept = sender_tag;

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

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        if constexpr (sizeof...(Env) != 0 && (unstoppable_token<stop_token_of_t<Env>> && ...)) {
            return completion_signatures<set_value_t()>();
        } else {
            return completion_signatures<set_value_t(), set_stopped_t()>();
        }
    }

protected:
    explicit sender_base(const any_scheduler& sch) : sch_(sch) {}
    template <std::size_t Size, class Rcvr, class ConnectInto>
    static auto connect_erased(ConnectInto connect_into, Rcvr rcvr) {
        using Sent = decltype(get_completion_signatures<sender_base, env_of_t<Rcvr>>());
        return any_sender_operation<Size, Rcvr, Sent, set_value_t(), set_stopped_t()>(
            connect_into, static_cast<Rcvr&&>(rcvr));
    }
    const concept_base& held() const noexcept { return *sch_.sch_.get(); }

private:
    any_scheduler sch_;
};

// Completes on the scheduler.
class any_scheduler::sender : public sender_base {
public:
    explicit sender(const any_scheduler& sch) : sender_base(sch) {}
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) const {
        return connect_erased<any_operation_size>(
            [this](any_operation_storage& storage, schedule_receiver erased) {
                held().schedule_into(storage, erased);
            },
            static_cast<Rcvr&&>(rcvr));
    }
};

// The same, not before its time. Cost: no allocation for timers of this library's schedulers.
class any_scheduler::timed_sender : public sender_base {
public:
    timed_sender(const any_scheduler& sch, time_span span) : sender_base(sch), span_(span) {
        check_timers(sch.has_timers());
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) const {
        return connect_erased<timer_size>(
            [this](timer_storage& storage, schedule_receiver erased) {
                held().schedule_after_into(storage, erased, span_);
            },
            static_cast<Rcvr&&>(rcvr));
    }

private:
    time_span span_;
};

inline any_scheduler::sender any_scheduler::schedule() const {
    return sender(*this);
}
inline any_scheduler::timed_sender any_scheduler::schedule_after(time_span span) const {
    return timed_sender(*this, span);
}

}  // namespace coppice::execution
