// Plan: algorithms on several senders call no completion that they do not declare.
#include <coppice/exec/then.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/when_all_range.hpp>
#include <coppice/exec/when_any.hpp>

#include "strict.hpp"

#include <vector>

namespace {

namespace ex = coppice::execution;
using strict::check;
using strict::world;

TEST(strict_joins, when_all_completes_only_as_declared) {
    strict::each_simple_child([](auto child) {
        check([child](world& w) { return ex::when_all(child(w)); });
        check([child](world& w) { return ex::when_all(ex::just(1), child(w)); });
        check([child](world& w) { return ex::when_all(child(w), ex::just_error(2)); });
        check([child](world& w) { return ex::when_all(child(w), ex::just_stopped()); });
    });
    check([](world&) { return ex::when_all(ex::just(probes::throwing_copy(1)), ex::just(2)); },
          "value(1, 2)");
    check([](world&) { return ex::when_all(probes::until_stopped(), ex::just_stopped()); },
          "stopped");
}

TEST(strict_joins, when_all_with_variant_completes_only_as_declared) {
    strict::each_child([](auto child) {
        check([child](world& w) { return ex::when_all_with_variant(child(w), ex::just(1)); });
    });
}

TEST(strict_joins, when_any_completes_only_as_declared) {
    strict::each_child([](auto child) {
        check([child](world& w) { return ex::when_any(child(w)); });
        check([child](world& w) { return ex::when_any(child(w), ex::just(1)); });
        check([child](world& w) { return ex::when_any(ex::just_stopped(), child(w)); });
    });
    check([](world&) { return ex::when_any(probes::until_stopped(), ex::just(2)); }, "value(2)");
}

TEST(strict_joins, when_all_range_completes_only_as_declared) {
    strict::each_simple_child([](auto child) {
        check([child](world& w) { return ex::when_all_range(std::vector(2, child(w))); });
    });
    check([](world&) {
        return ex::when_all_range(std::vector(2, ex::just(probes::throwing_copy(1))));
    });
    check([](world&) { return ex::when_all_range(std::vector(2, ex::just(1, 2))); });
}

constexpr auto hour = coppice::execution::time_span(3'600'000'000'000);

TEST(strict_joins, timeout_completes_only_as_declared) {
    strict::each_child(
        [](auto child) { check([child](world& w) { return ex::timeout(child(w), hour); }); });
    check([](world&) { return ex::timeout(probes::until_stopped(), {}); });
}

}  // namespace
