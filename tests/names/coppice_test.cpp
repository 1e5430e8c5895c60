// `using namespace coppice` leaves a program its own names.
#include <coppice/coppice.hpp>

#include <gtest/gtest.h>

#include <ctime>

using namespace coppice;

#include "net_words.hpp"
#include "sender_words.hpp"
#include "std_words.hpp"
#include "words.hpp"

namespace {

// Functions and variables of a program's own, beside the types of the words.
int own_release = 1;
int relax(int release) {
    return release + own_release;
}

TEST(names_of_a_program, are_its_own_beside_all_of_coppice) {
    EXPECT_GE(std::tuple_size_v<common_words>, 150u);
    const std::tuple<common_words, std_words, net_words, sender_words> used{};
    static_cast<void>(used);
    int acquire = 1;  // hides the struct, as in any program
    EXPECT_EQ(relax(acquire), 2);
}

TEST(names_of_a_program, are_the_systems_where_it_has_them) {
    EXPECT_GE(clock(), 0);
    EXPECT_GT(time(nullptr), 0);
}

}  // namespace
