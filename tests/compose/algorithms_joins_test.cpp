// Plan: joins work in tasks, joins, timeouts, and scopes.
#include "works.hpp"

#include <vector>

namespace {

namespace ex = coppice::execution;
using coppice::test::works;

TEST(algorithms, joins_work_in_tasks_joins_timeouts_and_scopes) {
    works([] { return ex::when_all(ex::just(1), ex::just(2)); });
    works([] { return ex::when_all_with_variant(ex::just(1), ex::just(2)); });
    works([] { return ex::when_any(ex::just(1), ex::just(2)); });
    works([] { return ex::when_all_range(std::vector(2, ex::just(1))); });
    works([] { return ex::timeout(ex::just(1), coppice::test::an_hour); });
}

}  // namespace
