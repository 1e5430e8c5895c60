// `using namespace coppice::io` and `coppice::http` as well leave a program its own names.
#include <coppice/coppice.hpp>

#include <gtest/gtest.h>

using namespace coppice;
using namespace coppice::io;
using namespace coppice::http;

#include "sender_words.hpp"
#include "std_words.hpp"
#include "words.hpp"

namespace {

TEST(names_of_a_program, are_its_own_beside_io_and_http) {
    const std::tuple<common_words, std_words, sender_words> used{};
    static_cast<void>(used);
    static_cast<void>(response::text("x"));
    EXPECT_EQ(loopback(80).port(), 80);
}

}  // namespace
