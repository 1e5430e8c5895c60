// use_future: the completion token that returns a std::future of the outcome.
#pragma once
// For code that already uses futures. Each operation pays for the future's allocation, mutex, and
// condition variable. A future may be dropped; the operation continues and its outcome is lost.

#include <coppice/token/bind_env.hpp>
#include <coppice/token/internal/callback_state.hpp>
#include <coppice/token/internal/outcome.hpp>
#include <coppice/token/signature.hpp>

#include <exception>
#include <future>
#include <system_error>
#include <utility>

namespace coppice {

namespace internal {

// The callable that fulfills the promise, in the environment of the token.
template <class Env, class Initiation, class... R>
class promise_callback {
public:
    explicit promise_callback(const Env& env) : env_(env) {}
    auto get_future() { return promise_.get_future(); }
    const Env& get_env() const noexcept { return env_; }
    // Called before operator(), while the initiation still exists.
    void note_failure(std::error_code error, const Initiation& initiation) noexcept {
        failure_ = internal::exception_of(error, initiation);
    }
    void operator()(std::error_code error, R... results) && noexcept {
        if (error.value() != 0) {
            promise_.set_exception(std::move(failure_));
        } else if constexpr (sizeof...(R) == 0) {
            promise_.set_value();
        } else {
            promise_.set_value(outcome_t<R...>(static_cast<R&&>(results)...));
        }
    }

private:
    [[no_unique_address]] Env env_;
    std::promise<outcome_t<R...>> promise_;
    std::exception_ptr failure_;
};

}  // namespace internal

// Starts the operation at once and returns a std::future of its result, or of its error as a
// std::system_error. A future cannot request a stop; bind_env() gives the operation a stop token or
// a deadline. Errors: std::bad_alloc, and then nothing has begun.
struct use_future_t {
    constexpr use_future_t() noexcept = default;
    // Initiate an operation, in no environment or in `env`, which may say when it gives up and
    // where its state is allocated. Called by completion_token_transform. Return the future of the
    // result, or of a std::system_error named after the operation.
    template <class... R, class Initiation>
    std::future<internal::outcome_t<R...>> initiate(signature<R...> results,
                                                    Initiation&& initiation) const {
        return initiate_in(execution::env<>(), results, static_cast<Initiation&&>(initiation));
    }
    template <class Env, class... R, class Initiation>
    std::future<internal::outcome_t<R...>> initiate_in(const Env& env, signature<R...>,
                                                       Initiation&& initiation) const {
        using callable = internal::promise_callback<Env, std::remove_cvref_t<Initiation>, R...>;
        callable fulfil(env);
        auto future = fulfil.get_future();
        internal::callback_state<callable, std::remove_cvref_t<Initiation>, R...>::initiate(
            std::move(fulfil), static_cast<Initiation&&>(initiation));
        return future;
    }
};
inline constexpr use_future_t use_future{};

}  // namespace coppice
