// Plan: repeat_until and retry work in tasks, joins, timeouts, and scopes.
#include "works.hpp"

namespace {

namespace ex = coppice::execution;
using coppice::test::works;

TEST(algorithms, loops_work_in_tasks_joins_timeouts_and_scopes) {
    works([] { return ex::just(true) | ex::repeat_until; });
    works([] { return ex::just(1) | ex::retry; });
    int rounds = 0;
    works([&rounds] {
        rounds = 0;
        return ex::just() | ex::let_value([&rounds] {
                   if (++rounds < 5) throw rounds;
                   return ex::just(rounds);
               }) |
               ex::retry;
    });
}

}  // namespace
