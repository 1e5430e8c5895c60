// Prevents completions inside an initiation from recursing; used by tokens.
#pragma once
// An operation may complete inside its initiation. Resuming the waiter there would put it on top of
// the initiator's stack, and a loop of a million such operations would exhaust it. So a completion
// checks if its own initiation is still running on this thread. If it is, the completion only
// stores the outcome, and the initiator continues.
//
// exec/internal/starting.hpp explains how this is known.
//
// The initiation of an operation that never completes inside it, on the calling thread, declares
// `static constexpr bool completes_inside = false`. The check is then omitted. If such an operation
// does so all the same, its waiter continues on top of the initiator's stack.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/put_off.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/internal/starting.hpp>

namespace coppice::internal {

template <class Initiation>
consteval bool may_complete_inside() noexcept {
    if constexpr (requires { Initiation::completes_inside; }) {
        return Initiation::completes_inside;
    } else {
        return true;
    }
}

// How a state begins its operation. Threads: the initiator calls begin(); the thread that completes
// the operation calls completed_inside().
template <bool may_complete_inside>
class marked_start : immovable {
public:
    // Returns true if the operation completed inside; the caller then continues. If it returns
    // false, the operation completes elsewhere, and this object may be gone.
    template <class Initiate>
    bool begin(const void* state, Initiate initiate) noexcept {
        execution::internal::starting start_call(state, mark_);
        initiate();
        return start_call.has_completed();
    }
    bool completed_inside(const void* state) const noexcept {
        return execution::internal::starting::takes_completion_of(state, mark_);
    }

private:
    const execution::internal::starting* mark_;  // set by begin()
};
template <>
class marked_start<false> : immovable {
public:
    template <class Initiate>
    bool begin(const void*, Initiate initiate) noexcept {
        initiate();
        return false;
    }
    static bool completed_inside(const void*) noexcept { return false; }
};

// A callback whose operation completed inside its initiation, queued behind the running callback.
struct waiting_callback : immovable {
    waiting_callback() noexcept {}  // most never wait, so only the queue writes the fields
    void (*run)(waiting_callback&) noexcept;
    waiting_callback* next;
};

// Exists while callbacks run that became ready inside an initiation. Callbacks that become ready in
// the same way meanwhile run after them, not on top of them; or when this thread is about to sleep
// in this library (put_off.hpp), because a callback may wait for one behind it. Threads: its own.
class [[gnu::visibility("default")]] callback_scope : put_off_work {
public:
    callback_scope() noexcept : put_off_work(&run_next), outer_(innermost()) { innermost() = this; }
    ~callback_scope() {
        run_queued();
        innermost() = outer_;
    }

    // Calls run(callback) now, or after the callback that this thread is running.
    static void run_or_queue(waiting_callback& callback,
                             void (*run)(waiting_callback&) noexcept) noexcept {
        if (callback_scope* const scope = innermost()) {
            callback.run = run;
            callback.next = nullptr;
            *scope->last_ = &callback;
            scope->last_ = &callback.next;
        } else {
            callback_scope first;  // run_or_queue() changes it
            run(callback);
        }
    }
    // Calls f(). The callbacks that become ready inside run after it, or after the callback that
    // this thread is running: so each may block until one behind it has run.
    template <class F>
    static void run_together(F f) noexcept {
        if (innermost() != nullptr) {
            f();
        } else {
            callback_scope first;  // run_or_queue() changes it
            f();
        }
    }
    // Called before a callback blocks: it may wait for a callback that is queued behind it.
    static void run_before_blocking() noexcept {
        if (callback_scope* const scope = innermost()) scope->run_queued();
    }

private:
    static bool run_next(put_off_work& place) noexcept {
        callback_scope& scope = static_cast<callback_scope&>(place);
        waiting_callback* const first = scope.first_;
        if (first == nullptr) return false;
        scope.first_ = first->next;
        if (scope.first_ == nullptr) scope.last_ = &scope.first_;
        first->run(*first);  // the callback is gone afterwards
        return true;
    }
    void run_queued() noexcept {
        while (run_next(*this)) {
        }
    }
    static callback_scope*& innermost() noexcept {
        return thread_slot<callback_scope, callback_scope*>();
    }
    callback_scope* outer_;
    waiting_callback* first_ = nullptr;
    waiting_callback** last_ = &first_;
};

}  // namespace coppice::internal
