// completion: the handle by which an operation reports its outcome; the same for every token.
#pragma once
// An operation knows nothing about its waiter. It is given a completion<R...>, which points to a
// completion_state<R...> that the token made: in the frame of the awaiting coroutine, in a sender's
// operation state, on the stack of a thread that blocks, or in recycled memory for a callback. The
// state says how to continue. It also holds the waiter's stop token and deadline.
//
// Source: P0055R1, "Details": HandlerBase, with the operating system's context left to the
// operation, and a std::error_code before the results.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/stop/inplace.hpp>

#include <system_error>
#include <tuple>
#include <utility>

namespace coppice {

// Success. A variable, because constructing a std::error_code would be a call each time.
inline const std::error_code no_error;

namespace internal {

// What the waiter tells the operation: when to give up.
class completion_env {
public:
    completion_env() noexcept = default;
    completion_env(inplace_stop_token stop, execution::instant deadline) noexcept
        : stop_(stop), deadline_(deadline) {}
    inplace_stop_token query(get_stop_token_t) const noexcept { return stop_; }
    execution::instant query(execution::get_deadline_t) const noexcept { return deadline_; }

    // Returns true if `error` is the outcome of an operation that was told to give up.
    [[gnu::cold, gnu::noinline]] bool stopped_by(std::error_code error) const noexcept {
        return error == std::errc::operation_canceled &&
               (stop_.stop_requested() || (deadline_ != execution::instant::never() &&
                                           execution::monotonic_now() >= deadline_));
    }

    // Called for an operation that knows it gave up, for example by another clock.
    void tell_stopped() noexcept { deadline_ = execution::instant(); }

private:
    inplace_stop_token stop_;
    execution::instant deadline_ = execution::instant::never();
};

}  // namespace internal

// The object to which a completion points; tokens derive from it. Threads: any thread calls
// `complete`, once. Lifetime: until that call.
template <class... R>
class completion_state : immovable {
public:
    using function = void(completion_state&, std::error_code, R...) noexcept;

    explicit completion_state(function* completed) noexcept : complete_(completed) {}
    // Call both before the operation is initiated.
    void set_function(function* completed) noexcept { complete_ = completed; }
    void set_env(internal::completion_env env) noexcept { env_ = env; }
    const internal::completion_env& env() const noexcept { return env_; }
    void tell_stopped() noexcept { env_.tell_stopped(); }
    void complete(std::error_code error, R... results) noexcept {
        complete_(*this, error, static_cast<R&&>(results)...);
    }

private:
    function* complete_;
    internal::completion_env env_;
};

// A handle like std::coroutine_handle: a trivially copyable pointer, whose copies stand for the
// same outcome. Complete it once, from any thread, inside the initiation or later:
// std::move(c)(error, results...). Cost: a call through a pointer. Errors: completing an empty
// handle stops the process; completing twice is undefined.
template <class... R>
class completion {
public:
    completion() noexcept = default;
    explicit completion(completion_state<R...>& state) noexcept : state_(&state) {}

