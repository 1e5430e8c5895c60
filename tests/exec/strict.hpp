// Shared by the strict_* tests: a receiver that accepts exactly the declared completions.
#pragma once
// An algorithm that calls any other completion does not compile. Each sender is connected in two
// environments, by move and as a copy, is started, and must complete once. The same is repeated
// with a stop requested before the start.

#include <coppice/exec/connect.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/scope.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace strict {

namespace ex = coppice::execution;

// Deduces arguments as a call of a completion function does.
template <class Fn>
struct called;
template <class Tag, class... Args>
struct called<Tag(Args...)> {
    using type = Tag(Args&&...);
};
template <class Fn, class... Fns>
concept declared = (std::same_as<Fn, typename called<Fns>::type> || ...);

template <class Env, class... Fns>
class receiver {
public:
    using receiver_concept = ex::receiver_tag;
    receiver(probes::record& r, Env env) noexcept : record_(&r), env_(std::move(env)) {}
    template <class... Args>
        requires declared<ex::set_value_t(Args&&...), Fns...>
    void set_value(Args&&... args) && noexcept {
        record_->value(args...);
    }
    template <class Error>
        requires declared<ex::set_error_t(Error&&), Fns...>
    void set_error(Error&& error) && noexcept {
        record_->error(error);
    }
    void set_stopped() && noexcept
        requires declared<ex::set_stopped_t(), Fns...>
    {
        record_->stopped();
    }
    Env get_env() const noexcept { return env_; }

private:
    probes::record* record_;
    Env env_;
};
template <class Sigs, class Env>
struct receiver_of_set;
template <class... Fns, class Env>
struct receiver_of_set<ex::completion_signatures<Fns...>, Env> {
    using type = receiver<Env, Fns...>;
};
template <class Sndr, class Env>
using receiver_for = typename receiver_of_set<ex::completion_signatures_of_t<Sndr, Env>, Env>::type;

// What senders refer to. It outlives their operations.
struct world {
    ex::run_loop loop;
    coppice::inplace_stop_source source;
    ex::counting_scope scope;

    auto scheduler() noexcept { return loop.get_scheduler(); }
    // Runs what is scheduled until nothing is left.
    void run() {
        loop.finish();
        loop.run();
    }
    auto full_env() noexcept {
        return ex::env(ex::prop(coppice::get_stop_token, source.get_token()),
                       ex::prop(ex::get_scheduler, scheduler()),
                       ex::prop(ex::get_start_scheduler, scheduler()),
                       ex::prop(ex::get_delegation_scheduler, scheduler()),
                       ex::prop(coppice::get_allocator, std::allocator<std::byte>()));
    }
    ~world() {
        probes::record r;
        auto join = ex::connect(scope.join(), probes::receiver(r, full_env()));
        ex::start(join);
        loop.run();
        EXPECT_EQ(r.said(), "value()");
    }
};

// Connects a sender, starts it, and runs the loop. Returns how it completed.
template <class Sndr, class Env>
std::string run(world& w, Sndr&& sndr, Env env) {
    probes::record r;
    {
        auto op = ex::connect(static_cast<Sndr&&>(sndr), receiver_for<Sndr, Env>(r, env));
        ex::start(op);
        w.run();
    }
    return r.said();
}

// `said` is the required outcome; if empty, any single completion passes.
inline void judge(const std::string& outcome, const std::string& said) {
    EXPECT_EQ(outcome, said.empty() ? outcome : said);
    EXPECT_NE(outcome, "");
    EXPECT_EQ(outcome.find(" and "), std::string::npos) << outcome;
}

// make(world) returns the sender. It must complete as `said` in the full environment, by move and
// as a copy, stopped before or not; and in an empty environment, if it can be connected there.
template <class Make>
void check(Make make, const std::string& said = std::string()) {
    using Sndr = decltype(make(std::declval<world&>()));
    static_assert(ex::sender_in<Sndr, decltype(std::declval<world&>().full_env())>);
    for (const bool stop : {false, true}) {
        world w;
        if (stop) w.source.request_stop();
        judge(run(w, make(w), w.full_env()), stop ? std::string() : said);
    }
    if constexpr (std::copy_constructible<Sndr>) {
        world w;
        const auto kept = make(w);
        judge(run(w, kept, w.full_env()), said);
    }
    if constexpr (ex::sender_in<Sndr, ex::env<>>) {
        world w;
        judge(run(w, make(w), ex::env<>()), said);
    }
}

// Children to try one at a time: the senders of values, errors, and stops that matter.
template <class Check>
void each_simple_child(Check check_child) {
    check_child([](world&) { return ex::just(1); });
    check_child([](world&) { return ex::just_error(std::string("e")); });
    check_child([](world&) { return probes::at_once<ex::set_error_t(int)>(false); });
    check_child([](world&) { return probes::at_once<ex::set_stopped_t()>(false); });
}
// The children above, and those whose results may throw when stored or that send several values.
template <class Check>
void each_child(Check check_child) {
    each_simple_child(check_child);
    check_child([](world&) { return ex::just(probes::throwing_copy(1)); });
    check_child([](world&) { return probes::two_values(true); });
    check_child([](world& w) { return ex::schedule(w.scheduler()); });
}

}  // namespace strict
