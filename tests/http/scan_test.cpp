// http/internal/scan.hpp: every scan stops at the first byte outside its class, wherever that lies
// in the words it reads, and never reads beyond the end.
#include <coppice/http/internal/scan.hpp>

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "guarded_bytes.hpp"

#include "../../src/http/vector_scan.hpp"

namespace {

using namespace coppice;

struct scan {
    const char* name;
    const char* (*find)(const char* p, const char* end);
    bool (*belongs)(int byte);
    char member = 'a';
};

bool one_of(const char* bytes, int byte) {
    return byte != 0 && std::strchr(bytes, byte) != nullptr;
}
bool alphanumeric(int byte) {
    return byte < 128 && std::isalnum(byte) != 0;
}
bool in_host(int byte) {
    return alphanumeric(byte) || one_of("-._~!$&'()*+,;=", byte);
}
bool in_path(int byte) {
    return in_host(byte) || one_of(":@/", byte);
}

// The classes again, written from the RFCs' text.
const scan scans[] = {
    {"token", http::internal::scalar_scan::token,
     [](int b) { return alphanumeric(b) || one_of("!#$%&'*+-.^_`|~", b); }},
    {"path", http::internal::scalar_scan::path, in_path},
    {"query", http::internal::scalar_scan::query,
     [](int b) { return in_path(b) || one_of("?[]{}|\\^`", b); }},
    {"host", http::internal::scalar_scan::host, in_host},
    {"value", http::internal::scalar_scan::value,
     [](int b) { return b == '\t' || (b >= 32 && b != 127); }},
    {"digits", http::internal::scalar_scan::digits, [](int b) { return b >= '0' && b <= '9'; },
     '7'},
};

TEST(scan, stops_at_every_byte_outside_its_class_at_every_offset) {
    test::guarded_bytes memory(256);
    for (const scan& s : scans) {
        for (std::size_t size = 0; size <= 40; ++size) {
            const std::string_view all = memory.place_view(std::string(size, s.member));
            ASSERT_EQ(s.find(all.data(), all.data() + size), all.data() + size) << s.name;
        }
        for (int byte = 0; byte < 256; ++byte) {
            for (std::size_t at = 0; at < 34; ++at) {
                std::string text(34, s.member);
                text[at] = static_cast<char>(byte);
                const std::string_view flush = memory.place_view(text);
                const char* const end = flush.data() + flush.size();
                const char* const expected = s.belongs(byte) ? end : flush.data() + at;
                ASSERT_EQ(s.find(flush.data(), end), expected)
                    << s.name << " byte " << byte << " at " << at;
            }
        }
    }
}

// The search of eight bytes at once may borrow from one byte into the next.
TEST(scan, no_two_adjacent_bytes_hide_or_invent_a_stop) {
    test::guarded_bytes memory(64);
    const int interesting[] = {0, 1, 8, 9, 10, 13, 31, 32, 33, 126, 127, 128, 159, 160, 254, 255};
    for (const scan& s : scans) {
        for (const int first : interesting) {
            for (const int second : interesting) {
                for (std::size_t at = 0; at < 9; ++at) {
                    std::string text(16, s.member);
                    text[at] = static_cast<char>(first);
                    text[at + 1] = static_cast<char>(second);
                    const std::size_t expected = !s.belongs(first)    ? at
                                                 : !s.belongs(second) ? at + 1
                                                                      : text.size();
                    const std::string_view flush = memory.place_view(text);
                    ASSERT_EQ(s.find(flush.data(), flush.data() + 16) - flush.data(),
                              static_cast<std::ptrdiff_t>(expected))
                        << s.name << " " << first << " " << second << " at " << at;
                }
            }
        }
    }
}

#if defined(__x86_64__)
// Any class, anywhere, in any order, with one object: some scans keep what they have classified.
template <class Scan>
void agrees_with_the_scalar_scans(const char* name) {
    test::guarded_bytes memory(256);
    std::mt19937 random(7);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
    constexpr std::string_view common = "abcxyz0189:/?%-._~ \t\r\n\"\\\x7f\x80\xff";
    for (int round = 0; round != 4000; ++round) {
        std::string text(below(200), 'a');
        for (std::size_t n = below(12); n != 0 && !text.empty(); --n) {
            text[below(text.size())] = common[below(common.size())];
        }
        const std::string_view all = memory.place_view(text);
        Scan vector;
        http::internal::scalar_scan scalar;
        for (int call = 0; call != 8; ++call) {
            const char* const from = all.data() + below(all.size() + 1);
            const char* const end =
                from + below(static_cast<std::size_t>(all.data() + all.size() - from + 1));
            const auto both = [&](auto find) {
                ASSERT_EQ(find(vector) - from, find(scalar) - from)
                    << name << " " << testing::PrintToString(text) << " from " << from - all.data()
                    << " to " << end - all.data();
            };
            both([&](auto& s) { return s.token(from, end); });
            both([&](auto& s) { return s.path(from, end); });
            both([&](auto& s) { return s.query(from, end); });
            both([&](auto& s) { return s.host(from, end); });
            both([&](auto& s) { return s.value(from, end); });
            both([&](auto& s) { return s.digits(from, end); });
        }
    }
}

TEST(scan, vectors_find_what_the_scalar_scans_find) {
    if (__builtin_cpu_supports("sse4.2")) agrees_with_the_scalar_scans<http::sse_scan>("sse4.2");
    if (__builtin_cpu_supports("avx2")) agrees_with_the_scalar_scans<http::avx2_scan>("avx2");
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi")) {
        agrees_with_the_scalar_scans<http::avx512_scan>("avx512");
    }
}
#endif

TEST(scan, case_is_ignored_only_for_ascii_letters) {
    EXPECT_TRUE(http::internal::equals_ignoring_case("Content-Length", "cONTENT-lENGTH"));
    EXPECT_FALSE(http::internal::equals_ignoring_case("a", "ab"));
    for (int a = 0; a < 256; ++a) {
        for (int b = 0; b < 256; ++b) {
            const char one[] = {static_cast<char>(a)};
            const char two[] = {static_cast<char>(b)};
            const bool letters =
                alphanumeric(a) && alphanumeric(b) && std::tolower(a) == std::tolower(b);
            ASSERT_EQ(http::internal::equals_ignoring_case({one, 1}, {two, 1}), a == b || letters)
                << a << " " << b;
        }
    }
}

TEST(scan, lists_are_visited_member_by_member_empty_ones_included) {
    const auto members = [](std::string_view list) {
        std::vector<std::string> all;
        EXPECT_TRUE(http::internal::for_each_member(list, [&](std::string_view member) {
            all.emplace_back(member);
            return true;
        }));
        return all;
    };
    using texts = std::vector<std::string>;
    EXPECT_EQ(members(""), (texts{""}));
    EXPECT_EQ(members("a"), (texts{"a"}));
    EXPECT_EQ(members(" a ,\tb c\t,, d,"), (texts{"a", "b c", "", "d", ""}));
    int visited = 0;
    EXPECT_FALSE(
        http::internal::for_each_member("a,b,c", [&](std::string_view) { return ++visited < 2; }));
    EXPECT_EQ(visited, 2);
}

}  // namespace
