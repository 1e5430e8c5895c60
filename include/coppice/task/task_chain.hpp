// task_chain: tasks that wait for one another, and how they end and stop; for task and its awaits.
#pragma once
// A task that waits for another calls it: the child runs on top of its parent's stack. If it ends
// there, it destroys its frame and returns, and the parent goes on without ever having been
// suspended. That is an attached child, and costs little more than a call.
//
// Before a task awaits anything but tasks it is detached, and so are all that wait for it: from
// then on anybody, on any thread, may resume them, and what lies on this stack is not waited for.
// A detached task that ends is suspended for the last time, destroyed, and its waiter names the
// coroutine to resume next.
//
// A chain is detached by who runs it, before it is suspended; so its links are plain fields.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/task/task_frame.hpp>

#include <coroutine>
#include <utility>

namespace coppice::execution {

class task_chain;

// A coroutine that ends with a stop; if it is a task, its chain, else it is resumed.
struct stopped_coroutine {
    std::coroutine_handle<> coroutine;
    task_chain* chain;
};

// Who waits for a task: an await, a wait_for_tasks, a connected operation.
// Everything is for task_chain and transfer_loop; as friends they would make g++ warn that they can
// reach the destructor.
class task_waiter : immovable {
public:
    // The child has ended, and is gone unless it keeps its outcome. Gives the coroutine to resume.
    virtual std::coroutine_handle<> ended() noexcept = 0;
    // The child was stopped, and is gone. Gives what is to be stopped next, or resumed.
    virtual stopped_coroutine stopped() noexcept = 0;
    // The child is detached. Gives the chain of the task that waits, which is to be detached too.
    virtual task_chain* leave() noexcept = 0;
    // What was put off, by a transfer_loop. Gives the coroutine to resume.
    virtual std::coroutine_handle<> go_on() noexcept = 0;

    task_waiter* next;  // put off after this one; the loop's

protected:
    task_waiter() noexcept {}
    ~task_waiter() = default;
};

// The awaiter that a task_waiter is. Not the waiter itself: a destructor that does something, in a
// class with virtual functions, writes their address once more.
template <class Waiter>
class waiting_awaiter : immovable {
public:
    template <class... Args>
    [[gnu::always_inline]] explicit waiting_awaiter(Args&&... args)
        : waiter_(static_cast<Args&&>(args)...) {}
    [[gnu::always_inline]] ~waiting_awaiter() { waiter_.destroy(); }

    [[gnu::always_inline]] bool await_ready() { return waiter_.is_ready(); }
    template <class Promise>
    [[gnu::always_inline]] bool await_suspend(std::coroutine_handle<Promise> parent) noexcept {
        return waiter_.suspends(parent);
    }
    [[gnu::always_inline]] decltype(auto) await_resume() { return waiter_.result(); }

private:
    Waiter waiter_;
};

// The part of a task's promise that other tasks know.
class task_chain : immovable {
public:
    // The last three are what few tasks have: one that has any of it is not destroyed at its end
    // without a look.
    enum state : unsigned char {
        none = 0,
        attached = 1,
        own_context = 2,
        kept_outcome = 4,
        given_frame = 8,  // by an allocator (task_frame.hpp)
    };

    // Before the task runs.
    void set_waiter(task_waiter& waiter, bool is_attached) noexcept {
        waiter_ = &waiter;
        if (!is_attached) remove(attached);
    }
    // Before the task may be resumed by others, or goes on where its waiter does not wait.
    void detach() noexcept {
        for (task_chain* here = this; here != nullptr && here->has(attached);) {
            here->remove(attached);
            here = here->waiter_->leave();
        }
    }
    // The body ends here without a result, and so do those of the tasks that wait for it, one after
    // the other: their frames are destroyed from the innermost out, with constant stack. A task
    // that has changed its scheduler goes home in between: the rest of them ends there.
    std::coroutine_handle<> stop(std::coroutine_handle<> self) noexcept {
        detach();
        return stop_waiter(leave_by_stop(self));
    }
    // The child of `waiter` was stopped: what waits is stopped too.
    static std::coroutine_handle<> stop_waiter(task_waiter& waiter) noexcept {
        stopped_coroutine next = waiter.stopped();
        while (next.chain != nullptr) next = next.chain->leave_by_stop(next.coroutine).stopped();
        return next.coroutine;
    }

    // The body has ended. True: the frame is destroyed at once, and whoever resumed it goes on.
    bool ends_attached() const noexcept { return state_ == attached; }

protected:
    task_chain() noexcept {}
    ~task_chain() = default;

    // Otherwise: the frame is destroyed unless it keeps the outcome, and the waiter is told unless
    // it is whoever resumed the task.
    std::coroutine_handle<> end(std::coroutine_handle<> self) noexcept {
        task_waiter& waiter = *waiter_;
        const bool returns = has(attached);
        if (!keeps_outcome()) self.destroy();
        if (returns) return std::noop_coroutine();
        return waiter.ended();
    }

    // Of a detached task. `waiter` passes on to the one before it, which this returns, that the
    // task has ended.
    task_waiter& add_waiter(task_waiter& waiter) noexcept {
        return *std::exchange(waiter_, &waiter);
    }
    void restore_waiter(task_waiter& waiter) noexcept { waiter_ = &waiter; }

    bool has(state which) const noexcept { return (state_ & which) != 0; }
    void add(state which) noexcept { state_ = static_cast<state>(state_ | which); }

private:
    // Destroys the frame, unless it keeps the outcome. Returns who waits. A context that the task
    // has made for itself outlives it: it is who waits.
    task_waiter& leave_by_stop(std::coroutine_handle<> self) noexcept {
        task_waiter& waiter = *waiter_;
        remove(own_context);
        if (!keeps_outcome()) self.destroy();
        return waiter;
    }
    void remove(state which) noexcept { state_ = static_cast<state>(state_ & ~which); }
    bool keeps_outcome() const noexcept { return has(kept_outcome); }

    task_waiter* waiter_;
    state state_ = attached;
};

// The end of the body, which final_suspend() gives to be awaited. With clang a part of the promise,
// so that the frame need not hold it; g++ 12 copies what final_suspend() refers to.
template <class Promise>
class end_of_body : immovable {
public:
    bool await_ready() noexcept {
        Promise& promise = static_cast<Promise&>(*this);
        if (!promise.ends_attached()) return false;
        // It has no given frame, so operator delete need not look.
        void* const frame = std::coroutine_handle<Promise>::from_promise(promise).address();
        if (!task_frame::is_of_the_pool(frame)) __builtin_unreachable();
        return true;
    }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> self) noexcept {
        return static_cast<Promise&>(*this).end_or_go_home(self);
    }
    void await_resume() const noexcept {}

#if defined(__clang__)  // either is passed as one pointer: binary code of both compilers fits
    end_of_body& to_be_awaited() noexcept { return *this; }
#else
    auto to_be_awaited() noexcept { return awaiter_reference<end_of_body>(*this); }
#endif

protected:
    end_of_body() = default;
    ~end_of_body() = default;
};

}  // namespace coppice::execution
