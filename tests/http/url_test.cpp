// http/url.hpp: which URLs can be requested, and what a reference to another URL means.
#include <coppice/http/url.hpp>

#include "guarded_bytes.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace {

using namespace coppice;
using coppice::test::guarded_bytes;
using http::url;

bool parses(std::string_view text) {
    return url::parse(text).has_value();
}
std::string whole(std::string_view text) {
    return url(text).to_string();
}

TEST(url, gives_each_part_of_its_text) {
    const url u("http://example.com:8080/a/b;c?d=e&f#g");
    EXPECT_EQ(u.scheme(), "http");
    EXPECT_EQ(u.host(), "example.com");
    EXPECT_EQ(u.port(), 8080);
    EXPECT_EQ(u.authority(), "example.com:8080");
    EXPECT_EQ(u.path(), "/a/b;c");
    EXPECT_EQ(u.query(), "d=e&f");
    EXPECT_EQ(u.fragment(), "g");
    EXPECT_EQ(u.target(), "/a/b;c?d=e&f") << "a fragment is never sent";
    EXPECT_EQ(u.to_string(), "http://example.com:8080/a/b;c?d=e&f#g");
}

TEST(url, without_path_port_and_query_has_the_defaults) {
    const url u("http://a");
    EXPECT_EQ(u.port(), 80);
    EXPECT_EQ(u.authority(), "a");
    EXPECT_EQ(u.target(), "/");
    EXPECT_EQ(u.query(), "");
    EXPECT_EQ(u.fragment(), "");
    EXPECT_EQ(url("https://a").port(), 443);
    EXPECT_EQ(url("http://a?q").target(), "/?q");
    EXPECT_EQ(url("http://a#f").target(), "/");
    EXPECT_EQ(url("http://a/?").target(), "/?");
    EXPECT_EQ(url("http://a/#").fragment(), "");
}

TEST(url, equal_spellings_have_one_form) {
    EXPECT_EQ(whole("HTTP://Example.COM:80"), "http://example.com/");
    EXPECT_EQ(whole("http://a:0080/X"), "http://a/X");
    EXPECT_EQ(whole("http://a:/"), "http://a/");
    EXPECT_EQ(whole("https://a:80/"), "https://a:80/");
    EXPECT_EQ(whole("http://a:65535/"), "http://a:65535/");
    EXPECT_EQ(whole("http://a/../b/./%2e"), "http://a/../b/./%2e") << "resolve() removes them";
    EXPECT_EQ(url("HTTP://A:80"), url("http://a/"));
}

TEST(url, an_ipv6_address_has_brackets_only_in_the_authority) {
    const url u("http://[::1]:81/x");
    EXPECT_EQ(u.host(), "::1");
    EXPECT_EQ(u.port(), 81);
    EXPECT_EQ(u.authority(), "[::1]:81");
    EXPECT_EQ(url("http://[2001:DB8::7]").authority(), "[2001:db8::7]");
    for (const char* bad :
         {"http://[::1", "http://[]/", "http://::1/", "http://[127.0.0.1]/", "http://[::1]x/",
          "http://[::1%25eth0]/", "http://[v1.a]/", "http://[::1]]/", "http://[[::1]]/"}) {
        EXPECT_FALSE(parses(bad)) << bad;
    }
}

TEST(url, refuses_what_cannot_be_requested_over_http) {
    for (const char* bad :
         {"",           "a",          "/a",      "//a/",    "a/b",        "ftp://a/",
          "http:",      "http:a",     "http:/a", "http://", "http:///a",  "http://:80/",
          "mailto:a@b", "file:///a",  "ws://a/", "://a",    "1http://a/", "ht tp://a/",
          " http://a/", "http://a/ ", "http//a"}) {
        EXPECT_FALSE(parses(bad)) << bad;
    }
    for (const char* port : {"0", "00", "65536", "99999", "100000", "000080", "-1", "+1", "8 0",
                             "a", "80a", "80:80"}) {
        EXPECT_FALSE(parses("http://a:" + std::string(port) + "/")) << port;
    }
    for (const char* host :
         {"a b", "a%41", "%00", "a\\b", "a<b", "a\"b", "a|b", "a^b", "1.2.3", "127.1", "0x7f.1",
          "0x7f000001", "256.0.0.1", "1.2.3.4.", "a.1", "2130706433", "01.2.3.4"}) {
        EXPECT_FALSE(parses("http://" + std::string(host) + "/")) << host;
    }
    EXPECT_TRUE(parses("http://1.2.3.4/"));
    EXPECT_TRUE(parses("http://1a.2b/"));
    for (const char* bad : {"%", "%4", "%4g", "%zz", "a%", "%%41"}) {
        EXPECT_FALSE(parses("http://a/" + std::string(bad))) << bad;
        EXPECT_FALSE(parses("http://a/?" + std::string(bad))) << bad;
        EXPECT_FALSE(parses("http://a/#" + std::string(bad))) << bad;
    }
    EXPECT_FALSE(parses("http://a/[x]"));
    EXPECT_TRUE(parses("http://a/?[x]|{y}"));
    EXPECT_FALSE(parses("http://a/" + std::string(url::bytes_max, 'a')));
    EXPECT_TRUE(parses("http://a/" + std::string(url::bytes_max - 9, 'a')));
}

