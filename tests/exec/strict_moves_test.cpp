// Plan: schedulers, algorithms that move work between them, and bulk call no undeclared completion.
#include <coppice/exec/affine.hpp>
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/continues_on.hpp>
#include <coppice/exec/inline_scheduler.hpp>
#include <coppice/exec/on.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/timed_scheduler.hpp>

#include "strict.hpp"

namespace {

namespace ex = coppice::execution;
using strict::check;
using strict::world;

template <class Adapt>
void check_adapted(Adapt adapt) {
    strict::each_child(
        [adapt](auto child) { check([adapt, child](world& w) { return adapt(child(w), w); }); });
}

TEST(strict_moves, schedulers_complete_only_as_declared) {
    check([](world& w) { return ex::schedule(w.scheduler()); });
    check([](world&) { return ex::schedule(ex::inline_scheduler()); }, "value()");
    check([](world& w) { return ex::schedule(ex::any_scheduler(w.scheduler())); });
    check([](world&) { return ex::schedule(ex::any_scheduler(ex::inline_scheduler())); });
    check([](world&) { return ex::schedule(probes::refusing_scheduler()); }, "error(full)");
}

TEST(strict_moves, timers_complete_only_as_declared) {
    check([](world& w) { return ex::schedule_after(w.scheduler(), {}); });
    check([](world& w) { return ex::schedule_at(w.scheduler(), {}); });
    check([](world& w) { return ex::schedule_after(ex::any_scheduler(w.scheduler()), {}); });
    check([](world& w) { return ex::schedule_at(ex::any_scheduler(w.scheduler()), {}); });
}

TEST(strict_moves, continues_on_completes_only_as_declared) {
    check_adapted(
        [](auto sndr, world& w) { return ex::continues_on(std::move(sndr), w.scheduler()); });
    check_adapted([](auto sndr, world&) {
        return ex::continues_on(std::move(sndr), probes::refusing_scheduler());
    });
    check_adapted([](auto sndr, world& w) {
        return ex::continues_on(std::move(sndr), ex::any_scheduler(w.scheduler()));
    });
    check_adapted([](auto sndr, world&) { return ex::schedule_from(std::move(sndr)); });
}

TEST(strict_moves, starts_on_completes_only_as_declared) {
    check_adapted(
        [](auto sndr, world& w) { return ex::starts_on(w.scheduler(), std::move(sndr)); });
    check_adapted([](auto sndr, world&) {
        return ex::starts_on(probes::refusing_scheduler(), std::move(sndr));
    });
}

TEST(strict_moves, on_completes_only_as_declared) {
    check_adapted([](auto sndr, world& w) { return ex::on(w.scheduler(), std::move(sndr)); });
    check([](world& w) {
        return ex::schedule(w.scheduler()) |
               ex::on(ex::inline_scheduler(), ex::then([]() noexcept { return 1; }));
    });
}

TEST(strict_moves, affine_completes_only_as_declared) {
    check_adapted([](auto sndr, world&) {
        return ex::affine(ex::write_env(
            std::move(sndr), ex::prop(coppice::get_stop_token, coppice::never_stop_token())));
    });
}

TEST(strict_moves, bulk_completes_only_as_declared) {
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) | ex::bulk(ex::par, 3, [](int, auto&...) {});
    });
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) | ex::bulk_chunked(ex::par, 3, [](auto...) noexcept {});
    });
    check_adapted([](auto sndr, world&) {
        return std::move(sndr) | ex::bulk_unchunked(ex::seq, 3, [](int, auto&...) { throw 1; });
    });
}

}  // namespace
