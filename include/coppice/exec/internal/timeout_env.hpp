// timeout_env: what the sender and the timer of a timeout can ask.
#pragma once
// The sender's environment answers get_deadline with the end of the limit, or with the receiver's
// deadline if that is earlier. The end arrives at the sender as a stop, after the outcome is
// decided. Whatever adaptors in the sender make of that stop, the timeout has timed out. So an
// operation of a loop, which ends itself at a deadline, must not do so at this one: it uses
// get_unwatched_deadline, which answers with the receiver's.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/internal/due_notice.hpp>
#include <coppice/stop/finite.hpp>

#include <cstddef>

namespace coppice::execution::internal {

// The stop tokens of the sender (Index 0) and of the timer (Index 1).
template <std::size_t Index>
using timeout_token_t = finite_inplace_stop_token<2, Index>;

// The sender's deadline, and whether the sender has asked for it.
// Threads: set() before the sender is started; the rest from any thread.
class timeout_deadline {
public:
    void set(instant when) noexcept { when_ = when; }
    // Called by the sender. relaxed, both: the sender asks before it completes.
    instant ask() const noexcept {
        asked_.store(true, relaxed);
        return when_;
    }
    bool was_asked() const noexcept { return asked_.load(relaxed); }
    instant when() const noexcept { return when_; }

private:
    instant when_ = instant::never();
    mutable atomic<bool> asked_{false};
};

// The answer to the sender's get_deadline. Converting it to an instant counts as asking.
// Lifetime: that of the operation.
class told_deadline {
public:
    told_deadline(const timeout_deadline& told, instant unwatched) noexcept
        : told_(&told), unwatched_(unwatched) {}
    operator instant() const noexcept { return told_->ask(); }
    // The receiver's unwatched deadline: the end of this timeout arrives as a stop.
    instant unwatched() const noexcept { return unwatched_; }

private:
    const timeout_deadline* told_;
    instant unwatched_;
};

// The sender's environment: its own stop token and deadline, then the receiver's environment.
// Lifetime: that of the operation.
template <class Env>
class timeout_env {
public:
    timeout_env(timeout_token_t<0> token, const timeout_deadline& deadline, Env&& base) noexcept
        : token_(token), deadline_(&deadline), base_(static_cast<Env&&>(base)) {}
    timeout_token_t<0> query(get_stop_token_t) const noexcept { return token_; }
    told_deadline query(get_deadline_t) const noexcept {
        return {*deadline_, get_unwatched_deadline(base_)};
    }
    template <class Query, class... Args>
        requires(!one_of<Query, get_stop_token_t, get_deadline_t>) && is_forwarding_query<Query> &&
                has_query<Env, Query, Args...>
    decltype(auto) query(Query tag, Args&&... args) const noexcept {
        return static_cast<const Env&>(base_).query(tag, static_cast<Args&&>(args)...);
    }

private:
    timeout_token_t<0> token_;
    const timeout_deadline* deadline_;
    [[no_unique_address]] Env base_;
};
// The timer's environment: only a stop token, and the notice.
class timer_env {
public:
    timer_env(timeout_token_t<1> token, due_notice notice) noexcept
        : token_(token), notice_(notice) {}
    timeout_token_t<1> query(get_stop_token_t) const noexcept { return token_; }
    due_notice query(get_due_notice_t) const noexcept { return notice_; }

private:
    timeout_token_t<1> token_;
    due_notice notice_;
};

}  // namespace coppice::execution::internal
