// Plan: algorithms with a shared state work in tasks, joins, timeouts, and scopes.
#include "works.hpp"

namespace {

namespace ex = coppice::execution;
using coppice::test::works;

TEST(algorithms, those_with_a_shared_state_work_in_tasks_joins_timeouts_and_scopes) {
    using any = ex::any_sender<ex::completion_signatures<
        ex::set_value_t(int), ex::set_error_t(std::exception_ptr), ex::set_stopped_t()>>;
    works([] { return ex::just(1) | ex::split; });
    works([] { return any(ex::just(1)); });
    works([] { return ex::scoped([](auto) { return ex::just(1); }); });
    works([] {
        return ex::scoped(
            [](auto scope) { return ex::spawn_future(ex::just(1), scope) | ex::into_variant; });
    });
    works([] { return ex::scoped([](auto scope) { return ex::just(1) | ex::associate(scope); }); });
}

}  // namespace
