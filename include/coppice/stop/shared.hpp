// stop_source, stop_token, stop_callback: shared ownership, any number of callbacks and threads.
#pragma once
// Sources and tokens are handles of a stop_state (protocol in state.hpp). The last handle or
// callback destroys it. A callback is its own node, so registering allocates nothing and touches no
// count that threads share.
//
// Beyond the standard: a cause, linked sources, a deadline, reset for reuse, and subscriptions
// (subscription.hpp) for callers that cannot keep an immovable callback.
//
// Source: [stopsource], [stoptoken], [stopcallback]. Reset is .NET's TryReset, the cause is Go's.

#include <coppice/stop/cause.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/stop/internal/links.hpp>
#include <coppice/stop/internal/state.hpp>
#include <coppice/stop/subscription.hpp>

#include <chrono>
#include <concepts>
#include <memory>
#include <type_traits>
#include <utility>

namespace coppice {

template <class CallbackFn>
class stop_callback;

// Constructs a stop_source without a state.
struct nostopstate_t {
    explicit nostopstate_t() = default;
};
inline constexpr nostopstate_t nostopstate{};

// A handle that says whether a stop was requested, and through which callbacks are registered.
// Threads: one per object, any number of objects. Cost: a copy is one fetch_add.
class stop_token {
public:
    template <class CallbackFn>
    using callback_type = stop_callback<CallbackFn>;

    stop_token() noexcept = default;
    stop_token(const stop_token& other) noexcept : state_(other.state_) {
        if (state_ != nullptr) state_->add_handle();
    }
    stop_token(stop_token&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    stop_token& operator=(stop_token other) noexcept {
        swap(other);
        return *this;
    }
    ~stop_token() {
        if (state_ != nullptr) state_->drop_handle();
    }

    void swap(stop_token& other) noexcept { std::swap(state_, other.state_); }
    friend void swap(stop_token& a, stop_token& b) noexcept { a.swap(b); }
    bool operator==(const stop_token&) const = default;

    // Returns true once a stop was requested; false without a state.
    bool stop_requested() const noexcept { return state_ != nullptr && state_->stop_requested(); }
    // Returns false without a state, and once no source, parent, or deadline can request a stop.
    // Cost: looks at each linked parent without recursion. Allocates if a source has several linked
    // parents, and returns true if there is no memory for that.
    bool stop_possible() const noexcept { return state_ != nullptr && state_->stop_possible(); }
    // Returns why the stop was requested; before that, a default stop_cause.
    stop_cause cause() const noexcept { return state_ != nullptr ? state_->cause() : stop_cause(); }

    // Runs `function` when a stop is requested, or here and now if that has happened. The caller
    // need not keep the returned subscription; see subscription.hpp. Errors: what constructing the
    // function throws, std::bad_alloc; nothing is registered then.
    template <class Function>
    stop_subscription subscribe(Function&& function) const {
        if (state_ == nullptr) return {};
        return stop_subscription::make(*state_, std::forward<Function>(function));
    }

private:
    friend class stop_source;
    template <class CallbackFn>
    friend class stop_callback;
    template <class Token>
    friend class internal::parent_link;
    explicit stop_token(internal::stop_state* counted) noexcept : state_(counted) {}

    internal::stop_state* state_ = nullptr;  // nullptr, or counted as a handle
};

// A handle through which a stop is requested. Threads: one per object, any number of objects. Cost:
// a copy is one fetch_add.
class stop_source {
public:
    // Makes a source with a new state. Errors: std::bad_alloc. Cost: one allocation.
    stop_source() : state_(new internal::stop_state) {}
    explicit stop_source(nostopstate_t) noexcept {}
    stop_source(const stop_source& other) noexcept : state_(other.state_) {
        if (state_ != nullptr) state_->add_source();
    }
    stop_source(stop_source&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    stop_source& operator=(stop_source other) noexcept {
        swap(other);
        return *this;
    }
    ~stop_source() {
        if (state_ != nullptr) state_->drop_source();
    }

    // Returns a source that is stopped, with the parent's cause, as soon as one of `parents` is.
    // Its tokens can be stopped as long as a parent can. Tokens keep their parents' sources alive
    // as usual; an in-place parent must outlive the state. A chain of any length is stopped and
    // destroyed without recursion. A stop is visible on the whole chain at once. Callbacks further
    // down run after those further up, before request_stop() returns. Errors: std::bad_alloc, what
    // copying a token throws. Cost: one more allocation.
    template <stoppable_token... Tokens>
    static stop_source linked_to(Tokens... parents) {
        stop_source linked;
        linked.state_->set_links(
            new internal::parent_links<Tokens...>(*linked.state_, std::move(parents)...));
        return linked;
    }

    void swap(stop_source& other) noexcept { std::swap(state_, other.state_); }
    friend void swap(stop_source& a, stop_source& b) noexcept { a.swap(b); }
    bool operator==(const stop_source&) const = default;

    // Returns a token of this source's state, or of none. Cost: one fetch_add.
    [[nodiscard]] stop_token get_token() const noexcept {
        if (state_ != nullptr) state_->add_handle();
        return stop_token(state_);
    }
    // Returns true if the source has a state.
    bool stop_possible() const noexcept { return state_ != nullptr; }
    // Returns true once a stop was requested; false without a state.
    bool stop_requested() const noexcept { return state_ != nullptr && state_->stop_requested(); }
    // Returns why the stop was requested; before that, a default stop_cause.
    stop_cause cause() const noexcept { return state_ != nullptr ? state_->cause() : stop_cause(); }

    // Requests the stop and runs the callbacks on this thread, newest first. Returns true for
    // exactly one of all calls. A callback may destroy this source. Errors: a callback or a
    // subscribed function that throws terminates the process.
    bool request_stop() noexcept { return request_stop(stop_cause()); }
    bool request_stop(stop_cause cause) noexcept {
        return state_ != nullptr && state_->request(cause);
    }
    // Requests the stop, and passes each exception of a subscribed function to `on_exception`, on
    // this thread. This includes functions on sources that are linked to this one by other
    // stop_sources. The other functions still run. A stop_callback or an on_exception that throws
    // terminates the process.
    template <std::invocable<std::exception_ptr> OnException>
    bool request_stop(stop_cause cause, OnException on_exception) noexcept {
        internal::exception_sink_of<OnException> sink(on_exception);
        return state_ != nullptr && state_->request(cause, &sink);
    }

    // Requests a stop with the code ETIMEDOUT when `time` has passed. The callbacks then run on the
    // timer's thread, and should be short. Replaces the deadline of an earlier call. The deadline
    // counts as a source, so this one need not be kept. Returns false if a stop was already
    // requested.
    // After main: exit() ends the timer after it has destroyed the static objects that are younger
    // than the process's first call of this function. In the destructor of an older object this
    // function returns true, but the stop never comes, nor does a stop that was already pending: do
    // not wait for either there. A first call in such a destructor is in force until that
    // destructor returns. Errors: std::bad_alloc, std::system_error if the timer's thread cannot
    // start. Cost: one allocation for the first call on a state; a mutex.
    bool request_stop_after(std::chrono::nanoseconds time);

    // Makes a source that was not stopped usable again, and withdraws a pending deadline; for an
    // owner that reuses its source. Returns false, and changes nothing, if a stop was requested or
    // callbacks are registered. Blocks: while the deadline is being delivered.
    bool try_reset() noexcept { return state_ != nullptr && state_->try_reset(); }

private:
    internal::stop_state* state_ = nullptr;  // nullptr, or counted as a source
};

// Runs a function when a stop is requested, on the requester's thread; or in the constructor, if
// the stop was requested before.
// Threads: constructed and destroyed by any thread, concurrently with everything on the source.
// Blocks: the destructor, while the function runs on another thread; both, while another thread
// holds the lock for a few instructions. Errors: what constructing the function throws; a function
// that throws terminates the process. Cost: no allocation; 40 bytes and the function.
template <class CallbackFn>
class stop_callback : internal::stop_node {
    static_assert(std::invocable<CallbackFn> && std::destructible<CallbackFn>);

public:
    using callback_type = CallbackFn;

