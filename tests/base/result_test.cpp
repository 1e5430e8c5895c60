// base/internal/result.hpp: a value, or the reason why there is none.
#include <coppice/base/internal/result.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace {

using coppice::internal::result;

TEST(result, holds_a_value) {
    result<std::string> r = std::string("coppice");
    ASSERT_TRUE(r);
    EXPECT_TRUE(r.has_value());
    EXPECT_FALSE(r.error());
    EXPECT_EQ(*r, "coppice");
    EXPECT_EQ(r->size(), 7u);
    EXPECT_EQ(std::move(r).value_or_throw("reading"), "coppice");
}

TEST(result, holds_an_error) {
    const result<int> r = std::errc::timed_out;
    EXPECT_FALSE(r);
    EXPECT_EQ(r.error(), std::make_error_code(std::errc::timed_out));
}

TEST(result, moves_a_value_that_cannot_be_copied) {
    result<std::unique_ptr<int>> r = std::make_unique<int>(5);
    const std::unique_ptr<int> taken = *std::move(r);
    EXPECT_EQ(*taken, 5);
}

TEST(result, keeps_the_errors_category_and_number) {
    const result<int> r = std::error_code(ENOENT, std::system_category());
    EXPECT_EQ(r.error().value(), ENOENT);
}

TEST(result, value_or_throw_names_what_failed) {
    try {
        result<int>(std::errc::connection_refused).value_or_throw("connecting");
        FAIL() << "nothing was thrown";
    } catch (const std::system_error& error) {
        EXPECT_EQ(error.code(), std::errc::connection_refused);
        EXPECT_EQ(std::string(error.what()).rfind("connecting", 0), 0u);
    }
}

TEST(result_of_void, is_success_or_an_error) {
    const result<void> good;
    const result<void> bad = std::errc::broken_pipe;
    EXPECT_TRUE(good);
    good.value_or_throw("writing");
    EXPECT_FALSE(bad);
    EXPECT_EQ(bad.error(), std::errc::broken_pipe);
    EXPECT_THROW(bad.value_or_throw("writing"), std::system_error);
}

TEST(result_death, the_value_of_an_error_stops_the_process) {
    result<int> r = std::errc::timed_out;
    EXPECT_DEATH((void)r.value(), "result::value\\(\\) of an error");
}

}  // namespace