TEST(url, refuses_user_information_and_tells_what_to_do) {
    for (const char* bad : {"http://u@a/", "http://u:p@a/", "http://@a/", "http://a@b@c/"}) {
        EXPECT_FALSE(parses(bad)) << bad;
    }
    EXPECT_TRUE(parses("http://a/@b?c@d#e@f"));
    try {
        const url u("http://user:secret@a/");
        ADD_FAILURE() << u.to_string();
    } catch (const std::system_error& e) {
        EXPECT_EQ(e.code(), std::errc::invalid_argument);
        const std::string_view what = e.what();
        EXPECT_NE(what.find("Authorization"), what.npos) << what;
        EXPECT_EQ(what.find("secret"), what.npos) << what;
    }
}

TEST(url, has_no_byte_that_could_end_a_line_or_a_word) {
    for (const std::string_view part : {"http://a", "http://a/b", "http://a/?b", "http://a/#b"}) {
        for (int byte = 0; byte != 256; ++byte) {
            const bool refused = byte <= ' ' || byte >= 0x7f;
            if (!refused) continue;
            for (std::size_t at = 0; at <= part.size(); ++at) {
                std::string text(part);
                text.insert(at, 1, static_cast<char>(byte));
                EXPECT_FALSE(parses(text)) << part << ' ' << byte << " at " << at;
            }
        }
    }
}

TEST(url, reads_no_byte_beyond_its_text_and_each_prefix_is_decided) {
    guarded_bytes memory(4096);
    constexpr std::string_view full = "http://[::1]:8080/a/%41/../b?c=%42&d#e%43";
    for (std::size_t size = 0; size <= full.size(); ++size) {
        const std::string_view text = memory.place_view(full.substr(0, size));
        const auto parsed = url::parse(text);
        if (parsed) {
            EXPECT_EQ(whole(parsed.value().to_string()), parsed.value().to_string());
        }
        const auto resolved = url("http://x/y/z").resolve(text);
        if (resolved) {
            EXPECT_TRUE(parses(resolved.value().to_string()));
        }
    }
}

TEST(url, random_bytes_give_no_url_or_one_that_reads_back_as_itself) {
    guarded_bytes memory(4096);
    std::mt19937 random(7);
    constexpr std::string_view bytes =
        "htps:/ab.@[]%41?#&=;.0129\r\n \x80"
        "A-_~!|";
    const url base("http://a/b/c/d;p?q");
    for (int i = 0; i != 200'000; ++i) {
        std::string text = i % 2 == 0 ? "http://" : "";
        for (auto n = random() % 24; n != 0; --n) text.push_back(bytes[random() % bytes.size()]);
        const std::string_view placed = memory.place_view(text);
        const auto parsed = url::parse(placed);
        if (parsed) {
            ASSERT_EQ(whole(parsed.value().to_string()), parsed.value().to_string()) << text;
            ASSERT_FALSE(parsed.value().host().empty()) << text;
            ASSERT_TRUE(parsed.value().target().starts_with('/')) << text;
        }
        const auto resolved = base.resolve(placed);
        if (!resolved) continue;
        ASSERT_EQ(whole(resolved.value().to_string()), resolved.value().to_string()) << text;
        ASSERT_EQ(resolved.value().path().find("/../"), std::string_view::npos) << text;
        ASSERT_EQ(resolved.value().path().find("/./"), std::string_view::npos) << text;
    }
}

std::string resolved(std::string_view base, std::string_view reference) {
    const auto result = url(base).resolve(reference);
    return result ? result.value().to_string() : "none";
}