    template <class Initializer>
        requires std::constructible_from<CallbackFn, Initializer>
    explicit stop_callback(const stop_token& token, Initializer&& init) noexcept(
        std::is_nothrow_constructible_v<CallbackFn, Initializer>)
        : internal::stop_node(&run), callback_(std::forward<Initializer>(init)) {
        if (token.state_ == nullptr) return;
        stripe_ = token.state_->add(*this);
        if (stripe_ == nullptr) [[unlikely]]
            run(this);
    }
    template <class Initializer>
        requires std::constructible_from<CallbackFn, Initializer>
    explicit stop_callback(stop_token&& token, Initializer&& init) noexcept(
        std::is_nothrow_constructible_v<CallbackFn, Initializer>)
        : stop_callback(std::as_const(token), std::forward<Initializer>(init)) {
        stop_token released(std::move(token));
    }
    ~stop_callback() {
        if (stripe_ != nullptr) internal::stop_state::remove(*this, *stripe_);
    }

private:
    static void run(internal::stop_node* self) noexcept {
        std::forward<CallbackFn>(static_cast<stop_callback*>(self)->callback_)();
    }

    internal::stop_stripe* stripe_ = nullptr;  // nullptr: not registered
    [[no_unique_address]] CallbackFn callback_;
};

template <class CallbackFn>
stop_callback(stop_token, CallbackFn) -> stop_callback<CallbackFn>;

}  // namespace coppice
