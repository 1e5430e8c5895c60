// erased_scheduler: a scheduler of any type behind virtual functions; what an any_scheduler holds.
#pragma once

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/internal/allocate.hpp>
#include <coppice/exec/internal/erased_operation.hpp>
#include <coppice/exec/internal/fork_team.hpp>
#include <coppice/exec/internal/runs_here.hpp>
#include <coppice/exec/internal/task_scheduler_domain.hpp>
#include <coppice/exec/receiver_proxy.hpp>
#include <coppice/exec/timed_scheduler.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

namespace coppice::execution {

class parallel_scheduler;

namespace internal {

// An operation that frees itself with a copy of an allocator.
template <class Operation, class Allocator>
class allocated_operation final : public any_operation_base {
public:
    template <class Make>
    allocated_operation(const Allocator& allocator, Make& make)
        : allocator_(allocator), operation_(make()) {}
    void start() noexcept override { operation_.start(); }
    static void operator delete(allocated_operation* self, std::destroying_delete_t) noexcept {
        delete_with(Allocator(self->allocator_), self);
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
            storage_->adopt(new_with<allocated_operation<Operation, Allocator>>(*allocator_,
                                                                                *allocator_, make));
        }
    }
    void start() const noexcept { storage_->get()->start(); }

private:
    Storage* storage_;
    const Allocator* allocator_;
};

using schedule_receiver = any_receiver<set_value_t(), set_stopped_t()>;
using bulk_proxy = parallel_scheduler_replacement::bulk_item_receiver_proxy;
// Bytes for an operation of schedule_after; enough for the schedulers of this library.
inline constexpr std::size_t timer_size = 240;
using timer_storage = any_storage<timer_size>;

// Returns true if Sch has timers that can only be stopped, not fail.
template <class Sch>
consteval bool has_usable_timers() noexcept {
    if constexpr (timed_scheduler<Sch>) {
        return sender_to<call_result_t<schedule_after_t, const Sch&, time_span>,
                         schedule_receiver> &&
               sender_to<call_result_t<schedule_at_t, const Sch&, instant>, schedule_receiver>;
    } else {
        return false;
    }
}
inline void check_timers(bool has) noexcept {
    COPPICE_CHECK(has,
                  "a timer was asked of a scheduler that has none: name one, "
                  "write_env(sender, prop(get_timed_scheduler, loop.get_scheduler()))");
}

// True if a task_scheduler may hold a Sch. A parallel_scheduler is allowed although scheduling on
// it fails if its backend does; in a task_scheduler such a failure ends the process.
template <class Sch>
concept holdable_scheduler =
    infallible_scheduler<Sch, any_env> || std::same_as<Sch, parallel_scheduler>;

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

// A scheduler whose type is hidden.
class erased_scheduler {
public:
    using storage = small_object<erased_scheduler, 4 * sizeof(void*)>;

