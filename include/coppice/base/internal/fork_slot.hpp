// fork_slot: one forked call, shared by the worker that forked it and the thief that runs it.
#pragma once
// fork_deque.hpp has the protocol. The states of a slot:
//
//   published -> taken -> done            a thief has read it; the call has ended
//                taken -> asleep -> done  the owner sleeps until the call has ended

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/futex.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

class fork_deque;
class fork_slot;
struct work_item;  // pool/internal/work_item.hpp

// What a pool does for the deques of its workers.
class fork_team {
public:
    // Called when calls were published. Wakes a sleeping worker if no worker is searching.
    virtual void published() noexcept = 0;
    // Called by an owner that waits for `awaited`: runs a call that the thief of `awaited` has
    // forked below it; if urgent, even one that has to be grabbed. Returns false if it found none.
    virtual bool help(fork_deque& waiting, const fork_slot& awaited, std::uint32_t thief,
                      bool urgent) noexcept = 0;
    // Returns the number of workers.
    virtual std::size_t size() const noexcept { return 1; }
    // Called by a worker: queues an item for the workers. Returns false if there is no queue.
    virtual bool enqueue(work_item&) noexcept { return false; }

protected:
    ~fork_team() = default;
};

// Runs a forked call. `frame` is what push() was given. A call that join() joins must end with
// slot.finish(); any other call must not touch the slot.
using forked_call = void (*)(void* frame, fork_slot& slot) noexcept;

// The slot of one forked call.
class fork_slot : immovable {
public:
    fork_slot() = default;

    // Called by the thief as its last access to the slot: publishes the results and marks the call
    // done. The memory of the slot stays: a worker owns it, and workers end together.
    void finish() noexcept {
        // edge fork.done (release): what the call did
        if (state_.exchange(done, release) == asleep) futex_wake_one(state_);
    }

    // Called by the thief: wakes the owner if it sleeps in join(). An owner that falls asleep
    // meanwhile may miss it.
    void wake_owner() noexcept {
        // Relaxed: a hint.
        if (state_.load(relaxed) == asleep) futex_wake_one(state_);
    }

private:
    friend class fork_deque;
    enum state : std::uint32_t { published, taken, asleep, done };

    // Written by the owner before publication; read by the thief.
    plain<forked_call> call_;
    plain<void*> frame_;
    plain<const void*> context_;         // the context of the fork_context in force at the push
    atomic<std::uint32_t> state_{done};  // written by the owner before publication, then as above
    atomic<std::uint32_t> thief_{0};  // the worker that took it; written before the state says so
};

// A call that a thief has taken.
struct taken_call {
    forked_call call = nullptr;
    void* frame = nullptr;
    const void* context = nullptr;
    fork_slot* slot = nullptr;
    void run() const noexcept;
};

// A call that a worker has taken, while it runs. Threads: that worker.
class running_call : immovable {
public:
    // Becomes the innermost one, until it is destroyed.
    running_call(fork_slot& slot, running_call*& innermost) noexcept
        : slot_(slot), innermost_(innermost), outer_(innermost) {
        innermost = this;
    }
    ~running_call() { innermost_ = outer_; }
    // Called by the worker when it has published something, which was forked below this call and
    // all outer ones. So the owners of these may help: wakes those that sleep.
    void wake_owners() const noexcept {
        for (const running_call* call = this; call != nullptr; call = call->outer_) {
            call->slot_.wake_owner();
        }
    }

private:
    fork_slot& slot_;
    running_call*& innermost_;
    running_call* const outer_;
};

enum class fork_steal { taken, empty, lost };  // lost: another thief was faster

}  // namespace coppice::internal
