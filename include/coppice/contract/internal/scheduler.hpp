// contract_scheduler: runs senders and tasks on a group; from work_contract_group::get_scheduler.
#pragma once
// Each scheduled operation is run by an extra contract of the group. These do not count towards its
// capacity, so a full group runs senders too, in fair turns with its contracts. Scheduling
// allocates nothing. An operation that is scheduled after the group was drained or stopped runs at
// once, on the thread that schedules it.

#include <coppice/contract/internal/core.hpp>
#include <coppice/exec/internal/scheduled_sender.hpp>
#include <coppice/exec/internal/try_scheduled_sender.hpp>

namespace coppice::internal {

// Threads: any. Lifetime: the group outlives what was scheduled on it. Destroying the group runs
// what has not run yet, on the destroying thread.
class contract_scheduler {
public:
    using scheduler_concept = execution::scheduler_tag;
    using item_type = contract_item;

    explicit contract_scheduler(contract_core& core) noexcept : core_(&core) {}

    execution::internal::scheduled_sender<contract_scheduler> schedule() const noexcept {
        return execution::internal::scheduled_sender<contract_scheduler>(*this);
    }
    // Returns a sender for which scheduling neither blocks nor allocates; see try_schedule. It
    // sends would_block_t while more operations wait than the group has extra contracts and another
    // thread holds the lock of their queue, and once the group was drained or stopped.
    execution::internal::try_scheduled_sender<contract_scheduler> try_schedule() const noexcept {
        return execution::internal::try_scheduled_sender<contract_scheduler>(*this);
    }
    void enqueue(item_type& item) const noexcept { core_->enqueue(item); }
    // Returns false, and does nothing, if the group has ended; enqueue() would run the item here.
    [[nodiscard]] bool enqueue_if_open(item_type& item) const noexcept {
        return core_->try_enqueue(item);
    }
    // Does the same, and returns false also if it would block.
    [[nodiscard]] bool try_enqueue(item_type& item) const noexcept {
        return core_->enqueue_without_blocking(item);
    }

    // Operations run on threads that execute the group, and make progress as threads do.
    execution::forward_progress_guarantee query(
        execution::get_forward_progress_guarantee_t) const noexcept {
        return execution::forward_progress_guarantee::parallel;
    }
    template <class Tag>
        requires(!std::is_same_v<Tag, execution::set_error_t>)
    contract_scheduler query(execution::get_completion_scheduler_t<Tag>) const noexcept {
        return *this;
    }
    bool operator==(const contract_scheduler&) const noexcept = default;

private:
    contract_core* core_;
};

}  // namespace coppice::internal
