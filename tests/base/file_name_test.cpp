// base/internal/file_name.hpp: file names for system calls.
#include <coppice/base/internal/file_name.hpp>

#include <gtest/gtest.h>

#include <string>
#include <system_error>

namespace {

using coppice::internal::whole_name;

TEST(whole_name, returns_the_name_unchanged) {
    for (const std::string& name : {std::string(), std::string("a"), std::string("/a b/c")}) {
        EXPECT_EQ(whole_name(name), name.c_str());
    }
}

TEST(whole_name, rejects_a_nul_anywhere_and_shows_what_precedes_it) {
    for (const std::size_t at : {0u, 1u, 5u}) {
        std::string name = "/file";
        name.insert(at, 1, '\0');
        try {
            (void)whole_name(name);
            ADD_FAILURE() << at;
        } catch (const std::system_error& e) {
            EXPECT_EQ(e.code(), std::errc::invalid_argument);
            EXPECT_TRUE(std::string(e.what()).starts_with(name.c_str())) << e.what();
        }
    }
}

}  // namespace
