// callback_state: an operation whose outcome a callable gets, in memory that is used again.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/allocate.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/token/callback.hpp>
#include <coppice/token/completion.hpp>
#include <coppice/token/internal/inline_start.hpp>
#include <coppice/token/internal/outcome.hpp>
#include <coppice/token/internal/stop_link.hpp>
#include <coppice/token/signature.hpp>

#include <concepts>
#include <cstddef>

namespace coppice::internal {

template <class Callable>
auto callback_allocator(const Callable& callable) noexcept {
    using env_type = execution::env_of_t<const Callable&>;
    if constexpr (execution::has_query<env_type, get_allocator_t>) {
        return get_allocator(execution::get_env(callable));
    } else {
        return recycling_allocator<std::byte>();
    }
}

template <class F, class... R>
concept completion_callable = std::invocable<F, std::error_code, R...>;

// Moves to the callable's scheduler, if it names one.
template <class State, class Env>
class callback_hop : immovable {
public:
    static constexpr bool needed = false;
};
template <class State, class Env>
    requires execution::has_query<Env, execution::get_scheduler_t>
class callback_hop<State, Env> : immovable {
    using scheduler_type =
        execution::internal::call_result_t<execution::get_scheduler_t, const Env&>;

    class receiver {
    public:
        using receiver_concept = execution::receiver_tag;
        explicit receiver(State& state) noexcept : state_(&state) {}
        void set_value() && noexcept { state_->arrived(); }
        // The scheduler has ended: the callback is called here instead.
        template <class Error>
        void set_error(Error&&) && noexcept {
            state_->arrived();
        }
        void set_stopped() && noexcept { state_->arrived(); }

    private:
        State* state_;
    };
    using sender_type = decltype(execution::schedule(std::declval<scheduler_type&>()));
    using operation_type = execution::connect_result_t<sender_type, receiver>;

public:
    static constexpr bool needed = true;
    callback_hop() noexcept {}
    ~callback_hop() {
        if (under_way_) operation_.destroy();
    }
    void start(State& state, const Env& env) noexcept {
        scheduler_type scheduler = execution::get_scheduler(env);
        operation_.construct_with([&scheduler, &state]() noexcept {
            return execution::connect(execution::schedule(scheduler), receiver(state));
        });
        under_way_ = true;
        execution::start(operation_.get());
    }

private:
    manual_lifetime<operation_type> operation_;
    bool under_way_ = false;
};

// The state of an operation. Lives from the initiation until just before the callable is called.
template <class Callable, class Initiation, class... R>
class callback_state final : initiated_state<Initiation, R...>, waiting_callback {
    using env_type = execution::env_of_t<const Callable&>;
    using hop_type = callback_hop<callback_state, env_type>;

public:
    template <class F, class I>
    callback_state(F&& callable, I&& initiation)
        : initiated_state<Initiation, R...>(static_cast<I&&>(initiation)),
          callable_(static_cast<F&&>(callable)) {}

    // Allocates the state and initiates the operation. Errors: what the allocator and the
    // callable's constructor throw.
    template <class F, class I>
    static void initiate(F&& callable, I&& initiation) {
        const auto allocator = callback_allocator(callable);
        callback_state& self = *execution::internal::new_with<callback_state>(
            allocator, static_cast<F&&>(callable), static_cast<I&&>(initiation));
        if (self.started_and_completed()) self.completed_inside();
    }

    // Called when the hop has ended, during its start or later.
    void arrived() noexcept {
        if (!start_.completed_inside(this)) run_stored(*this);
    }

private:
    bool started_and_completed() noexcept {
        if constexpr (may_be_stopped<env_type>) {
            this->set_env(completion_env_of(execution::get_env(callable_), link_));
        }
        // If it completes on another thread, this object may be gone.
        return start_.begin(this,
                            [this]() noexcept { this->template call_initiation<&completed>(); });
    }
    static void completed(completion_state<R...>& state, std::error_code error,
                          R... results) noexcept {
        callback_state& self = static_cast<callback_state&>(state);
        if (self.start_.completed_inside(&self)) {
            self.outcome_.put(error, static_cast<R&&>(results)...);
        } else if constexpr (hop_type::needed) {
            self.outcome_.put(error, static_cast<R&&>(results)...);
            self.completed_inside();
        } else {
            self.call(error, static_cast<R&&>(results)...);
        }
    }
    // The outcome is stored, and only this thread continues.
    void completed_inside() noexcept {
        if constexpr (hop_type::needed) {
            link_.reset();
            const bool inside = start_.begin(this, [this]() noexcept {
                hop_.start(*this, execution::get_env(
                                      callable_));  // if it ends elsewhere, this object may be gone
            });
            if (!inside) return;
        }
        callback_scope::run_or_queue(*this, &run_stored);
    }
    static void run_stored(waiting_callback& callback) noexcept {
        callback_state& self = static_cast<callback_state&>(callback);
        std::apply(
            [&self](R&... results) {
                self.call(self.outcome_.error(), static_cast<R&&>(results)...);
            },
            self.outcome_.values());
    }
    // Destroys this object, then calls the callable.
    void call(std::error_code error, R... results) noexcept {
        link_.reset();
        const auto allocator = callback_allocator(callable_);
        if constexpr (requires { callable_.note_failure(error, this->initiation()); }) {
            if (error.value() != 0) callable_.note_failure(error, this->initiation());
        }
        Callable callable(static_cast<Callable&&>(callable_));
        execution::internal::delete_with(allocator, this);
        static_cast<Callable&&>(callable)(error, static_cast<R&&>(results)...);
    }

    Callable callable_;
    [[no_unique_address]] stop_link_for<env_type> link_;
    [[no_unique_address]] hop_type hop_;
    [[no_unique_address]] marked_start<hop_type::needed || may_complete_inside<Initiation>()>
        start_;
    outcome_slot<R...> outcome_;
};

}  // namespace coppice::internal
