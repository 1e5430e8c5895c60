// Plan: starts_on [exec.starts.on]: where the child runs and what it sees.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/then.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

namespace {

namespace ex = coppice::execution;
using probes::by_hand_context;

struct refuses {
    using sender_concept = ex::sender_tag;
    using completion_signatures =
        ex::completion_signatures<ex::set_value_t(), ex::set_error_t(std::string)>;
    refuses() noexcept = default;
    template <class Rcvr>
    struct operation {
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr r) noexcept : rcvr(std::move(r)) {}
        void start() & noexcept { ex::set_error(std::move(rcvr), std::string("full")); }
        Rcvr rcvr;
    };
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(std::move(rcvr));
    }
};
class refusing_scheduler {
public:
    using scheduler_concept = ex::scheduler_tag;
    refusing_scheduler() noexcept = default;
    refuses schedule() const noexcept { return {}; }
    bool operator==(const refusing_scheduler&) const noexcept { return true; }
};

TEST(exec_starts_on, starts_the_child_on_the_scheduler_and_tells_it) {
    by_hand_context context;
    probes::record r;
    auto op =
        ex::connect(ex::starts_on(context.get_scheduler(), ex::read_env(ex::get_start_scheduler)) |
                        ex::then([&](auto sch) { return sch == context.get_scheduler(); }),
                    probes::receiver<>(r));
    ex::start(op);
    EXPECT_EQ(r.said(), "");
    context.run_one();
    EXPECT_EQ(r.said(), "value(true)");
}

TEST(exec_starts_on, completes_where_its_child_does) {
    by_hand_context context;
    const auto sndr = ex::starts_on(context.get_scheduler(), ex::just());
    EXPECT_EQ(ex::get_completion_scheduler<ex::set_value_t>(ex::get_env(sndr), ex::env<>()),
              context.get_scheduler());
}

}  // namespace
