// task_chain: tasks that wait for one another, and how they end and stop; for task and its awaits.
#pragma once
// A task that waits for another calls it: the child runs on top of its parent's stack. If the child
// ends there, it destroys its frame and returns, and the parent continues without ever having been
// suspended. Such a child is attached, and costs little more than a function call.
//
// Before a task awaits anything other than tasks, it is detached, and so are all tasks that wait
// for it. From then on any thread may resume them, and the callers on this stack no longer wait for
// them. A detached task that ends is suspended for the last time and destroyed. Its waiter names
// the coroutine to resume next.
//
// The thread that runs a chain detaches it before the chain is suspended, so the links are plain
// fields.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/as_awaitable.hpp>
#include <coppice/task/internal/task_frame.hpp>

#include <coroutine>
#include <utility>

namespace coppice::execution {

class task_chain;

// A coroutine to be stopped if `chain` is set, which is then the chain of that task; otherwise a
// coroutine to be resumed.
struct stopped_coroutine {
    std::coroutine_handle<> coroutine;
    task_chain* chain;
};

// The waiter for a task: an await, a wait_for_tasks, or a connected operation. All members are for
// task_chain and transfer_loop. They are public because, with friends, g++ would warn that those
// can reach the destructor.
class task_waiter : immovable {
public:
    // Called when the child has ended. The child is gone unless it keeps its outcome. Returns the
    // coroutine to resume.
    virtual std::coroutine_handle<> ended() noexcept = 0;
    // Called when the child was stopped and is gone. Returns what is to be stopped or resumed next.
    virtual stopped_coroutine stopped() noexcept = 0;
    // Called when the child is detached. Returns the chain of the waiting task, which is to be
    // detached too.
    virtual task_chain* leave() noexcept = 0;
    // Called by a transfer_loop to continue what was deferred. Returns the coroutine to resume.
    virtual std::coroutine_handle<> go_on() noexcept = 0;

    task_waiter* next;  // the next one that is deferred; used by the loop

protected:
    task_waiter() noexcept {}
    ~task_waiter() = default;
};

// The awaiter around a task_waiter. The waiter is not the awaiter itself: in a class with virtual
// functions, a destructor that does something writes the address of their table once more.
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
    // Few tasks have any of the last three. A task that has one takes the slow path at its end.
    enum state : unsigned char {
        none = 0,
        attached = 1,
        own_context = 2,
        kept_outcome = 4,
        given_frame = 8,  // by an allocator (task_frame.hpp)
    };

    // Called before the task runs.
    void set_waiter(task_waiter& waiter, bool is_attached) noexcept {
        waiter_ = &waiter;
        if (!is_attached) remove(attached);
    }
    // Called before other threads may resume the task, or it continues where its waiter does not
    // wait.
    void detach() noexcept {
        for (task_chain* here = this; here != nullptr && here->has(attached);) {
            here->remove(attached);
            here = here->waiter_->leave();
        }
    }
    // Stops the task: its body ends here without a result, and so do the bodies of the tasks that
    // wait for it. Their frames are destroyed from the innermost out, with constant stack. A task
    // that has changed its scheduler returns to its home scheduler in between, and the remaining
    // tasks end there.
    std::coroutine_handle<> stop(std::coroutine_handle<> self) noexcept {
        detach();
        return stop_waiter(leave_by_stop(self));
    }
    // Called when the child of `waiter` was stopped. Stops the waiting task and the tasks that wait
    // for it.
    static std::coroutine_handle<> stop_waiter(task_waiter& waiter) noexcept {
        stopped_coroutine next = waiter.stopped();
        while (next.chain != nullptr) next = next.chain->leave_by_stop(next.coroutine).stopped();
        return next.coroutine;
    }

    // Called when the body has ended. Returns true if the frame is to be destroyed at once; the
    // resumer then continues.
    bool ends_attached() const noexcept { return state_ == attached; }

protected:
    task_chain() noexcept {}
    ~task_chain() = default;

    // The slow end of the body. Destroys the frame unless it keeps the outcome. Tells the waiter
    // unless the task is attached, in which case the waiter itself resumed it and continues.
    std::coroutine_handle<> end(std::coroutine_handle<> self) noexcept {
        task_waiter& waiter = *waiter_;
        const bool returns = has(attached);
        if (!keeps_outcome()) self.destroy();
        if (returns) return std::noop_coroutine();
        return waiter.ended();
    }

    // Puts `waiter` in front of the waiter of a detached task, and returns the former waiter.
    // `waiter` must pass on to it that the task has ended.
    task_waiter& add_waiter(task_waiter& waiter) noexcept {
        return *std::exchange(waiter_, &waiter);
    }
    void restore_waiter(task_waiter& waiter) noexcept { waiter_ = &waiter; }

    bool has(state which) const noexcept { return (state_ & which) != 0; }
    void add(state which) noexcept { state_ = static_cast<state>(state_ | which); }

private:
    // Destroys the frame, unless it keeps the outcome. Returns the waiter. A context of its own
    // that the task has made outlives the task, because that context is the waiter.
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

// The awaiter for the end of the body, returned by final_suspend(). With clang it is a part of the
// promise, so that the frame need not hold it. g++ 12 copies the object to which final_suspend()
// returns a reference, so it gets a reference wrapped in an object.
template <class Promise>
class end_of_body : immovable {
public:
    bool await_ready() noexcept {
        Promise& promise = static_cast<Promise&>(*this);
        if (!promise.ends_attached()) return false;
        // It has no given frame, so operator delete need not check for one.
        void* const frame = std::coroutine_handle<Promise>::from_promise(promise).address();
        if (!task_frame::is_of_the_pool(frame)) __builtin_unreachable();
        return true;
    }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> self) noexcept {
        return static_cast<Promise&>(*this).end_or_go_home(self);
    }
    void await_resume() const noexcept {}

#if defined(__clang__)  // each is passed as one pointer, so object files of both compilers fit
                        // together
    end_of_body& to_be_awaited() noexcept { return *this; }
#else
    auto to_be_awaited() noexcept { return internal::awaiter_reference<end_of_body>(*this); }
#endif

protected:
    end_of_body() = default;
    ~end_of_body() = default;
};

}  // namespace coppice::execution
