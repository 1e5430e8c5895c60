// http/router.hpp: which route a path gets, and which paths get none.
#include <coppice/http/router.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "allocations.hpp"

namespace {

using namespace coppice;
using http::method;
using http::internal::match_status;
using table = http::internal::route_table<std::string>;

// GET routes whose handlers are their own patterns.
table routes(std::initializer_list<const char*> patterns) {
    table t;
    for (const char* const pattern : patterns) t.add(method::get, pattern, pattern);
    return t;
}

// Returns "pattern name=value ...", or the status.
std::string answer(const table& t, std::string_view path, method verb = method::get) {
    const auto match = t.match(verb, path);
    switch (match.status) {
        case match_status::not_found:
            return "not found";
        case match_status::bad_path:
            return "bad path";
        case match_status::method_not_allowed:
            return "allow " + match.allowed.to_string();
        case match_status::found:
            break;
    }
    std::string text = *match.handler;
    for (const auto& [name, raw] : match.parameters) {
        text.append(" ").append(name).append("=").append(raw);
    }
    return text;
}

TEST(router, literals_match_whole_segments) {
    const table t = routes({"/", "/a", "/a/b", "/a/", "/ab"});
    for (const char* const path : {"/", "/a", "/a/b", "/a/", "/ab"})
        EXPECT_EQ(answer(t, path), path);
    for (const char* const path : {"/b", "/A", "/a/b/", "/a//b", "//a", "//", "/abc", "/a/bc", "",
                                   "a", "*", "/a/b/c", "/a?"}) {
        EXPECT_EQ(answer(t, path), "not found") << path;
    }
}

// So many that their hashes collide and the table of whole paths grows. The results are those of
// the segments, whether a path is a whole pattern or not.
TEST(router, many_literals_are_told_apart) {
    table t;
    std::vector<std::string> paths;
    for (int i = 0; i != 200; ++i) {
        // Paths with the same length and ends; and short ones.
        const std::string number = std::to_string(1000 + i);
        paths.push_back("/items/number/" + number + "/details");
        paths.push_back("/" + std::to_string(i));
    }
    for (const std::string& path : paths) t.add(method::get, path, path);
    for (const std::string& path : paths) t.add(method::post, path, "post " + path);
    for (const std::string& path : paths) {
        EXPECT_EQ(answer(t, path), path);
        EXPECT_EQ(answer(t, path, method::head), path);
        EXPECT_EQ(answer(t, path, method::post), "post " + path);
        EXPECT_EQ(answer(t, path, method::del), "allow GET, HEAD, POST");
        EXPECT_EQ(answer(t, path + "/"), "not found");
    }
    EXPECT_EQ(answer(t, "/items/number/1200/details"), "not found");
    EXPECT_EQ(answer(t, "/%31"), "/1");
}

TEST(router, a_parameter_is_one_segment_that_is_not_empty) {
    const table t = routes({"/users/{name}", "/users/{name}/posts/{post}"});
    EXPECT_EQ(answer(t, "/users/x"), "/users/{name} name=x");
    EXPECT_EQ(answer(t, "/users/a%20b"), "/users/{name} name=a%20b") << "decoded on access only";
    EXPECT_EQ(answer(t, "/users/a/posts/b"), "/users/{name}/posts/{post} name=a post=b");
    for (const char* const path :
         {"/users/", "/users", "/users/a/", "/users//posts/b", "/users/a/posts/"}) {
        EXPECT_EQ(answer(t, path), "not found") << path;
    }
}

TEST(router, an_int_is_a_decimal_number_of_64_bits) {
    const table t = routes({"/{id:int}"});
    for (const char* const good :
         {"0", "42", "-7", "007", "9223372036854775807", "-9223372036854775808"}) {
        EXPECT_EQ(answer(t, "/" + std::string(good)), "/{id:int} id=" + std::string(good));
    }
    for (const char* const bad :
         {"", "x", "4x", "+4", "-", "4.0", "0x4", "9223372036854775808", "%34"}) {
        EXPECT_EQ(answer(t, "/" + std::string(bad)), "not found") << bad;
    }
}

TEST(router, a_rest_takes_all_that_follows_its_slash) {
    const table t = routes({"/static/{path...}"});
    EXPECT_EQ(answer(t, "/static/"), "/static/{path...} path=");
    EXPECT_EQ(answer(t, "/static/a"), "/static/{path...} path=a");
    EXPECT_EQ(answer(t, "/static/a/b//c/"), "/static/{path...} path=a/b//c/");
    EXPECT_EQ(answer(t, "/static"), "not found");
    EXPECT_EQ(answer(routes({"/{all...}"}), "/"), "/{all...} all=");
}

TEST(router, literal_wins_over_int_over_plain_over_rest) {
    const table t = routes({"/x/{rest...}", "/x/{name}", "/x/{id:int}", "/x/5"});
    EXPECT_EQ(answer(t, "/x/5"), "/x/5");
    EXPECT_EQ(answer(t, "/x/6"), "/x/{id:int} id=6");
    EXPECT_EQ(answer(t, "/x/y"), "/x/{name} name=y");
    EXPECT_EQ(answer(t, "/x/y/z"), "/x/{rest...} rest=y/z");
    EXPECT_EQ(answer(t, "/x/"), "/x/{rest...} rest=");
}

TEST(router, a_better_segment_without_a_match_further_right_is_passed_over) {
    const table t = routes({"/{a}/c", "/b/d", "/b/{id:int}/e", "/b/{n}/f", "/{rest...}"});
    EXPECT_EQ(answer(t, "/b/c"), "/{a}/c a=b");
    EXPECT_EQ(answer(t, "/b/d"), "/b/d");
    EXPECT_EQ(answer(t, "/b/1/e"), "/b/{id:int}/e id=1");
    EXPECT_EQ(answer(t, "/b/1/f"), "/b/{n}/f n=1");
    EXPECT_EQ(answer(t, "/b/1/g"), "/{rest...} rest=b/1/g") << "with no parameter left over";
}

TEST(router, the_order_of_registration_does_not_matter) {
    std::vector<const char*> patterns = {"/a/{x}", "/a/b", "/a/{x:int}", "/{x...}"};
    std::sort(patterns.begin(), patterns.end());
    do {
        table t;
        for (const char* const pattern : patterns) t.add(method::get, pattern, pattern);
        EXPECT_EQ(answer(t, "/a/b"), "/a/b");
        EXPECT_EQ(answer(t, "/a/1"), "/a/{x:int} x=1");
        EXPECT_EQ(answer(t, "/a/c"), "/a/{x} x=c");
        EXPECT_EQ(answer(t, "/a/c/d"), "/{x...} x=a/c/d");
    } while (std::next_permutation(patterns.begin(), patterns.end()));
}

// RFC 9110 section 15.5.6
TEST(router, a_path_without_the_method_lists_those_it_has) {
    table t;
    t.add(method::get, "/a", "get");
    t.add(method::post, "/a", "post");
    t.add(method::put, "/b", "put");
    EXPECT_EQ(answer(t, "/a", method::put), "allow GET, HEAD, POST");
    EXPECT_EQ(answer(t, "/a", method::other), "allow GET, HEAD, POST");
    EXPECT_EQ(answer(t, "/b", method::head), "allow PUT");
    EXPECT_EQ(answer(t, "/c", method::get), "not found");
}

// RFC 9110 section 9.3.2
TEST(router, the_handler_of_get_answers_head_unless_it_has_its_own) {
    table t;
    t.add(method::get, "/a", "get");
    t.add(method::get, "/b", "get");
    t.add(method::head, "/b", "head");
    EXPECT_EQ(answer(t, "/a", method::head), "get");
    EXPECT_EQ(answer(t, "/b", method::head), "head");
    EXPECT_EQ(answer(t, "/b", method::get), "get");
}

TEST(router, any_answers_methods_without_their_own_handler) {
    table t;
    t.add_any("/a", "any");
    t.add(method::get, "/a", "get");
    EXPECT_EQ(answer(t, "/a", method::get), "get");
    EXPECT_EQ(answer(t, "/a", method::head), "get");
    EXPECT_EQ(answer(t, "/a", method::trace), "any");
    EXPECT_EQ(answer(t, "/a", method::other), "any");
}

TEST(router, a_pattern_without_the_method_is_passed_over_and_allow_lists_all_methods) {
    table t;
    t.add(method::post, "/users/me", "me");
    t.add(method::get, "/users/{name}", "user");
    t.add(method::del, "/{rest...}", "delete");
    EXPECT_EQ(answer(t, "/users/me", method::post), "me");
    EXPECT_EQ(answer(t, "/users/me", method::get), "user name=me");
    EXPECT_EQ(answer(t, "/users/me", method::del), "delete rest=users/me");
    EXPECT_EQ(answer(t, "/users/me", method::put), "allow GET, HEAD, POST, DELETE");

    table rest;
    rest.add(method::post, "/a/{rest...}", "post");
    rest.add(method::get, "/{x}/{y}", "get");
    EXPECT_EQ(answer(rest, "/a/b"), "get x=a y=b") << "with no parameter left over";
}

// RFC 9110 section 4.2.3: an escaped unreserved character is the same as the character
TEST(router, escaped_segments_match_their_literals) {
    const table t = routes({"/users/all", "/caf\xc3\xa9", "/a b", "/{x}/y"});
    EXPECT_EQ(answer(t, "/us%65rs/%61%6c%6C"), "/users/all");
    EXPECT_EQ(answer(t, "/caf%C3%A9"), "/caf\xc3\xa9");
    EXPECT_EQ(answer(t, "/a%20b"), "/a b");
    EXPECT_EQ(answer(t, "/users%2fall"), "not found") << "an escaped slash separates nothing";
    EXPECT_EQ(answer(t, "/users%2fall/%79"), "/{x}/y x=users%2fall");
    const std::string longest(254, 'x');
    EXPECT_EQ(answer(routes({("/A" + longest).c_str()}), "/%41" + longest), "/A" + longest);
    EXPECT_EQ(answer(t, "/" + std::string(300 * 3, 'x') + "%41"), "not found");
}

TEST(router, dot_segments_in_any_spelling_are_bad_paths) {
    const table t = routes({"/", "/a", "/{name}", "/static/{path...}", "/{x}/{y}"});
    for (const char* const path : {"/.",
                                   "/..",
                                   "/a/..",
                                   "/a/.",
                                   "/./a",
                                   "/../a",
                                   "/a/../b",
                                   "/static/..",
                                   "/static/../a",
                                   "/static/a/../../..",
                                   "/static/%2e%2e/a",
                                   "/static/.%2e",
                                   "/static/%2E",
                                   "/%2e%2E",
                                   "/static/..%2fa",
                                   "/static/a%2f..",
                                   "/static/a%2F%2e%2e%2fb",
                                   "/..%2fa",
                                   "/a%2f..",
                                   "/nowhere/../x",
                                   "/static/./"}) {
        EXPECT_EQ(answer(t, path), "bad path") << path;
    }
    for (const char* const path :
         {"/static/...", "/static/.a", "/static/a.", "/static/..a", "/static/a..b", "/static/.../x",
          "/static/%2e%2e%2e", "/static/..%20", "/static/.well-known/x"}) {
        EXPECT_EQ(answer(t, path), "/static/{path...} path=" + std::string(path).substr(8)) << path;
    }
}

TEST(router, malformed_escapes_and_nul_are_bad_paths) {
    const table t = routes({"/{name}", "/static/{path...}"});
    for (const char* const path : {"/%", "/%4", "/%4g", "/static/%", "/static/%zz", "/a%00",
                                   "/static/a%00.txt", "/%00", "/x%"}) {
        EXPECT_EQ(answer(t, path), "bad path") << path;
    }
    EXPECT_EQ(answer(t, std::string_view("/a\0b", 4)), "bad path");
}

TEST(router, malformed_patterns_are_refused_and_change_nothing) {
    table t = routes({"/a"});
    for (const char* const bad :
         {"",          "a",         "*",
          "//",        "/a//b",     "/{",
          "/}",        "/{}",       "/{a",
          "/a}",       "/x{a}",     "/{a}x",
          "/{a}{b}",   "/{a:}",     "/{a:str}",
          "/{a:INT}",  "/{:int}",   "/{...}",
          "/{a...}/b", "/{a...}/",  "/{a:int...}",
          "/{a....}",  "/{1a}",     "/{a-b}",
          "/{a b}",    "/{a}/{a}",  "/{a}/{a...}",
          "/.",        "/..",       "/a/../b",
          "/a?b",      "/a#b",      "/a%20b",
          "/a\tb",     "/a\nb",     "/a\x7f",
          "/{{a}}",    "http://a/", "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}/{i}"}) {
        EXPECT_THROW(t.add(method::get, bad, "bad"), std::invalid_argument) << bad;
        EXPECT_THROW(t.add_any(bad, "bad"), std::invalid_argument) << bad;
    }
    EXPECT_THROW(t.add(method::get, "/" + std::string(256, 'x'), "bad"), std::invalid_argument);
    EXPECT_NO_THROW(t.add(method::get, "/" + std::string(255, 'x'), "good"));
    EXPECT_NO_THROW(t.add(method::get, "/{a}/{b}/{c}/{d}/{e}/{f}/{g}/{h}", "good"));
    EXPECT_EQ(t.size(), 3u);
    EXPECT_EQ(answer(t, "/" + std::string(255, 'x')), "good");
}

TEST(router, a_route_that_exists_is_refused_whatever_its_names_are) {
    table t = routes({"/a", "/{x}", "/{x:int}/{y...}"});
    t.add_any("/z", "any");
    EXPECT_THROW(t.add(method::get, "/a", "again"), std::invalid_argument);
    EXPECT_THROW(t.add(method::get, "/{other}", "again"), std::invalid_argument);
    EXPECT_THROW(t.add(method::get, "/{a:int}/{b...}", "again"), std::invalid_argument);
    EXPECT_THROW(t.add_any("/z", "again"), std::invalid_argument);
    EXPECT_EQ(t.size(), 4u);
    EXPECT_EQ(answer(t, "/b"), "/{x} x=b");
    t.add(method::post, "/{other}", "post");
    EXPECT_EQ(answer(t, "/b", method::post), "post other=b") << "names are the route's own";
}

TEST(router, handlers_may_be_move_only_and_stay_where_they_are) {
    http::internal::route_table<std::unique_ptr<int>> t;
    t.add(method::get, "/0", std::make_unique<int>(0));
    const auto* const first = t.match(method::get, "/0").handler;
    for (int i = 1; i < 100; ++i) {
        t.add(method::get, "/" + std::to_string(i), std::make_unique<int>(i));
    }
    EXPECT_EQ(t.match(method::get, "/0").handler, first);
    for (int i = 0; i < 100; ++i) {
        const std::string path = "/" + std::to_string(i);
        EXPECT_EQ(**t.match(method::get, path).handler, i);
    }
}

TEST(router, matching_allocates_nothing) {
    const table t = routes({"/a", "/users/{id:int}", "/static/{path...}"});
    const test::allocation_count count;
    for (const char* const path : {"/a", "/users/5", "/static/a/b/%41", "/%61", "/none", "/../x"}) {
        for (const method verb : {method::get, method::head, method::post}) t.match(verb, path);
    }
    EXPECT_EQ(count.so_far(), 0u);
}

TEST(method_set, is_written_in_the_order_of_the_enumeration) {
    http::internal::method_set set;
    EXPECT_TRUE(set.empty());
    EXPECT_EQ(set.to_string(), "");
    set.insert(method::del);
    set.insert(method::other);
    set.insert(method::get);
    EXPECT_EQ(set.to_string(), "GET, DELETE");
    EXPECT_TRUE(set.contains(method::other));
    EXPECT_FALSE(set.contains(method::put));
}

}  // namespace
