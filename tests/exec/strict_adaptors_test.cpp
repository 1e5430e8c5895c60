// Plan: factories and adaptors of one sender call no completion that they do not declare.
#include <coppice/exec/into_variant.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/write_env.hpp>

#include "strict.hpp"

namespace {

namespace ex = coppice::execution;
using strict::check;
using strict::world;

// Applies an adaptor to every child.
template <class Adapt>
void check_adapted(Adapt adapt) {
    strict::each_child(
        [adapt](auto child) { check([adapt, child](world& w) { return adapt(child(w), w); }); });
}

TEST(strict_adaptors, factories_complete_only_as_declared) {
    strict::each_child([](auto child) { check(child); });
    check([](world&) { return ex::just(1); }, "value(1)");
    check([](world&) { return ex::just_error(1); }, "error(1)");
    check([](world&) { return ex::just_stopped(); }, "stopped");
    check([](world&) { return ex::read_env(coppice::get_stop_token); });
    check([](world&) { return ex::read_env(ex::get_scheduler); });
}

TEST(strict_adaptors, then_and_upon_complete_only_as_declared) {
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) | ex::then([](auto&&...) noexcept { return 2; });
    });
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) | ex::then([](auto&&...) -> int { throw 2; });
    });
    check_adapted(
        [](auto sndr, world&) { return std::move(sndr) | ex::upon_error([](auto&&) noexcept {}); });
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) | ex::upon_error([](auto&&) { throw 2; });
    });
    check_adapted(
        [](auto sndr, world&) { return std::move(sndr) | ex::upon_stopped([]() noexcept {}); });
    check_adapted(
        [](auto sndr, world&) { return std::move(sndr) | ex::upon_stopped([] { throw 2; }); });
}

TEST(strict_adaptors, let_value_completes_only_as_declared) {
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) | ex::let_value([](auto&&...) noexcept { return ex::just(2); });
    });
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) | ex::let_value([](auto&&...) { return ex::just_error(2); });
    });
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) |
               ex::let_value([](auto&&...) -> decltype(ex::just_stopped()) { throw 2; });
    });
}

TEST(strict_adaptors, let_error_and_let_stopped_complete_only_as_declared) {
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) | ex::let_error([](auto&&) noexcept { return ex::just(2); });
    });
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) | ex::let_error([](auto&&) { return ex::just_error(2); });
    });
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) | ex::let_stopped([]() noexcept { return ex::just(2); });
    });
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) | ex::let_stopped([]() { return ex::just_error(2); });
    });
}

TEST(strict_adaptors, into_variant_completes_only_as_declared) {
    check_adapted([](auto sndr, world&) { return ex::into_variant(std::move(sndr)); });
}

TEST(strict_adaptors, stopped_as_optional_and_error_complete_only_as_declared) {
    const auto adapt = [](auto child) {
        check([child](world& w) { return ex::stopped_as_optional(child(w)); });
    };
    adapt([](world&) { return ex::just(1); });
    adapt([](world&) { return ex::just(probes::throwing_copy(1)); });
    adapt([](world&) { return ex::just(1) | ex::then([](int i) { return i; }); });
    adapt([](world&) { return probes::at_once<ex::set_error_t(int)>(false); });
    adapt([](world&) { return probes::at_once<ex::set_stopped_t()>(false); });
    check_adapted([](auto sndr, world&) { return ex::stopped_as_error(std::move(sndr), 2); });
    check_adapted([](auto sndr, world&) {
        return ex::stopped_as_error(std::move(sndr), probes::throwing_copy(2));
    });
}

TEST(strict_adaptors, environments_complete_only_as_declared) {
    check_adapted([](auto sndr, world& w) { return ex::write_env(std::move(sndr), w.full_env()); });
    check_adapted([](auto sndr, world&) { return ex::unstoppable(std::move(sndr)); });
    check_adapted(
        [](auto sndr, world& w) { return ex::stop_when(std::move(sndr), w.source.get_token()); });
}

}  // namespace
