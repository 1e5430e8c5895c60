// any_scheduler: a scheduler of any type, for interfaces; the draft's task_scheduler.
#pragma once
// Holds any scheduler whose schedule operation cannot fail, though it may be stopped. Copies
// allocate nothing and do not throw: a small scheduler is copied, a larger one is shared.
// Scheduling allocates nothing if the operation is small. has_timers() says at run time if the held
// scheduler has timers.
//
// A bulk that follows it runs on the held scheduler. This header has only what a bulk needs on a
// scheduler without a domain of its own, where one index is called after the other. The rest is in
// task_scheduler_bulk.hpp, which bulk.hpp includes, so that programs without bulk do not compile
// it.
//
// Source: [exec.task.scheduler], with parallel bulk as in P3927R2; timers, teams, and the implicit
// conversion are ours.

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/any_sender.hpp>
#include <coppice/exec/domain.hpp>
#include <coppice/exec/internal/allocate.hpp>
#include <coppice/exec/internal/receiver_proxy.hpp>
#include <coppice/exec/timed_scheduler.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace coppice::internal {

class fork_team;  // base/internal/fork_deque.hpp

}  // namespace coppice::internal

namespace coppice::execution {

// Returns the fork team of a scheduler's workers, or nullptr if it has none. Work that runs on that
// scheduler may fork calls to the team. An environment that names no scheduler answers with the
// team of the pool that its tasks were submitted to. Ours.
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

// Returns the team of the pool that a scheduler belongs to, or nullptr. Ours.
template <class Sch>
const internal::fork_team* team_of(const Sch& sch) noexcept {
    if constexpr (requires { sch.query(get_fork_team_t()); }) {
        return sch.query(get_fork_team_t());
    } else {
        return nullptr;
    }
}

class parallel_scheduler;
struct bulk_chunked_t;
struct bulk_unchunked_t;

// Defined in task_scheduler_bulk.hpp. The first starts a bulk on a Sch that has a domain of its
// own. The second is what a bulk sender that follows a task_scheduler becomes.
template <class Sch>
struct bulk_in_place;
template <class Sndr, class Env>
struct task_scheduler_bulk;

// Hands bulk_chunked and bulk_unchunked to the scheduler held by an any_scheduler.
struct task_scheduler_domain {
    template <class Sndr, class Env>
        requires(sender_for<Sndr, bulk_chunked_t> || sender_for<Sndr, bulk_unchunked_t>) &&
                (task_scheduler_bulk<Sndr, Env>::applies())
    static auto transform_sender(set_value_t, Sndr&& sndr, const Env& env) noexcept(
        noexcept(task_scheduler_bulk<Sndr, Env>::make(static_cast<Sndr&&>(sndr), env))) {
        return task_scheduler_bulk<Sndr, Env>::make(static_cast<Sndr&&>(sndr), env);
    }
};

// True if a task_scheduler may hold a Sch. A parallel_scheduler is allowed although scheduling on
// it fails if its backend does; in a task_scheduler such a failure ends the process.
template <class Sch>
concept holdable_scheduler =
    infallible_scheduler<Sch, any_env> || std::same_as<Sch, parallel_scheduler>;

// An operation that frees itself with a copy of an allocator.
template <class Operation, class Allocator>
class allocated_operation final : public any_operation_base {
public:
    template <class Make>
    allocated_operation(const Allocator& allocator, Make& make)
        : allocator_(allocator), operation_(make()) {}
    void start() noexcept override { operation_.start(); }
    static void operator delete(allocated_operation* self, std::destroying_delete_t) noexcept {
        internal::delete_with(Allocator(self->allocator_), self);
    }

private:
    [[no_unique_address]] Allocator allocator_;
    Operation operation_;
};

// Where an erased operation goes: into the storage, or into memory from the allocator.
template <class Storage, class Allocator>
class operation_place {
public:
    operation_place(Storage& storage, const Allocator& allocator) noexcept
        : storage_(&storage), allocator_(&allocator) {}
    // Constructs an Operation from what make() returns. Errors: what make() or allocation throws;
    // nothing is constructed then.
    template <class Operation, class Make>
    void emplace(Make make) const {
        using std_allocator = std::allocator<typename std::allocator_traits<Allocator>::value_type>;
        if constexpr (Storage::template fits<Operation> ||
                      std::is_same_v<Allocator, std_allocator>) {
            storage_->template emplace_with<Operation>(make);
        } else {
            storage_->adopt(internal::new_with<allocated_operation<Operation, Allocator>>(
                *allocator_, *allocator_, make));
        }
    }
    void start() const noexcept { storage_->get()->start(); }

private:
    Storage* storage_;
    const Allocator* allocator_;
};

class any_scheduler {
    friend class inherited_timer;
    using schedule_receiver = any_receiver<set_value_t(), set_stopped_t()>;
    using bulk_proxy = parallel_scheduler_replacement::bulk_item_receiver_proxy;

