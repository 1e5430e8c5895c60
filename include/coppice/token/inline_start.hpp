// Completions that come while the operation is being initiated must not recurse; used by tokens.
#pragma once
// An operation may complete inside its initiation. To resume the waiter from there would put it on
// top of the initiator's stack, and a loop of a million such operations would use that up. So a
// completion asks whether its own initiation is still under way on this thread; if it is, it only
// stores the outcome, and the initiator goes on.
//
// exec/starting.hpp says how that is known.
//
// An operation that never completes inside its initiation, on the thread that calls it, says so by
// a member `static constexpr bool completes_inside = false` of its initiation; then nobody marks or
// asks. Should it do so all the same, its waiter goes on on top of the initiator's stack.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/starting.hpp>

namespace coppice::internal {

template <class Initiation>
consteval bool may_complete_inside() noexcept {
    if constexpr (requires { Initiation::completes_inside; }) {
        return Initiation::completes_inside;
    } else {
        return true;
    }
}

// How a state begins its operation. Threads: begin() on the initiator's, completed_inside() on
// whichever completes.
template <bool may_complete_inside>
class marked_start : immovable {
public:
    // True: completed inside, and the caller goes on. False: elsewhere, this may be gone.
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

// A callback whose operation completed inside its initiation, queued behind the running one.
struct waiting_callback : immovable {
    waiting_callback() noexcept {}  // most never wait: the queue writes the fields
    void (*run)(waiting_callback&) noexcept;
    waiting_callback* next;
};

// While callbacks run that became ready inside an initiation: those that become ready the same way
// meanwhile run after them and not on top of them. Threads: its own.
class [[gnu::visibility("default")]] callback_scope : immovable {
public:
    callback_scope() noexcept : outer_(innermost()) { innermost() = this; }
    ~callback_scope() {
        run_queued();
        innermost() = outer_;
    }

    // Calls run(callback) now, or after the one that this thread is running.
    static void run_or_queue(waiting_callback& callback,
                             void (*run)(waiting_callback&) noexcept) noexcept {
        if (callback_scope* const scope = innermost()) {
            callback.run = run;
            callback.next = nullptr;
            *scope->last_ = &callback;
            scope->last_ = &callback.next;
        } else {
            const callback_scope first;
            run(callback);
        }
    }
    // A callback is about to block: what is queued behind it may be what it waits for.
    static void run_before_blocking() noexcept {
        if (callback_scope* const scope = innermost()) scope->run_queued();
    }

private:
    void run_queued() noexcept {
        while (waiting_callback* const first = first_) {
            first_ = first->next;
            if (first_ == nullptr) last_ = &first_;
            first->run(*first);  // it is gone
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
