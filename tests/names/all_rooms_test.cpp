// A program that opens coppice, execution, http, and io keeps the names that no room promises.
#include <coppice/coppice.hpp>

#include <gtest/gtest.h>

using namespace coppice;
using namespace coppice::execution;
using namespace coppice::http;
using namespace coppice::io;

#include "std_words.hpp"
#include "words.hpp"

namespace {

TEST(names_of_a_program, are_its_own_beside_all_open_rooms) {
    EXPECT_GE(std::tuple_size_v<common_words>, 250u);
    const std::tuple<common_words, std_words> used{};
    static_cast<void>(used);
}

}  // namespace
