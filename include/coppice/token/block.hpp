// block: the completion token that waits for the operation on the calling thread.
#pragma once
// The operation's state is on the stack. An initiation may have the member
//
//   void drive(block_latch& done) noexcept;    returns when done.is_set()
//
// for operations that complete only while some loop runs. In it an io operation runs its context,
// if no other thread does. Without this member the thread sleeps.

#include <coppice/token/bind_env.hpp>
#include <coppice/token/block_latch.hpp>
#include <coppice/token/internal/inline_start.hpp>
#include <coppice/token/internal/stop_link.hpp>
#include <coppice/token/signature.hpp>

namespace coppice {

namespace internal {

template <class Env, class Initiation, class... R>
class blocked_operation final : initiated_state<Initiation, R...> {
public:
    template <class From>
    blocked_operation(const Env& env, From&& initiation)
        : initiated_state<Initiation, R...>(static_cast<From&&>(initiation)) {
        this->set_env(completion_env_of(env, link_));
    }
    // Runs the operation and returns its error. Blocks: until the operation has completed.
    std::error_code run() noexcept {
        this->template call_initiation<&completed>();
        if (!done_.is_set()) callback_scope::run_before_blocking();
        if constexpr (requires { this->initiation().drive(done_); }) {
            this->initiation().drive(done_);
        } else {
            done_.wait();
        }
        link_.reset();
        return outcome_.error();
    }
    outcome_t<R...> take() { return outcome_.take(); }
    // Returns the operation's name for messages. Call it after run().
    const char* name() const noexcept { return operation_name(this->initiation()); }

private:
    static void completed(completion_state<R...>& state, std::error_code error,
                          R... results) noexcept {
        blocked_operation& self = static_cast<blocked_operation&>(state);
        self.outcome_.put(error, static_cast<R&&>(results)...);
        self.done_.set();  // the waiter may destroy this object at once
    }

    [[no_unique_address]] stop_link_for<Env> link_;
    outcome_slot<R...> outcome_;
    block_latch done_;
};

// block[ec] returns the result, and stores the error in ec. Lifetime: `ec` outlives the call.
class block_with_error {
public:
    explicit block_with_error(std::error_code& target) noexcept : target_(&target) {}
    template <class... R, class Initiation>
    outcome_t<R...> initiate(signature<R...> results, Initiation&& initiation) const {
        return initiate_in(execution::env<>(), results, static_cast<Initiation&&>(initiation));
    }
    template <class Env, class... R, class Initiation>
    outcome_t<R...> initiate_in(const Env& env, signature<R...>, Initiation&& initiation) const {
        using kept = std::remove_cvref_t<Initiation>;
        blocked_operation<Env, kept, R...> operation(env, static_cast<Initiation&&>(initiation));
        *target_ = operation.run();
        return operation.take();
    }

private:
    std::error_code* target_;
};

}  // namespace internal

// block returns the result, or throws the error as std::system_error. block[ec] throws nothing.
struct block_t {
    constexpr block_t() noexcept = default;
    internal::block_with_error operator[](std::error_code& target) const noexcept {
        return internal::block_with_error(target);
    }
    template <class... R, class Initiation>
    internal::outcome_t<R...> initiate(signature<R...> results, Initiation&& initiation) const {
        return initiate_in(execution::env<>(), results, static_cast<Initiation&&>(initiation));
    }
    template <class Env, class... R, class Initiation>
    internal::outcome_t<R...> initiate_in(const Env& env, signature<R...>,
                                          Initiation&& initiation) const {
        using kept = std::remove_cvref_t<Initiation>;
        internal::blocked_operation<Env, kept, R...> operation(
            env, static_cast<Initiation&&>(initiation));
        if (const std::error_code error = operation.run(); error.value() != 0) {
            internal::throw_error(error, operation.name());
        }
        return operation.take();
    }
};
inline constexpr block_t block{};

}  // namespace coppice
