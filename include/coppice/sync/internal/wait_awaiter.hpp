// wait_awaiter: a wait in the frame of a task that awaits it.
#pragma once
// A request that can be had at once completes in await_ready(): no suspension, no thread-local, no
// registration. Otherwise the task is resumed on its own scheduler:
//
//   the task has no scheduler                     in place, by the thread that granted
//   that thread is the only one of the scheduler  in place
//   else, also on another worker of a pool        through the scheduler's queue
//
// "In place" means: now, or if this thread is already resuming a waiter, when that one suspends. So
// a million hand-overs in a row use constant stack.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/runs_here.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/sync/internal/wait.hpp>
#include <coppice/task/internal/suspension.hpp>
#include <coppice/task/internal/transfer.hpp>
#include <coppice/token/internal/code_of.hpp>
#include <coppice/token/internal/inline_start.hpp>
#include <coppice/token/internal/stop_link.hpp>
#include <coppice/token/signature.hpp>

#include <concepts>
#include <coroutine>
#include <exception>
#include <system_error>
#include <type_traits>

namespace coppice::internal {

// The promises of tasks: they say on which scheduler the task runs.
template <class Promise>
concept has_task_context = requires(Promise& promise) {
    { promise.context().is_inline() } -> std::same_as<bool>;
    promise.context().scheduler;
    promise.unhandled_stopped();
};

// The error of a wait that has ended.
template <class Request>
std::error_code error_of(const wait<Request>& w) noexcept {
    switch (w.end()) {
        case wait_end::granted:
            return w.request.error();
        case wait_end::withdrawn:
            return std::make_error_code(std::errc::operation_canceled);
        case wait_end::refused:
            break;
    }
    return std::make_error_code(std::errc::resource_unavailable_try_again);
}

// Returns the result of a wait that has succeeded. If taking it throws, and `errors` stores errors
// instead of throwing them, stores the code.
template <class Request, class Errors>
typename Request::result take_result(Request& request,
                                     const Errors& errors) noexcept(!Errors::throws ||
                                                                    !take_may_throw<Request>) {
    if constexpr (Errors::throws || !take_may_throw<Request>) {
        return request.take();
    } else {
        try {
            return request.take();
        } catch (...) {
            errors.report(code_of(std::current_exception()), Request::name);
            return request.nothing();
        }
    }
}

// Brings a task back to its scheduler, if the thread that ended the wait is not the scheduler's.
template <class Sch, class Owner>
class way_to_scheduler : immovable {
    class receiver {
    public:
        using receiver_concept = execution::receiver_tag;
        explicit receiver(Owner& owner) noexcept : owner_(&owner) {}
        void set_value() && noexcept { owner_->arrived(); }
        // The scheduler has ended: there is no other place to continue.
        template <class Error>
        void set_error(Error&&) && noexcept {
            owner_->arrived();
        }
        void set_stopped() && noexcept { owner_->arrived(); }
        execution::env<> get_env() const noexcept { return {}; }

    private:
        Owner* owner_;
    };
    using operation_type =
        execution::connect_result_t<execution::schedule_result_t<const Sch&>, receiver>;

public:
    ~way_to_scheduler() {
        if (connected_) operation_.destroy();
    }
    // Called before the wait begins: connects now if connecting may throw, else leaves it to
    // start().
    void prepare(const Sch& sch, Owner& owner) {
        if (!connects_without_fail(sch)) connect(sch, owner);
    }
    void start(const Sch& sch, Owner& owner) noexcept {
        if (!connected_) connect(sch, owner);
        execution::start(operation_.get());  // the owner may be gone
    }

private:
    static bool connects_without_fail(const Sch& sch) noexcept {
        if constexpr (std::same_as<Sch, execution::any_scheduler>) {
            return sch.held().schedules_in_place();
        } else {
            return noexcept(execution::connect(execution::schedule(sch), std::declval<receiver>()));
        }
    }
    void connect(const Sch& sch, Owner& owner) {
        operation_.construct_with([&sch, &owner] {
            return execution::connect(execution::schedule(sch), receiver(owner));
        });
        connected_ = true;
    }

