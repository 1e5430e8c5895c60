// Plan: adaptors of one sender work in tasks, joins, timeouts, and scopes.
#include "works.hpp"

namespace {

namespace ex = coppice::execution;
using coppice::test::works;

TEST(algorithms, adaptors_work_in_tasks_joins_timeouts_and_scopes) {
    works([] { return ex::just(1) | ex::then([](int i) { return i; }); });
    works([] { return ex::just(1) | ex::let_value([](int& i) { return ex::just(i); }); });
    works([] { return ex::just_error(1) | ex::let_error([](int& i) { return ex::just(i); }); });
    works([] { return ex::just_stopped() | ex::let_stopped([] { return ex::just(1); }); });
    works([] { return ex::just(1) | ex::into_variant; });
    works([] { return ex::just(1) | ex::stopped_as_optional; });
    works([] { return ex::just(1) | ex::stopped_as_error(2); });
    works([] { return ex::just(1) | ex::unstoppable; });
    works([] { return ex::just(1) | ex::bulk(ex::par, 3, [](int, int&) {}); });
    works([] { return ex::read_env(coppice::get_stop_token); });
}

}  // namespace
