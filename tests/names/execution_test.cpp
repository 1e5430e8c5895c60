// `using namespace coppice::execution` as well leaves a program its own names.
#include <coppice/coppice.hpp>

#include <gtest/gtest.h>

using namespace coppice;
using namespace coppice::execution;

#include "net_words.hpp"
#include "std_words.hpp"
#include "words.hpp"

namespace {

TEST(names_of_a_program, are_its_own_beside_execution) {
    const std::tuple<common_words, std_words, net_words> used{};
    static_cast<void>(used);
    const auto [one] =
        coppice::this_thread::sync_wait(just(1) | then([](int i) { return i; })).value();
    EXPECT_EQ(one, 1);
}

}  // namespace
