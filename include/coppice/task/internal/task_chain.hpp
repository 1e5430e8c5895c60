// task_chain: tasks that wait for one another, and how an end or a stop passes between them.
#pragma once
// A task that awaits another one calls it: the child runs on top of its parent's stack. If the
// child ends there, it destroys its frame and returns, and the parent continues without ever having
// been suspended. Such a child is attached, and costs little more than a function call.
//
// Before a task awaits anything other than tasks, it is detached, and so are all tasks that wait
// for it. From then on any thread may resume them, and the callers on this stack no longer wait for
// them. A detached task that ends is suspended for the last time and destroyed. Its waiter names
// the coroutine to resume next.
//
//   attached                            detached
//
//   +--------+  resume()  +-------+     +--------+  waiter_   +-------+
//   | parent | ---------> | child |     | parent | <--------- | child |   child_ended()
//   |        | <--------- |       |     |        |            |       |   or child_stopped()
//   +--------+  returns   +-------+     +--------+            +-------+
//
// The thread that runs a chain detaches it before the chain is suspended, so the links are plain
// fields.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>

#include <coroutine>
#include <utility>

namespace coppice::execution::internal {

class task_chain;

// What follows when a task was stopped: the task that awaited it is stopped too, or a coroutine is
// resumed.
struct after_stop {
    std::coroutine_handle<> coroutine;
    // The chain of `coroutine` if that is to be stopped; null if it is to be resumed.
    task_chain* chain;

    static after_stop stop(std::coroutine_handle<> task, task_chain& chain) noexcept {
        return {task, &chain};
    }
    static after_stop resume(std::coroutine_handle<> coroutine) noexcept {
        return {coroutine, nullptr};
    }
    static after_stop nothing() noexcept { return resume(std::noop_coroutine()); }
};

// The waiter for a task: an await, a wait_for_tasks, or a connected operation. Called by task_chain
// and transfer_loop alone. The members are public because, with friends, g++ would warn that those
// can reach the destructor.
class task_waiter : immovable {
public:
    // Called when a detached child has ended. The child is gone unless it keeps its outcome.
    // Returns the coroutine to resume.
    virtual std::coroutine_handle<> child_ended() noexcept = 0;
    // Called when the child was stopped and is gone.
    virtual after_stop child_stopped() noexcept = 0;
    // Called when an attached child is detached. Returns the chain of the waiting task, which is to
    // be detached too, or nullptr.
    virtual task_chain* child_detached() noexcept { return nullptr; }
    // Called by the transfer_loop in which this waiter was deferred. Returns the coroutine to
    // resume.
    virtual std::coroutine_handle<> resume_deferred() noexcept { return std::noop_coroutine(); }

    task_waiter* next;  // the next one that is deferred; used by the loop

protected:
    task_waiter() noexcept {}
    ~task_waiter() = default;
};

// How a task is started: on top of its waiter, which waits for resume() to return; or not.
enum class starts : bool { detached, attached };

// The part of a task's promise that other tasks know.
class task_chain : immovable {
public:
    // Few tasks have any of the last three. A task that has one takes the slow path at its end.
    enum state : unsigned char {
        none = 0,
        attached = 1,
        own_context = 2,  // it has changed its scheduler (changed_scheduler.hpp)
        // The frame stays when the body has ended: the promise holds the outcome, for an l-value in
        // wait_for_tasks; or it is an async_generator.
        kept_outcome = 4,
        given_frame = 8,  // an allocator gave the frame (task_frame.hpp)
    };

    // Called before the task runs.
    void set_waiter(task_waiter& waiter, starts how) noexcept {
        waiter_ = &waiter;
        if (how == starts::detached) remove(attached);
    }
    // Detaches the task and all tasks that wait for it. Called before other threads may resume the
    // task, or it continues where its waiter does not wait.
    void detach() noexcept {
        for (task_chain* here = this; here != nullptr && here->has(attached);) {
            here->remove(attached);
            here = here->waiter_->child_detached();
        }
    }
    // Returns true if the body has ended on top of its waiter and nothing is left to do but to
    // destroy the frame.
    bool ends_attached() const noexcept { return state_ == attached; }

    // Stops the task: its body ends here without a result, and so do the bodies of the tasks that
    // wait for it. Their frames are destroyed from the innermost out, with constant stack. A task
    // that has changed its scheduler returns to its home scheduler in between, and the remaining
    // tasks end there. Returns the coroutine to resume.
    std::coroutine_handle<> stop(std::coroutine_handle<> self) noexcept {
        detach();
        return stop_waiter(leave_by_stop(self));
    }
    // Stops the task that `waiter` belongs to, whose child was stopped, and the tasks that wait for
    // it.
    static std::coroutine_handle<> stop_waiter(task_waiter& waiter) noexcept {
        after_stop next = waiter.child_stopped();
        while (next.chain != nullptr) {
            next = next.chain->leave_by_stop(next.coroutine).child_stopped();
        }
        return next.coroutine;
    }

protected:
    task_chain() noexcept {}
    ~task_chain() = default;

    // The slow end of the body. Destroys the frame unless it keeps the outcome. Tells the waiter
    // unless the task is attached, in which case the waiter itself resumed it and continues.
    std::coroutine_handle<> end(std::coroutine_handle<> self) noexcept {
        task_waiter& waiter = *waiter_;
        const bool returns = has(attached);
        if (!has(kept_outcome)) self.destroy();
        if (returns) return std::noop_coroutine();
        return waiter.child_ended();
    }

    // Puts `waiter` in front of the waiter of a detached task, and returns the former waiter.
    // `waiter` must pass on to it that the task has ended.
    task_waiter& add_waiter(task_waiter& waiter) noexcept {
        return *std::exchange(waiter_, &waiter);
    }
    void restore_waiter(task_waiter& waiter) noexcept { waiter_ = &waiter; }

    bool has(state which) const noexcept { return (state_ & which) != 0; }
    void add(state which) noexcept { state_ = static_cast<state>(state_ | which); }
    void remove(state which) noexcept { state_ = static_cast<state>(state_ & ~which); }

private:
    // Destroys the frame, unless it keeps the outcome. Returns the waiter. A context of its own
    // that the task has made outlives the task, because that context is the waiter.
    task_waiter& leave_by_stop(std::coroutine_handle<> self) noexcept {
        task_waiter& waiter = *waiter_;
        remove(own_context);
        if (!has(kept_outcome)) self.destroy();
        return waiter;
    }
    task_waiter* waiter_;
    state state_ = attached;
};

}  // namespace coppice::execution::internal
