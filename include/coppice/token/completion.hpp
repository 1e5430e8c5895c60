// completion: the handle by which an operation reports its outcome; the same for every token.
#pragma once
// An operation knows nothing about its waiter. It is given a completion<R...>, which points to a
// completion_state<R...> that the token made: in the frame of the awaiting coroutine, in a sender's
// operation state, on the stack of a thread that blocks, or in recycled memory for a callback. The
// state says how to continue. It also holds the waiter's stop token and deadline.
//
// An operation uses `completion`. A token derives its state from initiated_state, or from
// completion_state if it keeps the initiation elsewhere.
//
// Source: P0055R1, "Details": HandlerBase, with the operating system's context left to the
// operation, and a std::error_code before the results.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/token/internal/completion_env.hpp>
#include <coppice/token/internal/direct_completion.hpp>

#include <system_error>

namespace coppice {

// Success. A variable, because constructing a std::error_code would be a call each time.
inline const std::error_code no_error;

template <class... R>
class completion_state;

// A handle like std::coroutine_handle: a trivially copyable pointer, whose copies stand for the
// same outcome. Complete it once, from any thread, inside the initiation or later:
// std::move(c)(error, results...). Cost: a call through a pointer. Errors: completing an empty
// handle stops the process; completing twice is undefined.
template <class... R>
class completion {
public:
    completion() noexcept = default;
    // Makes a handle of `state`. Lifetime: the state lives until the completion.
    explicit completion(completion_state<R...>& state) noexcept : state_(&state) {}

    // Reports the outcome. The operation may be gone when this returns, so nothing of it may be
    // accessed afterwards.
    void operator()(std::error_code error, R... results) && noexcept {
        COPPICE_CHECK(state_ != nullptr, "an empty completion was completed");
        state_->complete(error, static_cast<R&&>(results)...);
    }
    void operator()(std::error_code error, R... results) & = delete;  // write std::move(c)(...)

    // Returns an environment that answers get_stop_token with an inplace_stop_token, and
    // get_deadline with the time at which the operation must give up by itself. Timeouts do not
    // count, because they request a stop. Valid until the completion.
    internal::completion_env get_env() const noexcept { return state_->env(); }
    // Announces that the operation is about to complete with operation_canceled because it was told
    // to give up. This is needed only if neither the stop token nor the deadline on the monotonic
    // clock shows it.
    void tell_stopped() noexcept { state_->tell_stopped(); }
    // Returns true if the handle has a state, also after it was completed.
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    completion_state<R...>* state_ = nullptr;
};

// The object to which a completion points; tokens derive from it. Threads: any thread calls
// `complete`, once. Lifetime: until that call.
template <class... R>
class completion_state : immovable {
public:
    // What is called with the outcome.
    using function = void(completion_state&, std::error_code, R...) noexcept;

    // `completed` is called by the completion. nullptr: set_function() will be called.
    explicit completion_state(function* completed) noexcept : complete_(completed) {}
    // Set what is called, and when the operation must give up. Call them before the operation is
    // initiated.
    void set_function(function* completed) noexcept { complete_ = completed; }
    void set_env(internal::completion_env env) noexcept { env_ = env; }
    // Returns what set_env() was given.
    const internal::completion_env& env() const noexcept { return env_; }
    // See completion::tell_stopped().
    void tell_stopped() noexcept { env_.tell_stopped(); }
    // Calls the function with the outcome, as the last access.
    void complete(std::error_code error, R... results) noexcept {
        complete_(*this, error, static_cast<R&&>(results)...);
    }

private:
    function* complete_;
    internal::completion_env env_;
};

// Base class of a token's state that keeps the initiation itself.
template <class Initiation, class... R>
class initiated_state : public completion_state<R...>,
                        public internal::kept_initiation<Initiation> {
public:
    // Constructs the initiation from what the initiating function was given.
    template <class From>
    explicit initiated_state(From&& initiation)
        : completion_state<R...>(nullptr),
          internal::kept_initiation<Initiation>(static_cast<From&&>(initiation)) {}

    // Calls the initiation. Any thread calls `completed`, once, perhaps before this returns.
    // Lifetime: `completed` may destroy this object.
    template <auto* completed>
    void call_initiation() noexcept {
        this->set_function(completed);
        this->initiation()(internal::direct_completion<completed, Initiation, R...>(*this));
    }
};

}  // namespace coppice
