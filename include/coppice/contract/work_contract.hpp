// work_contract: the handle of a contract in a group; whoever has it may schedule the contract.
#pragma once

#include <coppice/contract/completion.hpp>
#include <coppice/contract/core.hpp>

#include <utility>

namespace coppice {

// Owns a contract: when it is destroyed or assigned to, it releases what it had. A handle that
// outlives its contract or its group does nothing, and the next contract in its place is none of
// its business. It keeps the memory of its group, though not the group.
// Threads: the const functions, schedule, unschedule and release from any, concurrently with each
// other and with the end of the group; moving and destroying it, as for any object.
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

    // The contract runs once, soon; if it is running, once more. Nothing if it is pending already,
    // was released, or is gone. Blocks: never. What came before is visible to the run.
    // Cost: three locked operations, and a load per level of the directory; a system call if a
    // worker sleeps.
    void schedule() noexcept {
        if (core_ != nullptr) core_->schedule(index_, generation_);
    }
    // True: it was pending, and that run will not happen. False: nothing was pending, or what is
    // pending cannot be withdrawn: a release, or a run that the running contract itself asked for.
    bool unschedule() noexcept {
        return core_ != nullptr && core_->unschedule(index_, generation_);
    }
    // The contract ends: its release callable runs once, soon, after the run that is in progress;
    // a run that is pending does not happen. Nothing if it was released before. Blocks: never.
    void release() noexcept {
        if (core_ != nullptr) core_->begin_release(index_, generation_);
    }
    // Whether its release has yet to run. If not, what the release did is visible.
    bool valid() const noexcept { return core_ != nullptr && core_->valid(index_, generation_); }
    explicit operator bool() const noexcept { return valid(); }

    // Its place in the group: what selection_bias::prefer goes by. Misuse: none; any number if the
    // handle has no contract.
    std::size_t index() const noexcept { return index_; }

    // A sender, and awaitable, that completes when the contract is gone: at once, or on the thread
    // that ran the release. Its place is free by then: a full group takes a new contract.
    // Stopped, it completes with set_stopped, and the contract lives on.
    // Lifetime: to be started while the handle lives. Cost: no allocation; a lock.
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
