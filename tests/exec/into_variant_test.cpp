// Plan: into_variant sends a variant of tuples.
#include <coppice/exec/connect.hpp>
#include <coppice/exec/into_variant.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/exec/when_all.hpp>

#include "probes.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace {

namespace ex = coppice::execution;
using probes::outcome;
using probes::two_values;

TEST(exec_into_variant, sends_a_variant_of_tuples) {
    const auto index = [](auto v) { return static_cast<int>(v.index()); };
    EXPECT_EQ(outcome(ex::into_variant(two_values(true)) | ex::then(index)), "value(0)");
    EXPECT_EQ(outcome(two_values(false) | ex::into_variant() | ex::then(index)), "value(1)");
    using sndr = decltype(ex::into_variant(two_values(true)));
    using variant = std::variant<std::tuple<int>, std::tuple<std::string>>;
    using sigs = ex::completion_signatures_of_t<sndr, ex::env<>>;
    static_assert(std::is_same_v<sigs, ex::completion_signatures<ex::set_value_t(variant)>>);
    EXPECT_EQ(outcome(ex::into_variant(ex::just_error(1))), "error(1)");
    EXPECT_EQ(outcome(ex::into_variant(ex::just_stopped())), "stopped");
}

}  // namespace
