// Plan: algorithms with a state of their own, and loops, call no completion that they do not
// declare.
#include <coppice/exec/any_sender.hpp>
#include <coppice/exec/associate.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/repeat.hpp>
#include <coppice/exec/spawn_future.hpp>
#include <coppice/exec/split.hpp>
#include <coppice/exec/then.hpp>

#include "strict.hpp"

namespace {

namespace ex = coppice::execution;
using strict::check;
using strict::world;

TEST(strict_shared, split_completes_only_as_declared) {
    strict::each_child(
        [](auto child) { check([child](world& w) { return ex::split(child(w)); }); });
}

TEST(strict_shared, spawn_future_completes_only_as_declared) {
    strict::each_child([](auto child) {
        check([child](world& w) { return ex::spawn_future(child(w), w.scope.get_token()); });
    });
}

TEST(strict_shared, associate_and_join_complete_only_as_declared) {
    strict::each_child([](auto child) {
        check([child](world& w) { return ex::associate(child(w), w.scope.get_token()); });
    });
    check([](world& w) { return w.scope.join(); });
}

TEST(strict_shared, any_sender_completes_only_as_declared) {
    using any = ex::any_sender<ex::completion_signatures<
        ex::set_value_t(), ex::set_value_t(int), ex::set_value_t(std::string),
        ex::set_error_t(std::exception_ptr), ex::set_error_t(std::string), ex::set_error_t(int),
        ex::set_stopped_t()>>;
    strict::each_simple_child(
        [](auto child) { check([child](world& w) { return any(child(w)); }); });
    check([](world&) { return any(probes::two_values(true)); }, "value(1)");
    using values = ex::any_sender<ex::completion_signatures<ex::set_value_t(int)>>;
    check([](world&) { return values(ex::just(1)); }, "value(1)");
    using errors = ex::any_sender<ex::completion_signatures<ex::set_error_t(int)>>;
    check([](world&) { return errors(ex::just_error(1)); }, "error(1)");
}

TEST(strict_shared, repeat_until_completes_only_as_declared) {
    check([](world&) { return ex::just(true) | ex::repeat_until(); }, "value()");
    check([](world&) { return ex::just_error(1) | ex::repeat_until(); }, "error(1)");
    check([](world&) { return ex::just_stopped() | ex::repeat_until(); }, "stopped");
    check([](world&) {
        return ex::just() | ex::then([]() -> bool { throw 1; }) | ex::repeat_until();
    });
    check([](world&) { return probes::at_once<ex::set_error_t(int)>(true) | ex::repeat_until(); });
    check([](world&) { return probes::at_once<ex::set_stopped_t()>(false) | ex::repeat_until(); });
    check([](world& w) {
        return ex::schedule(w.scheduler()) | ex::then([]() noexcept { return true; }) |
               ex::repeat_until();
    });
    check([](world&) { return ex::just_error(probes::throwing_copy(1)) | ex::repeat_until(); });
}

TEST(strict_shared, retry_completes_only_as_declared) {
    check([](world&) { return ex::just() | ex::retry(); }, "value()");
    check([](world&) { return ex::just(1, std::string("two")) | ex::retry(); }, "value(1, two)");
    check([](world&) { return ex::just_stopped() | ex::retry(); }, "stopped");
    check([](world&) { return probes::at_once<ex::set_error_t(int)>(true) | ex::retry(); },
          "value(1)");
    check([](world&) { return probes::at_once<ex::set_stopped_t()>(false) | ex::retry(); });
    check([](world& w) { return ex::schedule(w.scheduler()) | ex::retry(); });
    check([](world&) { return ex::just(probes::throwing_copy(1)) | ex::retry(); }, "value(1)");
    check([](world&) { return probes::two_values(true) | ex::retry(); });
}

}  // namespace