    class concept_base;
    using storage_type = internal::small_object<concept_base, 4 * sizeof(void*)>;
    // Bytes for an operation of schedule_after; enough for the schedulers of this library.
    static constexpr std::size_t timer_size = 240;
    using timer_storage = any_storage<timer_size>;
    class concept_base {
    public:
        virtual ~concept_base() = default;
        virtual void copy_to(storage_type& to) const noexcept = 0;
        virtual bool equals(const concept_base& other) const noexcept = 0;
        virtual const void* type() const noexcept = 0;
        virtual const void* scheduler() const noexcept = 0;
        virtual forward_progress_guarantee progress() const noexcept = 0;
        virtual const internal::fork_team* team() const noexcept = 0;
        virtual void schedule_into(any_operation_storage& storage,
                                   schedule_receiver rcvr) const = 0;
        virtual void start_bulk(any_operation_storage& storage, std::size_t n, bulk_proxy& r,
                                bool chunked) const noexcept = 0;
        virtual bool has_timers() const noexcept = 0;
        virtual instant now() const noexcept = 0;
        virtual void schedule_after_into(timer_storage& storage, schedule_receiver rcvr,
                                         time_span span) const = 0;
    };
    // Returns true if Sch has timers that can only be stopped, not fail.
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
    // For a scheduler that should not fail to schedule, but can.
    class unfailing_receiver : public schedule_receiver {
    public:
        explicit unfailing_receiver(schedule_receiver rcvr) noexcept : schedule_receiver(rcvr) {}
        template <class Error>
        void set_error(Error&&) && noexcept {
            COPPICE_CHECK(false,
                          "the backend of a parallel_scheduler in a task_scheduler failed to "
                          "schedule: the task cannot continue");
        }
    };
    // Its address identifies the type. Visible under -fvisibility=hidden if Sch is.
    template <class Sch>
    [[gnu::visibility("default")]] static constexpr char type_mark = 0;

    template <class Sch, class Allocator>
    struct content {
        template <class Init>
        content(Init&& init, const Allocator& a)
            : scheduler(static_cast<Init&&>(init)), allocator(a) {}
        [[no_unique_address]] Sch scheduler;
        [[no_unique_address]] Allocator allocator;
    };
    // Held is Content, or a std::shared_ptr to it.
    template <class Sch, class Content, class Held>
    class model final : public concept_base {
    public:
        explicit model(const Held& held) : held_(held) {}
        template <class Init, class Allocator>
            requires std::same_as<Held, Content>
        model(Init&& init, const Allocator& allocator)
            : held_(static_cast<Init&&>(init), allocator) {}
        void copy_to(storage_type& to) const noexcept override {
            to.template emplace_with<model>([this] { return model(held_); });
        }
        bool equals(const concept_base& other) const noexcept override {
            return other.type() == type() && *static_cast<const Sch*>(other.scheduler()) == sch();
        }
        const void* type() const noexcept override { return &type_mark<Sch>; }
        const void* scheduler() const noexcept override { return &sch(); }
        forward_progress_guarantee progress() const noexcept override {
            return get_forward_progress_guarantee(sch());
        }
        const internal::fork_team* team() const noexcept override {
            return execution::team_of(sch());
        }
        void schedule_into(any_operation_storage& storage, schedule_receiver rcvr) const override {
            using sender_type = schedule_result_t<const Sch&>;
            using receiver_type = std::conditional_t<infallible_scheduler<Sch, any_env>,
                                                     schedule_receiver, unfailing_receiver>;
            using operation = any_connected<sender_type, receiver_type>;
            place(storage).template emplace<operation>([this, &rcvr] {
                return operation(execution::schedule(sch()), receiver_type(rcvr));
            });
        }
        // The completion may destroy *this.
        void start_bulk(any_operation_storage& storage, std::size_t n, bulk_proxy& r,
                        bool chunked) const noexcept override {
            using domain = decltype(get_completion_domain<set_value_t>(
                std::declval<const Sch&>(), std::declval<const any_env&>()));
            if constexpr (std::is_same_v<domain, default_domain>) {
                if (n != 0) r.execute(0, n);
                r.set_value();
            } else {
                static_assert(
                    requires { sizeof(bulk_in_place<Sch>); },
                    "a task_scheduler is given a scheduler with a domain of its own: include "
                    "<coppice/exec/bulk.hpp> first, which its bulk needs");
                bulk_in_place<Sch>::start(sch(), n, r, chunked, place(storage));
            }
        }
        bool has_timers() const noexcept override { return has_usable_timers<Sch>(); }
        instant now() const noexcept override {
            if constexpr (has_usable_timers<Sch>()) {
                return execution::now(sch());
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
                place(storage).template emplace<operation>([this, span, &rcvr] {
                    return operation(execution::schedule_after(sch(), span), rcvr);
                });
            } else {
                check_timers(false);
            }
        }

