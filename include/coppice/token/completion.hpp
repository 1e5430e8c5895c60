// completion: the handle by which an operation reports its outcome; the same for every token.
#pragma once
// An operation knows nothing of who waits for it. It is given a completion<R...>, a pointer to a
// completion_state<R...> that the token made: in the awaiting coroutine's frame, in a sender's
// operation state, on the stack of a thread that blocks, or in recycled memory for a callback. The
// state says how to go on, and what the waiter has to say about stopping and about time.
//
// Source: P0055R1, "Details": HandlerBase, with the operating system's context left to the
// operation, and a std::error_code in front of the results.

#include <coppice/base/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/stop/inplace.hpp>

#include <system_error>
#include <tuple>
#include <utility>

namespace coppice {

// Success: std::error_code(), which would be a call each time.
inline const std::error_code no_error;

namespace internal {

// What the waiter says to the operation: when to give up.
class completion_env {
public:
    completion_env() noexcept = default;
    completion_env(inplace_stop_token stop, execution::instant deadline) noexcept
        : stop_(stop), deadline_(deadline) {}
    inplace_stop_token query(get_stop_token_t) const noexcept { return stop_; }
    execution::instant query(execution::get_deadline_t) const noexcept { return deadline_; }

    // True: `error` is how an operation ends that was told to give up.
    [[gnu::cold, gnu::noinline]] bool stopped_by(std::error_code error) const noexcept {
        return error == std::errc::operation_canceled &&
               (stop_.stop_requested() || (deadline_ != execution::instant::never() &&
                                           execution::monotonic_now() >= deadline_));
    }

    // For an operation that knows it gave up, e.g. by another clock.
    void tell_stopped() noexcept { deadline_ = execution::instant(); }

private:
    inplace_stop_token stop_;
    execution::instant deadline_ = execution::instant::never();
};

}  // namespace internal

// What a completion points to; tokens derive from it.
// Threads: `complete` is called once, by any thread. Lifetime: until that call.
template <class... R>
class completion_state : immovable {
public:
    using function = void(completion_state&, std::error_code, R...) noexcept;

    explicit completion_state(function* completed) noexcept : complete_(completed) {}
    // Both before the operation is initiated.
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

// A handle, like std::coroutine_handle: a pointer, trivially copied; copies name the same outcome.
// Completed once, from any thread, inside the initiation or later: std::move(c)(error, results...).
// Threads: as said. Cost: a call through a pointer. Errors: completing an empty handle stops the
// process; completing twice is undefined.
template <class... R>
class completion {
public:
    completion() noexcept = default;
    explicit completion(completion_state<R...>& state) noexcept : state_(&state) {}

    // The operation may be gone when this returns: touch nothing of it afterwards.
    void operator()(std::error_code error, R... results) && noexcept {
        COPPICE_CHECK(state_ != nullptr, "an empty completion was completed");
        state_->complete(error, static_cast<R&&>(results)...);
    }
    void operator()(std::error_code error, R... results) & = delete;  // write std::move(c)(...)

    // Answers get_stop_token with an inplace_stop_token, and get_deadline with the time at which
    // nobody else stops the operation: without the ends of timeouts. Valid until completed.
    internal::completion_env get_env() const noexcept { return state_->env(); }
    // The operation is about to complete with operation_canceled because it was told to give up.
    // Need not be said if the stop token shows it, or the monotonic clock that the deadline passed.
    void tell_stopped() noexcept { state_->tell_stopped(); }
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    completion_state<R...>* state_ = nullptr;
};

namespace internal {

// Where a token's state keeps the initiation: the address of either leads to the other. It has no
// base and one member, which lies where it begins.
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

// A completion of which the compiler knows who waits: what tokens call an initiation with. It
// becomes a completion<R...> where one is wanted; an initiation that is a template can do without:
//
//   template <class Completion>
//   void operator()(Completion) noexcept;      keeps nothing, and when the operation has ended:
//   Completion::of(*this)(error, results...);
//
// Then the waiter is called directly, and is part of the operation's own callback. Everything else
// is as completion says.
template <auto* completed, class Initiation, class... R>
class direct_completion {
    using state_type = initiated_state<Initiation, R...>;

public:
    explicit direct_completion(state_type& state) noexcept : state_(&state) {}
    // Of the operation of the initiation, called with such a completion, that `part` is, or is a
    // base of.
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

// What a token's state derives from if it keeps the initiation itself.
template <class Initiation, class... R>
class initiated_state : public completion_state<R...>,
                        public internal::kept_initiation<Initiation> {
public:
    template <class From>
    explicit initiated_state(From&& initiation)
        : completion_state<R...>(nullptr),
          internal::kept_initiation<Initiation>(static_cast<From&&>(initiation)) {}

    // `completed` will be called, once, by any thread; maybe before this returns. Lifetime: it may
    // end this.
    template <auto* completed>
    void call_initiation() noexcept {
        this->set_function(completed);
        this->initiation()(internal::direct_completion<completed, Initiation, R...>(*this));
    }
};

namespace internal {

// What one outcome is worth to who waits for it: nothing, the result, or a tuple of several.
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
    // After put().
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
    manual_lifetime<std::error_code> error_;  // constructing one is a call
    static constexpr bool remembers = !(std::is_trivially_destructible_v<R> && ...);
    struct flag {
        bool value = false;
    };
    struct no_flag {};

    manual_lifetime<std::tuple<R...>> values_;
    [[no_unique_address]] std::conditional_t<remembers, flag, no_flag> full_;
};

// What std::system_error says first: what the initiation says of its failure, or its `name`.
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
