// base/version.hpp: the same version in all its forms.
#include <coppice/version.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

TEST(version, the_macros_match_the_version_of_the_build) {
    EXPECT_EQ(std::to_string(COPPICE_VERSION_MAJOR) + "." + std::to_string(COPPICE_VERSION_MINOR) +
                  "." + std::to_string(COPPICE_VERSION_PATCH),
              COPPICE_TEST_VERSION);
    EXPECT_EQ(COPPICE_VERSION / 10'000, COPPICE_VERSION_MAJOR);
    EXPECT_EQ(COPPICE_VERSION / 100 % 100, COPPICE_VERSION_MINOR);
    EXPECT_EQ(COPPICE_VERSION % 100, COPPICE_VERSION_PATCH);
}

TEST(version, headers_and_library_have_the_same_version) {
    const coppice::version linked = coppice::library_version();
    EXPECT_EQ(linked.major_number, coppice::header_version.major_number);
    EXPECT_EQ(linked.minor_number, coppice::header_version.minor_number);
    EXPECT_EQ(linked.patch_number, coppice::header_version.patch_number);
}

#if COPPICE_VERSION < 100
#error "a preprocessor compares versions"
#endif

}  // namespace