    // The operation may be gone when this returns, so nothing of it may be accessed afterwards.
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
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    completion_state<R...>* state_ = nullptr;
};

namespace internal {

// Holds the initiation inside a token's state, so that the address of each leads to the other. It
// has no base class and one member, which is at its beginning.
template <class Initiation>
class kept_initiation {
public:
    template <class From>
    explicit kept_initiation(From&& initiation) : initiation_(static_cast<From&&>(initiation)) {}
    Initiation& initiation() noexcept { return initiation_; }
    const Initiation& initiation() const noexcept { return initiation_; }
    static kept_initiation& of(Initiation& initiation) noexcept {
        return reinterpret_cast<kept_initiation&>(initiation);
    }

private:
    [[no_unique_address]] Initiation initiation_;
};

}  // namespace internal

template <class Initiation, class... R>
class initiated_state;

namespace internal {

// A completion whose waiter the compiler knows. Tokens call an initiation with it. It converts to a
// completion<R...>. An initiation that is a template need not keep it:
//
//   template <class Completion>
//   void operator()(Completion) noexcept;      keeps nothing, and when the operation has ended:
//   Completion::of(*this)(error, results...);
//
// The waiter is then called directly, and is compiled into the operation's own callback. Everything
// else is as for completion.
template <auto* completed, class Initiation, class... R>
class direct_completion {
    using state_type = initiated_state<Initiation, R...>;

public:
    explicit direct_completion(state_type& state) noexcept : state_(&state) {}
    // Returns the completion of the operation whose initiation `part` is, or is a base of. The
    // initiation must have been called with this type of completion.
    template <class Part>
    static direct_completion of(Part& part) noexcept {
        Initiation& initiation = static_cast<Initiation&>(part);
        return direct_completion(
            static_cast<state_type&>(kept_initiation<Initiation>::of(initiation)));
    }

    void operator()(std::error_code error, R... results) && noexcept {
        completed(*state_, error, static_cast<R&&>(results)...);
    }
    operator completion<R...>() const noexcept { return completion<R...>(*state_); }
    completion_env get_env() const noexcept { return state_->env(); }
    void tell_stopped() noexcept { state_->tell_stopped(); }

private:
    state_type* state_;
};

}  // namespace internal

// Base class of a token's state that keeps the initiation itself.
template <class Initiation, class... R>
class initiated_state : public completion_state<R...>,
                        public internal::kept_initiation<Initiation> {
public:
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

namespace internal {

// The type of the result for the waiter: void, the result, or a tuple of several.
template <class... R>
struct outcome_of {
    using type = std::tuple<R...>;
};
template <class R>
struct outcome_of<R> {
    using type = R;
};
template <>
struct outcome_of<> {
    using type = void;
};
template <class... R>
using outcome_t = typename outcome_of<R...>::type;

// Holds an outcome from its arrival until it is taken, once.
template <class... R>
class outcome_slot : immovable {
public:
    outcome_slot() noexcept {}
    ~outcome_slot() {
        if constexpr (remembers) {
            if (full_.value) values_.destroy();
        }
    }
    void put(std::error_code error, R... results) noexcept {
        error_.construct(error);
        values_.construct(static_cast<R&&>(results)...);
        if constexpr (remembers) full_.value = true;
    }
    // Returns the error. Call it after put().
    std::error_code error() const noexcept { return error_.get(); }
    outcome_t<R...> take() {
        if constexpr (sizeof...(R) == 1) {
            return static_cast<outcome_t<R...>&&>(std::get<0>(values_.get()));
        } else if constexpr (sizeof...(R) > 1) {
            return std::move(values_.get());
        }
    }
    std::tuple<R...>& values() noexcept { return values_.get(); }

private:
    manual_lifetime<std::error_code> error_;  // constructing a std::error_code is a call
    static constexpr bool remembers = !(std::is_trivially_destructible_v<R> && ...);
    struct flag {
        bool value = false;
    };
    struct no_flag {};

    manual_lifetime<std::tuple<R...>> values_;
    [[no_unique_address]] std::conditional_t<remembers, flag, no_flag> full_;
};

// Returns how the message of a std::system_error begins: the failure() of the initiation, or its
// `name`.
template <class Initiation>
constexpr const char* operation_name(const Initiation& initiation) noexcept {
    if constexpr (requires { static_cast<const char*>(initiation.failure()); }) {
        return initiation.failure();
    } else if constexpr (requires { static_cast<const char*>(Initiation::name); }) {
        return Initiation::name;
    } else {
        return "asynchronous operation";
    }
}
[[noreturn, gnu::cold, gnu::noinline]] inline void throw_error(std::error_code error,
                                                               const char* operation) {
    throw std::system_error(error, operation);
}

}  // namespace internal

}  // namespace coppice
