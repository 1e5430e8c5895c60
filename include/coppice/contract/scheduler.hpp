// contract_scheduler: senders and tasks run on a group; from work_contract_group::get_scheduler.
#pragma once
// Each scheduled operation is run by a contract of the group's own, beside those that its capacity
// counts, so a full group runs senders as well, and fairly beside its contracts. Scheduling
// allocates nothing. What is scheduled once the group was drained or stopped runs at once, on the
// thread that schedules it.

#include <coppice/contract/core.hpp>
#include <coppice/exec/scheduled_sender.hpp>

namespace coppice::internal {

// Threads: any. Lifetime: the group outlives what was scheduled; destroying it runs, on the
// destroying thread, what nobody has run.
class contract_scheduler {
public:
    using scheduler_concept = execution::scheduler_tag;
    using item_type = contract_item;

    explicit contract_scheduler(contract_core& core) noexcept : core_(&core) {}

    execution::scheduled_sender<contract_scheduler> schedule() const noexcept {
        return execution::scheduled_sender<contract_scheduler>(*this);
    }
    void enqueue(item_type& item) const noexcept { core_->enqueue(item); }
    // False: the group has ended, and nothing was done, where enqueue() would run the item here.
    [[nodiscard]] bool try_enqueue(item_type& item) const noexcept {
        return core_->try_enqueue(item);
    }

    // An operation runs on a thread that executes the group, which makes progress as threads do.
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
