// Plan: changes of scheduler work in tasks, joins, timeouts, and scopes.
#include "works.hpp"

namespace {

namespace ex = coppice::execution;
using coppice::test::works;

TEST(algorithms, changes_of_scheduler_work_in_tasks_joins_timeouts_and_scopes) {
    const auto pool = ex::get_parallel_scheduler();
    works([pool] { return ex::schedule(pool); });
    works([pool] { return ex::just(1) | ex::continues_on(pool); });
    works([pool] { return ex::starts_on(pool, ex::just(1)); });
    works([pool] { return ex::on(pool, ex::just(1)); });
    works([] { return ex::just(1) | ex::affine; });
    works([] { return ex::schedule(ex::inline_scheduler()); });
}

}  // namespace
