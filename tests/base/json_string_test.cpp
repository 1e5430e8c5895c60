// base/internal/json_string.hpp: texts as JSON strings, whatever their bytes are.
#include <coppice/base/internal/json_string.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

namespace {

using coppice::internal::json_string;
using namespace std::string_view_literals;

TEST(json_string, escapes_quotes_backslashes_and_control_characters) {
    EXPECT_EQ(json_string(""), "\"\"");
    EXPECT_EQ(json_string("a \"b\" \\ /"), R"("a \"b\" \\ /")");
    EXPECT_EQ(json_string("\0\n\x1f\x7f"sv), "\"\\u0000\\u000a\\u001f\\u007f\"");
}

TEST(json_string, escapes_each_character_that_a_program_may_take_for_the_end_of_a_line) {
    for (unsigned code = 0x80; code != 0xa0; ++code) {
        const char bytes[] = {'\xc2', static_cast<char>(code)};
        std::array<char, 9> escaped;
        std::snprintf(escaped.data(), escaped.size(), "\"\\u%04x\"", code);
        EXPECT_EQ(json_string({bytes, 2}), escaped.data());
    }
    EXPECT_EQ(json_string("a\u2028b\u2029c"), R"("a\u2028b\u2029c")");
    constexpr std::string_view neighbors = "\u00a0\u2027\u202a\xc2\x85";
    EXPECT_EQ(json_string(neighbors), "\"\u00a0\u2027\u202a\\u0085\"");
}

TEST(json_string, keeps_utf_8_and_replaces_each_byte_that_is_none) {
    constexpr std::string_view kept = "\u00e9 \u20ac \U0001F600 \U0010FFFF";
    EXPECT_EQ(json_string(kept), "\"" + std::string(kept) + "\"");
    const std::string_view others[] = {"\x80", "\xc0\xaf", "\xe0\x80", "\xed\xa0", "\xf5", "\xff"};
    for (const std::string_view text : others) {
        std::string replaced = "\"";
        for (std::size_t i = 0; i != text.size(); ++i) replaced += "\\ufffd";
        EXPECT_EQ(json_string(text), replaced + "\"");
    }
    // A character that is cut off by the end, and one by another character.
    EXPECT_EQ(json_string("\xe2\x82"), R"("\ufffd\ufffd")");
    EXPECT_EQ(json_string("\xe2(\xa1"), R"("\ufffd(\ufffd")");
}

}  // namespace
