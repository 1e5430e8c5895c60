// task_scheduler_domain: hands a bulk that follows a task_scheduler to the scheduler that it holds.
#pragma once
// Only what a program without bulk needs. The rest is in task_scheduler_bulk.hpp, which bulk.hpp
// includes.

#include <coppice/exec/domain.hpp>

namespace coppice::execution {

struct bulk_chunked_t;
struct bulk_unchunked_t;

namespace internal {

// Defined in task_scheduler_bulk.hpp. The first starts a bulk on a Sch that has a domain of its
// own. The second is what a bulk sender that follows a task_scheduler becomes.
template <class Sch>
struct bulk_in_place;
template <class Sndr, class Env>
struct task_scheduler_bulk;

// Transforms bulk_chunked and bulk_unchunked.
struct task_scheduler_domain {
    template <class Sndr, class Env>
        requires(sender_for<Sndr, bulk_chunked_t> || sender_for<Sndr, bulk_unchunked_t>) &&
                (task_scheduler_bulk<Sndr, Env>::applies())
    static auto transform_sender(set_value_t, Sndr&& sndr, const Env& env) noexcept(
        noexcept(task_scheduler_bulk<Sndr, Env>::make(static_cast<Sndr&&>(sndr), env))) {
        return task_scheduler_bulk<Sndr, Env>::make(static_cast<Sndr&&>(sndr), env);
    }
};

}  // namespace internal

}  // namespace coppice::execution
