// Plan: an adaptor's function is asked only about the arguments of its own kind of completion
// [exec.then], [exec.let], [exec.bulk], whichever question about the sender is asked. A question to
// a lambda with `auto` parameters is a problem: to learn what it returns, the compiler instantiates
// its body.
#include <coppice/exec/affine.hpp>
#include <coppice/exec/bulk.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/let_async_scope.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/sync_wait.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <string>

namespace {

namespace ex = coppice::execution;
using V = ex::set_value_t;
using E = ex::set_error_t;
using S = ex::set_stopped_t;

// Sends a string, an exception, or a stop, as the test chooses.
struct any_ending {
    using sender_concept = ex::sender_tag;
    using completion_signatures =
        ex::completion_signatures<V(std::string), E(std::exception_ptr), S()>;
    enum class with { value, error, stopped } end;

    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        void start() noexcept {
            if (end == with::value) {
                ex::set_value(std::move(rcvr), std::string("abc"));
            } else if (end == with::error) {
                ex::set_error(std::move(rcvr), std::make_exception_ptr(7));
            } else {
                ex::set_stopped(std::move(rcvr));
            }
        }
        with end;
        Rcvr rcvr;
    };
    template <class Rcvr>
    operation<Rcvr> connect(Rcvr rcvr) const {
        return {end, std::move(rcvr)};
    }
};
constexpr any_ending sends_value{any_ending::with::value};
constexpr any_ending sends_error{any_ending::with::error};
constexpr any_ending sends_stopped{any_ending::with::stopped};

// Asks a sender's attributes everything that algorithms ask before they connect.
template <class Sndr, class... Env>
void ask_where(const Sndr&, const Env&... env) {
    using Attrs = ex::env_of_t<const Sndr&>;
    (void)
        requires(const Attrs& a)
    {
        ex::get_completion_scheduler<V>(a, env...);
    };
    (void)
        requires(const Attrs& a)
    {
        ex::get_completion_scheduler<E>(a, env...);
    };
    (void)
        requires(const Attrs& a)
    {
        ex::get_completion_scheduler<S>(a, env...);
    };
    (void)
        requires(const Attrs& a)
    {
        ex::get_completion_domain<V>(a, env...);
    };
    (void)
        requires(const Attrs& a)
    {
        ex::get_completion_domain<E>(a, env...);
    };
    (void)
        requires(const Attrs& a)
    {
        ex::get_completion_domain<S>(a, env...);
    };
    (void)
        requires(const Attrs& a)
    {
        ex::get_completion_domain<>(a, env...);
    };
}

// Returns the outcome of the sender under affine, which asks where each kind of completion arrives.
template <class Sndr>
std::string ends(Sndr sndr) {
    ask_where(sndr);
    ask_where(sndr, ex::env<>());
    probes::by_hand_context home;
    const auto env = ex::prop(ex::get_start_scheduler, home.get_scheduler());
    probes::record r;
    auto op = ex::connect(ex::affine(std::move(sndr)), probes::receiver(r, env));
    ex::start(op);
    while (home.size() != 0) home.run_one();
    return r.said();
}

const auto length = [](auto&& s) { return s.size(); };
const auto rethrow = [](auto e) {
    std::rethrow_exception(e);
    return std::string();
};

TEST(exec_own_channel, then_and_upon_take_generic_functions) {
    EXPECT_EQ(ends(sends_value | ex::then(length)), "value(3)");
    EXPECT_EQ(ends(sends_error | ex::then(length)), "error(exception 7)");
    EXPECT_EQ(ends(sends_stopped | ex::then(length)), "stopped");
    EXPECT_EQ(ends(sends_value | ex::upon_error(rethrow)), "value(abc)");
    EXPECT_EQ(ends(sends_error | ex::upon_error(rethrow)), "error(exception 7)");
    const auto only_stops = [](auto... none) {
        static_assert(sizeof...(none) == 0);
        return std::string("none");
    };
    EXPECT_EQ(ends(sends_error | ex::upon_stopped(only_stops)), "error(exception 7)");
    EXPECT_EQ(ends(sends_stopped | ex::upon_stopped(only_stops)), "value(none)");
}

TEST(exec_own_channel, let_adaptors_take_generic_functions) {
    const auto just_length = [](auto& s) { return ex::just(s.size()); };
    const auto just_rethrow = [](auto& e) {
        std::rethrow_exception(e);
        return ex::just(std::string());
    };
    const auto only_stops = [](auto... none) {
        static_assert(sizeof...(none) == 0);
        return ex::just(std::string("none"));
    };
    EXPECT_EQ(ends(sends_value | ex::let_value(just_length)), "value(3)");
    EXPECT_EQ(ends(sends_error | ex::let_value(just_length)), "error(exception 7)");
    EXPECT_EQ(ends(sends_value | ex::let_error(just_rethrow)), "value(abc)");
    EXPECT_EQ(ends(sends_error | ex::let_error(just_rethrow)), "error(exception 7)");
    EXPECT_EQ(ends(sends_stopped | ex::let_stopped(only_stops)), "value(none)");
    const auto body = [](auto, auto& s) { return ex::just(s.size()); };
    EXPECT_EQ(ends(sends_value | ex::let_async_scope(body)), "value(3)");
    EXPECT_EQ(ends(sends_error | ex::let_async_scope(body)), "error(exception 7)");
}

TEST(exec_own_channel, bulk_takes_generic_functions) {
    const auto each = [](auto i, auto& s) { s[static_cast<std::size_t>(i)] = 'x'; };
    const auto range = [](auto first, auto last, auto& s) {
        for (; first < last; ++first) s[static_cast<std::size_t>(first)] = 'x';
    };
    EXPECT_EQ(ends(sends_value | ex::bulk(ex::seq, 2, each)), "value(xxc)");
    EXPECT_EQ(ends(sends_error | ex::bulk(ex::seq, 2, each)), "error(exception 7)");
    EXPECT_EQ(ends(sends_value | ex::bulk_unchunked(ex::seq, 2, each)), "value(xxc)");
    EXPECT_EQ(ends(sends_value | ex::bulk_chunked(ex::seq, 2, range)), "value(xxc)");
}

TEST(exec_own_channel, chains_and_joins_of_generic_functions_compile) {
    auto chain = sends_value | ex::upon_error(rethrow) | ex::then(length);
    EXPECT_EQ(ends(chain), "value(3)");
    EXPECT_EQ(ends(ex::when_all(sends_value | ex::then(length), chain)), "value(3, 3)");
    EXPECT_EQ(ends(sends_stopped | ex::then(length) | ex::stopped_as_error(8)), "error(8)");
    EXPECT_EQ(ends(sends_value | ex::then(length) | ex::stopped_as_optional() |
                   ex::then([](auto o) { return *o; })),
              "value(3)");
}

}  // namespace