TEST(url, rfc3986_5_4_references_are_resolved_as_in_its_examples) {
    constexpr std::pair<const char*, const char*> examples[] = {
        // Section 5.4.1, normal references; "g:h" has a scheme that cannot be requested
        {"g:h", "none"},
        {"g", "http://a/b/c/g"},
        {"./g", "http://a/b/c/g"},
        {"g/", "http://a/b/c/g/"},
        {"/g", "http://a/g"},
        {"//g", "http://g/"},
        {"?y", "http://a/b/c/d;p?y"},
        {"g?y", "http://a/b/c/g?y"},
        {"#s", "http://a/b/c/d;p?q#s"},
        {"g#s", "http://a/b/c/g#s"},
        {"g?y#s", "http://a/b/c/g?y#s"},
        {";x", "http://a/b/c/;x"},
        {"g;x", "http://a/b/c/g;x"},
        {"g;x?y#s", "http://a/b/c/g;x?y#s"},
        {"", "http://a/b/c/d;p?q"},
        {".", "http://a/b/c/"},
        {"./", "http://a/b/c/"},
        {"..", "http://a/b/"},
        {"../", "http://a/b/"},
        {"../g", "http://a/b/g"},
        {"../..", "http://a/"},
        {"../../", "http://a/"},
        {"../../g", "http://a/g"},
        // Section 5.4.2, abnormal references
        {"../../../g", "http://a/g"},
        {"../../../../g", "http://a/g"},
        {"/./g", "http://a/g"},
        {"/../g", "http://a/g"},
        {"g.", "http://a/b/c/g."},
        {".g", "http://a/b/c/.g"},
        {"g..", "http://a/b/c/g.."},
        {"..g", "http://a/b/c/..g"},
        {"./../g", "http://a/b/g"},
        {"./g/.", "http://a/b/c/g/"},
        {"g/./h", "http://a/b/c/g/h"},
        {"g/../h", "http://a/b/c/h"},
        {"g;x=1/./y", "http://a/b/c/g;x=1/y"},
        {"g;x=1/../y", "http://a/b/c/y"},
        {"g?y/./x", "http://a/b/c/g?y/./x"},
        {"g?y/../x", "http://a/b/c/g?y/../x"},
        {"g#s/./x", "http://a/b/c/g#s/./x"},
        {"g#s/../x", "http://a/b/c/g#s/../x"},
        {"http:g", "none"},  // strict, and not a URL that can be requested
    };
    for (const auto& [reference, meant] : examples) {
        EXPECT_EQ(resolved("http://a/b/c/d;p?q", reference), meant) << reference;
    }
}

TEST(url, references_to_other_places_are_as_strict_as_urls) {
    EXPECT_EQ(resolved("http://a:81/b", "/c"), "http://a:81/c");
    EXPECT_EQ(resolved("http://a:81/b", "//c:82/d"), "http://c:82/d");
    EXPECT_EQ(resolved("http://a:81/b", "//c"), "http://c/");
    EXPECT_EQ(resolved("http://a/b", "HTTPS://C/../d/./e"), "https://c/d/e");
    EXPECT_EQ(resolved("http://[::1]:81/b", "c"), "http://[::1]:81/c");
    EXPECT_EQ(resolved("http://a", "b"), "http://a/b");
    EXPECT_EQ(resolved("http://a/b#c", ""), "http://a/b");
    for (const char* bad : {"//u@c/", "//", "///x", "javascript:alert(1)", "a b", "\r\nX: y",
                            "http://", "//c:0/", "%", "a:b"}) {
        EXPECT_EQ(resolved("http://a/b", bad), "none") << bad;
    }
    EXPECT_EQ(resolved("http://a/b", std::string(url::bytes_max + 1, 'a')), "none");
}

TEST(url, rfc3986_5_3_a_path_never_becomes_an_authority) {
    for (const char* none : {"http:/.//host/x", "http:/..//host/x", "http:/a/..//host/x",
                             "https:/.//host/x", "http:.//host/x", "http:?//host/x"}) {
        EXPECT_EQ(resolved("http://a/b", none), "none") << none;
    }
    for (const char* rooted : {"/.//host/x", "/..//host/x", "/a/..//host/x"}) {
        const auto got = url("http://a:81/b").resolve(rooted);
        ASSERT_TRUE(got) << rooted;
        EXPECT_EQ(got.value().to_string(), "http://a:81//host/x");
        EXPECT_EQ(got.value().host(), "a");
        EXPECT_EQ(got.value().path(), "//host/x");
        EXPECT_EQ(resolved(got.value().to_string(), "y"), "http://a:81//host/y");
        EXPECT_EQ(resolved(got.value().to_string(), "..//y"), "http://a:81///y");
    }
    EXPECT_EQ(resolved("http://a/b/c", ".//host/x"), "http://a/b//host/x");
}

TEST(url, origins_differ_by_scheme_host_and_port) {
    const url a("http://a:80/x");
    EXPECT_TRUE(a.same_origin(url("http://A/y?z")));
    EXPECT_FALSE(a.same_origin(url("https://a/x")));
    EXPECT_FALSE(a.same_origin(url("https://a:80/x")));
    EXPECT_FALSE(a.same_origin(url("http://a:81/x")));
    EXPECT_FALSE(a.same_origin(url("http://a.b/x")));
}

TEST(url, is_empty_after_a_move) {
    url a("http://host.example/a/long/path/that/is/not/short?q#f");
    const url b = std::move(a);
    EXPECT_EQ(b.host(), "host.example");
    EXPECT_EQ(a.host(), "");  // NOLINT: what is left is promised
    EXPECT_EQ(a.target(), "");
    EXPECT_EQ(a.query(), "");
    EXPECT_EQ(a.fragment(), "");
}

}  // namespace
