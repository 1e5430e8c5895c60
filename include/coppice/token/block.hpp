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
#include <coppice/token/internal/blocked_operation.hpp>
#include <coppice/token/internal/outcome.hpp>
#include <coppice/token/signature.hpp>

namespace coppice {

namespace internal {

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
    // Returns the token that stores the error in `target`. Lifetime: `target` outlives the call.
    internal::block_with_error operator[](std::error_code& target) const noexcept {
        return internal::block_with_error(target);
    }
    // Run an operation to its end, in no environment or in `env`, which may say when it gives up.
    // Called by completion_token_transform. Return the result. Blocks: until the operation has
    // completed. Errors: std::system_error, named after the operation.
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
            operation.rethrow(error);
        }
        return operation.take();
    }
};
inline constexpr block_t block{};

}  // namespace coppice