    virtual ~erased_scheduler() = default;
    virtual void copy_to(storage& to) const noexcept = 0;
    virtual bool equals(const erased_scheduler& other) const noexcept = 0;
    virtual const void* type() const noexcept = 0;
    virtual const void* scheduler() const noexcept = 0;
    virtual forward_progress_guarantee progress() const noexcept = 0;
    virtual const fork_team* team() const noexcept = 0;
    virtual bool runs_on_this_thread() const noexcept = 0;
    // Returns true if schedule_into() allocates nothing and does not throw.
    virtual bool schedules_in_place() const noexcept = 0;
    virtual void schedule_into(any_operation_storage& to, schedule_receiver rcvr) const = 0;
    // Executes [0, n) and completes r, which may destroy *this.
    virtual void start_bulk(any_operation_storage& at, std::size_t n, bulk_proxy& r,
                            bool chunked) const noexcept = 0;
    virtual bool has_timers() const noexcept = 0;
    virtual instant now() const noexcept = 0;
    virtual void schedule_after_into(timer_storage& to, schedule_receiver rcvr,
                                     time_span span) const = 0;
    virtual void schedule_at_into(timer_storage& to, schedule_receiver rcvr,
                                  instant when) const = 0;
};

// Its address identifies the type. Visible under -fvisibility=hidden if Sch is.
template <class Sch>
[[gnu::visibility("default")]] inline constexpr char scheduler_mark = 0;

template <class Sch, class Allocator>
struct scheduler_content {
    template <class Init>
    scheduler_content(Init&& init, const Allocator& a)
        : scheduler(static_cast<Init&&>(init)), allocator(a) {}
    [[no_unique_address]] Sch scheduler;
    [[no_unique_address]] Allocator allocator;
};
// Held is Content, or a std::shared_ptr to it.
template <class Sch, class Content, class Held>
class held_scheduler final : public erased_scheduler {
public:
    explicit held_scheduler(const Held& held) : held_(held) {}
    template <class Init, class Allocator>
        requires std::same_as<Held, Content>
    held_scheduler(Init&& init, const Allocator& allocator)
        : held_(static_cast<Init&&>(init), allocator) {}
    void copy_to(storage& to) const noexcept override {
        to.template emplace_with<held_scheduler>([this] { return held_scheduler(held_); });
    }
    bool equals(const erased_scheduler& other) const noexcept override {
        return other.type() == type() && *static_cast<const Sch*>(other.scheduler()) == sch();
    }
    const void* type() const noexcept override { return &scheduler_mark<Sch>; }
    const void* scheduler() const noexcept override { return &sch(); }
    forward_progress_guarantee progress() const noexcept override {
        return get_forward_progress_guarantee(sch());
    }
    const fork_team* team() const noexcept override { return get_fork_team_t()(sch()); }
    bool runs_on_this_thread() const noexcept override { return runs_here(sch()); }
    bool schedules_in_place() const noexcept override {
        return any_operation_storage::fits<operation> &&
               std::is_nothrow_constructible_v<operation, sender_type, receiver_type>;
    }
    void schedule_into(any_operation_storage& to, schedule_receiver rcvr) const override {
        place(to).template emplace<operation>(
            [this, &rcvr] { return operation(execution::schedule(sch()), receiver_type(rcvr)); });
    }
    // The completion may destroy *this.
    void start_bulk(any_operation_storage& at, std::size_t n, bulk_proxy& r,
                    bool chunked) const noexcept override {
        using domain = decltype(get_completion_domain<set_value_t>(std::declval<const Sch&>(),
                                                                   std::declval<const any_env&>()));
        if constexpr (std::is_same_v<domain, default_domain>) {
            if (n != 0) r.execute(0, n);
            r.set_value();
        } else {
            static_assert(
                requires { sizeof(bulk_in_place<Sch>); },
                "a task_scheduler is given a scheduler with a domain of its own: include "
                "<coppice/exec/bulk.hpp> first, which its bulk needs");
            bulk_in_place<Sch>::start(sch(), n, r, chunked, place(at));
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
    void schedule_after_into(timer_storage& to, schedule_receiver rcvr,
                             time_span span) const override {
        if constexpr (has_usable_timers<Sch>()) {
            timer_into(to, rcvr, [this, span] { return execution::schedule_after(sch(), span); });
        } else {
            check_timers(false);
        }
    }
    void schedule_at_into(timer_storage& to, schedule_receiver rcvr, instant when) const override {
        if constexpr (has_usable_timers<Sch>()) {
            timer_into(to, rcvr, [this, when] { return execution::schedule_at(sch(), when); });
        } else {
            check_timers(false);
        }
    }

private:
    using sender_type = schedule_result_t<const Sch&>;
    using receiver_type = std::conditional_t<infallible_scheduler<Sch, any_env>, schedule_receiver,
                                             unfailing_receiver>;
    using operation = any_connected<sender_type, receiver_type>;

    template <class Make>
    void timer_into(timer_storage& to, schedule_receiver& rcvr, Make make) const {
        using timer = any_connected<std::invoke_result_t<const Make&>, schedule_receiver>;
        place(to).template emplace<timer>([&make, &rcvr] { return timer(make(), rcvr); });
    }
    const Content& get() const noexcept {
        if constexpr (std::is_same_v<Held, Content>) {
            return held_;
        } else {
            return *held_;
        }
    }
    const Sch& sch() const noexcept { return get().scheduler; }
    template <class Storage>
    auto place(Storage& at) const noexcept {
        return operation_place(at, get().allocator);
    }
    Held held_;
};

// Copies `sch` to `to`: inside, if it is small and its copies do not throw, otherwise shared.
template <class Sch, class Allocator>
void hold_scheduler(erased_scheduler::storage& to, Sch&& sch, const Allocator& allocator) {
    using plain = std::decay_t<Sch>;
    using content_type = scheduler_content<plain, Allocator>;
    if constexpr (sizeof(content_type) <= 3 * sizeof(void*) &&
                  alignof(content_type) <= alignof(std::max_align_t) &&
                  std::is_nothrow_copy_constructible_v<content_type>) {
        using inside = held_scheduler<plain, content_type, content_type>;
        to.template emplace_with<inside>(
            [&sch, &allocator] { return inside(static_cast<Sch&&>(sch), allocator); });
    } else {
        using pointer = std::shared_ptr<const content_type>;
        using shared = held_scheduler<plain, content_type, pointer>;
        const pointer made =
            std::allocate_shared<content_type>(allocator, static_cast<Sch&&>(sch), allocator);
        to.template emplace_with<shared>([&made] { return shared(made); });
    }
}

}  // namespace internal

}  // namespace coppice::execution
