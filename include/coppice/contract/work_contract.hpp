// work_contract: the handle of a contract in a group; its holder may schedule the contract.
#pragma once

#include <coppice/contract/internal/completion.hpp>
#include <coppice/contract/internal/core.hpp>

#include <utility>

namespace coppice {

// Owns a contract. Destroying the handle, or assigning to it, releases the contract that it had. A
// handle that outlives its contract or its group does nothing, and never affects a later contract
// in the same slot. A handle keeps the memory of its group alive, but not the group itself.
// Threads: the const functions, schedule(), unschedule(), and release() from any thread,
// concurrently with each other and with the end of the group. Moving and destroying: as for any
// object.
class work_contract {
public:
    work_contract() noexcept = default;
    work_contract(work_contract&& other) noexcept
        : core_(std::exchange(other.core_, nullptr)),
          index_(other.index_),
          generation_(other.generation_) {}
    work_contract& operator=(work_contract&& other) noexcept {
        work_contract old(std::move(other));
        std::swap(core_, old.core_);
        std::swap(index_, old.index_);
        std::swap(generation_, old.generation_);
        return *this;
    }
    ~work_contract() {
        if (core_ == nullptr) return;
        release();
        core_->drop_owner();
    }

    // Makes the contract run once, soon; once more if it is running now. Does nothing if the
    // contract is already pending, was released, or is gone. What happened before the call is
    // visible to the run. Blocks: never. Cost: three locked operations, and a load per level of the
    // directory; a system call if a worker sleeps.
    void schedule() noexcept {
        if (core_ != nullptr) core_->schedule(index_, generation_);
    }
    // Withdraws a pending run. Returns true if a run was pending and will not happen. Returns false
    // if none was pending, or if it cannot be withdrawn: a release, or a run that the running
    // contract asked for itself.
    bool unschedule() noexcept {
        return core_ != nullptr && core_->unschedule(index_, generation_);
    }
    // Ends the contract: its release callable runs once, soon, after a run in progress; a pending
    // run does not happen. Does nothing if the contract was released before. Blocks: never.
    void release() noexcept {
        if (core_ != nullptr) core_->begin_release(index_, generation_);
    }
    // Returns true until the release has run. If it returns false, the effects of the release are
    // visible.
    bool valid() const noexcept { return core_ != nullptr && core_->valid(index_, generation_); }
    explicit operator bool() const noexcept { return valid(); }

    // Returns the contract's place in the group, which selection_bias::prefer refers to. Any number
    // if the handle has no contract.
    std::size_t index() const noexcept { return index_; }

    // Returns an awaitable sender that completes when the contract is gone: at once, or on the
    // thread that ran the release. The slot is free by then, so a full group accepts a new
    // contract. If stopped, it completes with set_stopped and the contract lives on. Lifetime:
    // start it while the handle lives. Cost: no allocation; a lock.
    internal::contract_completion completion() const noexcept {
        return internal::contract_completion(core_, index_, generation_);
    }

private:
    friend class work_contract_group;
    work_contract(internal::contract_core* core, internal::contract_core::created made) noexcept
        : core_(made.index == internal::no_signal ? nullptr : core),
          index_(static_cast<std::uint32_t>(made.index)),
          generation_(made.generation) {}

    internal::contract_core* core_ = nullptr;  // shared with the group and its other handles
    std::uint32_t index_ = 0;
    std::uint64_t generation_ = 0;
};

}  // namespace coppice
