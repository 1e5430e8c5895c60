// process_timer: one thread of the process that calls functions at their time; for deadlines.
#pragma once
// The first arm() starts the thread; a program that never arms a node pays nothing. The thread
// keeps the armed nodes in a pairing heap and sleeps until the earliest is due. It calls the
// functions itself, one after the other, with all signals blocked.
//
// A node that is disarmed while its function runs: disarm() waits until the function has returned.
// On the timer's own thread, inside the function, it does not wait.
//
// End of the process: exit() runs a handler that lets the current function finish, ends the thread,
// and joins it. Nodes that are armed then, or later, are never called. The first arm() or
// outlive_caller() registers the handler. Static objects constructed later are destroyed before it
// runs, with the timer; all others after it, without the timer. So an object whose timers must work
// in its destructor calls outlive_caller() in its constructor. If a function calls exit(), the
// thread is not joined. quick_exit() and _exit() end the thread like any other.
//
// A child of fork() has no timer thread; its next arm() starts one, which then also calls inherited
// nodes, except those that are forgotten there: nodes of objects with threads and locks of their
// own, which do not work in the child.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/base/version.hpp>

#include <cstdint>

namespace coppice::internal {

// What the timer calls. Threads: any; the timer's mutex guards all fields, except where noted.
// Lifetime: ends only after disarm() or retire(), or before it was ever armed.
class process_timer_node : immovable {
public:
    using function = void(process_timer_node&) noexcept;
    // What becomes of an armed node in a child of fork(): the child's timer calls it, or it is no
    // longer armed there.
    enum class in_child : bool { is_called, is_forgotten };

    // `due` is called on the timer's thread.
    explicit process_timer_node(function* due, in_child inherited = in_child::is_called) noexcept
        : called_(due), inherited_(inherited) {}

    // Ensures that exit() destroys a static object, in whose constructor this is called, before it
    // ends the timer. Does not start the thread. Cost: a mutex; an allocation in the first call.
    static void outlive_caller() noexcept;

    // Makes the timer call the function at `due` (nanoseconds of CLOCK_MONOTONIC), and no longer at
    // the time that was given before. Returns false if exit() has ended the timer: it will never
    // call the function. Errors: std::system_error if the first call cannot start the thread. Cost:
    // a mutex; O(1).
    bool arm(std::int64_t due);
    // Withdraws the node. Blocks: while the function runs on the timer's thread, except if it is
    // called there. Cost: a mutex; O(log n) amortized.
    void disarm() noexcept;
    // As disarm(). The node may then be destroyed, even inside its function.
    void retire() noexcept;
    // Returns true from arm() until the node is disarmed or its function has returned.
    bool pending() const noexcept {
        // edge process_timer.delivered (acquire): what the function has done is visible
        return pending_.load(acquire);
    }

private:
    friend class process_timer;  // src/base/process_timer.cpp

    function* const called_;
    const in_child inherited_;
    std::int64_t due_ = 0;  // nanoseconds of CLOCK_MONOTONIC
    bool queued_ = false;   // in the heap
    // The pairing heap: the first child, the next sibling, and the pointer of the tree that points
    // here.
    process_timer_node* child_ = nullptr;
    process_timer_node* sibling_ = nullptr;
    process_timer_node** link_ = nullptr;
    atomic<bool> pending_{false};  // written under the mutex
};

}  // namespace coppice::internal