    private:
        const Content& get() const noexcept {
            if constexpr (std::is_same_v<Held, Content>) {
                return held_;
            } else {
                return *held_;
            }
        }
        const Sch& sch() const noexcept { return get().scheduler; }
        template <class Storage>
        auto place(Storage& storage) const noexcept {
            return operation_place(storage, get().allocator);
        }
        Held held_;
    };

    template <class Sch, class Allocator>
    void hold(Sch&& sch, const Allocator& allocator) {
        using plain = std::decay_t<Sch>;
        using content_type = content<plain, Allocator>;
        if constexpr (sizeof(content_type) <= 3 * sizeof(void*) &&
                      alignof(content_type) <= alignof(std::max_align_t) &&
                      std::is_nothrow_copy_constructible_v<content_type>) {
            using inside = model<plain, content_type, content_type>;
            sch_.template emplace_with<inside>(
                [&sch, &allocator] { return inside(static_cast<Sch&&>(sch), allocator); });
        } else {
            using pointer = std::shared_ptr<const content_type>;
            using shared = model<plain, content_type, pointer>;
            const pointer made =
                std::allocate_shared<content_type>(allocator, static_cast<Sch&&>(sch), allocator);
            sch_.template emplace_with<shared>([&made] { return shared(made); });
        }
    }

public:
    using scheduler_concept = scheduler_tag;

    // Holds a copy of `sch`. If `sch` has a domain of its own, include exec/bulk.hpp before.
    // Errors: what copying it, and allocation, throw.
    // Cost: an allocation if it is larger than three pointers, or if copying it may throw.
    template <class Sch>
        requires(!std::same_as<std::decay_t<Sch>, any_scheduler>) &&
                holdable_scheduler<std::decay_t<Sch>>
    any_scheduler(Sch&& sch) {
        hold(static_cast<Sch&&>(sch), std::allocator<void>());
    }
    // As above. A copy of `allocator` allocates the scheduler and its large operations.
    template <class Sch, class Allocator>
        requires(!std::same_as<std::decay_t<Sch>, any_scheduler>) &&
                holdable_scheduler<std::decay_t<Sch>> &&
                requires { typename Allocator::value_type; }
    explicit any_scheduler(Sch&& sch, Allocator allocator) {
        hold(static_cast<Sch&&>(sch), allocator);
    }
    // There is no move: a moved-from object would hold no scheduler.
    any_scheduler(const any_scheduler& other) noexcept { other.sch_.get()->copy_to(sch_); }
    any_scheduler& operator=(const any_scheduler& other) noexcept {
        const any_scheduler copy(other);  // `other` may be inside the scheduler that *this holds
        copy.sch_.get()->copy_to(sch_);
        return *this;
    }

    class sender_base;
    class sender;
    sender schedule() const;

    // Returns true if the held scheduler has timers, and these can only be stopped. If it returns
    // false, now() and schedule_after() end the process.
    bool has_timers() const noexcept { return sch_.get()->has_timers(); }
    class timed_sender;
    timed_sender schedule_after(time_span span) const;
    instant now() const noexcept { return sch_.get()->now(); }

    forward_progress_guarantee query(get_forward_progress_guarantee_t) const noexcept {
        return sch_.get()->progress();
    }
    const internal::fork_team* query(get_fork_team_t) const noexcept { return sch_.get()->team(); }
    task_scheduler_domain query(get_domain_t) const noexcept { return {}; }
    task_scheduler_domain query(get_completion_domain_t<set_value_t>) const noexcept { return {}; }

    // For task_scheduler_bulk.hpp. Called on an agent of this scheduler: the held scheduler
    // executes [0, n) and completes r, which may destroy *this. An exception becomes an error of r.
    void start_bulk(any_operation_storage& storage, std::size_t n, bulk_proxy& r,
                    bool chunked) const noexcept {
        sch_.get()->start_bulk(storage, n, r, chunked);
    }
    friend bool operator==(const any_scheduler& a, const any_scheduler& b) noexcept {
        return a.sch_.get()->equals(*b.sch_.get());
    }
    // Returns true if a holds a scheduler equal to b.
    template <class Sch>
        requires(!std::same_as<Sch, any_scheduler>) && coppice::execution::scheduler<Sch>
    friend bool operator==(const any_scheduler& a, const Sch& b) noexcept {
        return a.sch_.get()->type() == &type_mark<Sch> &&
               *static_cast<const Sch*>(a.sch_.get()->scheduler()) == b;
    }

private:
    storage_type sch_;  // never empty
};

// The scheduler type of tasks. Source: [exec.task.scheduler].
using task_scheduler = any_scheduler;

// Base of both senders: they complete on the scheduler, and hold a copy of it.
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

// Completes on the scheduler after its time span. Cost: no allocation on this library's schedulers.
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
inline const any_scheduler& inherited_timer::required() const noexcept {
    any_scheduler::check_timers(scheduler_ != nullptr);
    return *scheduler_;
}

inline any_scheduler::timed_sender any_scheduler::schedule_after(time_span span) const {
    return timed_sender(*this, span);
}

}  // namespace coppice::execution
