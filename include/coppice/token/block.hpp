// block: the completion token that waits for the operation on the calling thread.
#pragma once
// The operation's state is on the stack. An initiation may have the member
//
//   void drive(block_latch& done) noexcept;    returns when done.is_set()
//
// for operations that complete only while some loop runs. In it an io operation runs its context,
// if no other thread does. Without this member the thread sleeps.
//
// An initiation may also let the token try the operation first. If that succeeds, nothing is begun,
// and no state is made. These members belong together:
//
//   bool ready() noexcept;               tries to complete without waiting, and without a stop or a
//                                        deadline; if it returns false, the initiation is called
//                                        next, and need not try again
//   std::error_code error() noexcept;    its error, after ready() has returned true
//   R take();                            its result if it has no error; may throw
//   R nothing() noexcept;                the result that goes with an error

#include <coppice/token/bind_env.hpp>
#include <coppice/token/block_latch.hpp>
#include <coppice/token/internal/blocked_operation.hpp>
#include <coppice/token/internal/code_of.hpp>
#include <coppice/token/internal/outcome.hpp>
#include <coppice/token/signature.hpp>

#include <exception>
#include <system_error>
#include <type_traits>

namespace coppice {

namespace internal {

// True if the token may try the operation before it begins. The initiation must be the token's to
// use up: not an l-value, which its owner keeps.
template <class Initiation>
concept tried_first =
    !std::is_reference_v<Initiation> && requires(Initiation& initiation) { initiation.ready(); };

// block[ec] returns the result, and stores the error in ec. Lifetime: `ec` outlives the call.
class block_with_error {
public:
    explicit block_with_error(std::error_code& target) noexcept : target_(&target) {}
    template <class... R, class Initiation>
    outcome_t<R...> initiate(signature<R...> results, Initiation&& initiation) const {
        if constexpr (tried_first<Initiation>) {
            if (initiation.ready()) [[likely]]
                return outcome_of_tried<R...>(initiation);
        }
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
    template <class... R, class Initiation>
    outcome_t<R...> outcome_of_tried(Initiation& initiation) const {
        *target_ = initiation.error();
        if (target_->value() != 0) return initiation.nothing();
        if constexpr (noexcept(initiation.take())) {
            return initiation.take();
        } else {
            try {
                return initiation.take();
            } catch (...) {
                *target_ = code_of(std::current_exception());
                return initiation.nothing();
            }
        }
    }

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
    // Runs an operation to its end, and returns the result. Called by completion_token_transform.
    // Blocks: until the operation has completed. Errors: std::system_error, named after the
    // operation; or what exception() of the initiation returns, or its take() throws.
    template <class... R, class Initiation>
    internal::outcome_t<R...> initiate(signature<R...> results, Initiation&& initiation) const {
        if constexpr (internal::tried_first<Initiation>) {
            if (initiation.ready()) [[likely]] {
                const std::error_code error = initiation.error();
                if (error.value() == 0) [[likely]]
                    return initiation.take();
                std::rethrow_exception(internal::exception_of(error, initiation));
            }
        }
        return initiate_in(execution::env<>(), results, static_cast<Initiation&&>(initiation));
    }
    // The same in the environment `env`, which may say when the operation gives up.
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