    manual_lifetime<operation_type> operation_;
    bool connected_ = false;
};

// The wait of a request that could not be had at once, with what brings the task back. `by_stop`: a
// stop ends the task instead of the await.
template <class Request, bool by_stop, class Promise>
class wait_in_task : public wait<Request> {
    using env_type = execution::env_of_t<Promise>;
    using wait_type = wait<Request>;
    using scheduler_type =
        std::remove_cvref_t<decltype(std::declval<Promise&>().context().scheduler)>;

public:
    wait_in_task(Request&& wanted, Promise& promise) noexcept
        : wait_type(static_cast<Request&&>(wanted), &wait_in_task::ended), promise_(promise) {}

    template <class Suspension>
    auto suspend(std::coroutine_handle<Promise> task) {
        if (!promise_.context().is_inline()) way_.prepare(promise_.context().scheduler, *this);
        if (!this->begin(completion_env_of(execution::get_env(promise_), link_)))
            return Suspension::stay();
        link_.reset();
        if (is_stopped()) {
            resume_stopped();
            return Suspension::stay();
        }
        return Suspension::go_on(task);
    }

    // Called on the task's scheduler, or where the task is resumed in place.
    void arrived() noexcept {
        if (is_stopped()) {
            resume_stopped();
        } else {
            execution::internal::resume_from_outside(
                std::coroutine_handle<Promise>::from_promise(promise_));
        }
    }

private:
    static void ended(wait_type& w) noexcept {
        wait_in_task& self = static_cast<wait_in_task&>(w);
        self.link_.reset();
        const auto& context = self.promise_.context();
        if (context.is_inline() || execution::internal::runs_here(context.scheduler)) {
            callback_scope::run_or_queue(w, [](waiting_callback& turn) noexcept {
                static_cast<wait_in_task&>(static_cast<wait_type&>(turn)).arrived();
            });
        } else {
            self.way_.start(context.scheduler, self);
        }
    }
    bool is_stopped() const noexcept {
        if constexpr (by_stop) {
            return this->end() == wait_end::withdrawn;
        } else {
            return false;
        }
    }
    void resume_stopped() noexcept {
        if constexpr (by_stop) {
            execution::internal::resume_from_outside(
                static_cast<std::coroutine_handle<>>(promise_.unhandled_stopped()));
        }
    }

    Promise& promise_;
    [[no_unique_address]] stop_link_for<env_type> link_;
    way_to_scheduler<scheduler_type, wait_in_task> way_;
};

// Tries the request first. The wait is made only if the task must wait: a ready operation writes
// the request and one byte into the task's frame, and nothing else.
template <class Request, class Errors, class Promise>
class wait_awaiter : immovable {
    static constexpr bool ends_by_stop =
        Errors::throws && may_be_stopped<execution::env_of_t<Promise>>;
    using wait_type = wait_in_task<Request, ends_by_stop, Promise>;

public:
    wait_awaiter(Request&& wanted, Errors errors, Promise& promise) noexcept
        : request_(static_cast<Request&&>(wanted)), errors_(errors), promise_(promise) {}
    ~wait_awaiter() {
        if (waits_) [[unlikely]]
            wait_.destroy();
    }

    bool await_ready() noexcept {
        // Written last, not only before it waits: so a ready await need not read it again.
        waits_ = get_stop_token(execution::get_env(promise_)).stop_requested() ||
                 !try_before_wait(request_);
        return !waits_;
    }
    template <class Suspension = execution::internal::suspension>
    [[gnu::noinline]] auto await_suspend(std::coroutine_handle<Promise> task) {
        wait_.construct(static_cast<Request&&>(request_), promise_);
        return wait_.get().template suspend<Suspension>(task);
    }
    typename Request::result await_resume() {
        if (waits_) [[unlikely]]
            return result_of(wait_.get().request, error_of(wait_.get()));
        return result_of(request_, request_.error());
    }

private:
    typename Request::result result_of(Request& request, std::error_code error) {
        errors_.report(error, Request::name);
        if constexpr (!std::is_void_v<typename Request::result>) {
            if constexpr (!Errors::throws) {
                if (error) return request.nothing();
            }
            return take_result(request, errors_);
        }
    }

    Request request_;
    [[no_unique_address]] Errors errors_;
    Promise& promise_;
    bool waits_ = false;
    manual_lifetime<wait_type> wait_;
};

}  // namespace coppice::internal
