// http/json.hpp: the hook for JSON libraries, and the errors that clients get.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/json.hpp>
#include <coppice/http/multipart.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

// Stand for types that a JSON library reads.
struct by_exception {
    int value;
};
struct by_nothing {
    int value;
};
struct by_any_exception {};
struct by_two_levels {};
struct unreadable {};
struct library_error {};

int two_levels_parsed = 0;

}  // namespace

template <>
struct coppice::http::json_codec<by_two_levels> {
    static constexpr std::size_t depth_max = 2;
    static std::optional<by_two_levels> parse(std::string_view) {
        ++two_levels_parsed;
        return by_two_levels();
    }
};
template <>
struct coppice::http::json_codec<by_exception> {
    using malformed = library_error;
    static by_exception parse(std::string_view text) {
        if (text == "fault") throw std::runtime_error("the program's own");
        if (text == "told") throw status_error(422, "the value is odd");
        const auto value = parse_integer<int>(text);
        if (!value) throw library_error();
        return {*value};
    }
    static std::string print(const by_exception& v) { return std::to_string(v.value); }
};
template <>
struct coppice::http::json_codec<by_any_exception> {
    using malformed = std::exception;
    static by_any_exception parse(std::string_view text) {
        if (text == "told") throw status_error(422, "the value is odd");
        throw std::runtime_error("no JSON");
    }
};
template <>
struct coppice::http::json_codec<by_nothing> {
    static std::optional<by_nothing> parse(std::string_view text) {
        const auto value = parse_integer<int>(text);
        if (!value) return std::nullopt;
        return by_nothing{*value};
    }
};

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using http::request;
using http::response;

static_assert(http::json_readable<by_exception> && http::json_writable<by_exception>);
static_assert(http::json_readable<by_nothing> && !http::json_writable<by_nothing>);
static_assert(!http::json_readable<unreadable> && !http::json_writable<unreadable>);

int status_of(std::string_view text) {
    try {
        http::internal::parse_json<by_any_exception>(text);
        return 200;
    } catch (const http::status_error& error) {
        return error.status();
    }
}

TEST(json_codecs, may_throw_a_status_whatever_their_malformed_is) {
    EXPECT_EQ(status_of("told"), 422);
    EXPECT_EQ(status_of("else"), 400);
}

// What a parser of two levels is given; "": the text.
std::string refusal_of(std::string_view text) {
    const int before = two_levels_parsed;
    try {
        http::internal::parse_json<by_two_levels>(text);
        EXPECT_EQ(two_levels_parsed, before + 1);
        return "";
    } catch (const http::status_error& error) {
        EXPECT_EQ(two_levels_parsed, before);
        EXPECT_EQ(error.status(), 400);
        return error.what();
    }
}

TEST(json_codecs, with_a_depth_parse_no_text_that_nests_deeper) {
    for (const char* const text : {"", "1", "[[]]", "{\"a\": {}}", "[[], {}, [1]", "]]]]",
                                   "[{}]}}][[", "\"", "\"\\", R"(["[[[", "\"[[[", "\\", []])"}) {
        EXPECT_EQ(refusal_of(text), "") << text;
    }
    const std::string deep = "the JSON is nested too deeply";
    for (const char* const text : {"[[[", "[[[]]]", "{\"a\":[{", "[\"\\\\\",[[", "}}}}[[["}) {
        EXPECT_EQ(refusal_of(text), deep) << text;
    }
    EXPECT_EQ(refusal_of(std::string(1'000'000, '[')), deep);
    // What a quote in a comment, or in another kind of string, would hide.
    for (const char* const text : {"[/*\"*/[[[", "[//\"\n[[[", "['\"',[[["}) {
        EXPECT_NE(refusal_of(text), "") << text;
    }
    EXPECT_EQ(refusal_of("[\"/*'\"]"), "");
}

http::router json_routes() {
    http::router routes;
    routes
        .post("/whole",
              [](request& r) { return http::json_response(http::json_body<by_exception>(r), 201); })
        .post("/optional",
              [](request& r) {
                  const int value = http::json_body<by_nothing>(r).value;
                  return response::text(std::to_string(value));
              })
        .post("/late", http::read_body([](request& r) -> task<response> {
                  const by_exception v = co_await http::read_json<by_exception>(r, 10);
                  co_return http::json_response(v, 201);
              }));
    return routes;
}
std::string message(std::string_view path, std::string_view body,
                    std::string_view type = "application/json") {
    std::string text = "POST ";
    text.append(path).append(" HTTP/1.1\r\nHost: a\r\n");
    if (!type.empty()) text.append("Content-Type: ").append(type).append("\r\n");
    text.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n");
    return text.append(body);
}

std::string ask(test::client& c, std::string_view bytes) {
    EXPECT_TRUE(c.send(bytes));
    return c.receive();
}

class json_on : public testing::TestWithParam<way> {
protected:
    void expect(int status, const std::string& bytes, const char* body = nullptr) {
        test::client c(server_.port());
        const std::string answer = ask(c, bytes);
        EXPECT_TRUE(has_status(answer, status)) << bytes << "\n" << answer;
        if (body == nullptr) return;
        EXPECT_EQ(body_of(answer), body);
    }

private:
    running_server server_{options_of(GetParam()), json_routes()};
};

TEST_P(json_on, values_are_read_and_written) {
    for (const char* const path : {"/whole", "/late"}) {
        expect(201, message(path, "42"), "42");
        expect(201, message(path, "-7", "Application/JSON; charset=\"UTF-8\""), "-7");
        expect(201, message(path, "1", "application/problem+json"), "1");
    }
    expect(200, message("/optional", "42"), "42");
    expect(201,
           "POST /late HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
           "Transfer-Encoding: chunked\r\n\r\n1\r\n4\r\n1\r\n2\r\n0\r\n\r\n",
           "42");
}

TEST_P(json_on, an_error_of_the_client_is_never_answered_with_500) {
    for (const char* const path : {"/whole", "/optional", "/late"}) {
        expect(400, message(path, "x"), "the body is not the JSON that is expected here");
        expect(400, message(path, ""));
        for (const char* const type :
             {"", "text/plain", "application/jsonx", "application/x", "json", "+json",
              "application/json; charset=latin1", "application/json; charset*=UTF-8''latin1",
              "application/json; charset", "application/json,"})
            expect(415, message(path, "1", type));
        expect(400, message(path, "1", "application/json\r\nCONTENT-TYPE: application/json"),
               "the request has two Content-Type fields");
    }
    for (const char* const path : {"/whole", "/late"})
        expect(422, message(path, "told"), "the value is odd");
}

TEST_P(json_on, an_error_of_the_program_is_answered_with_500) {
    for (const char* const path : {"/whole", "/late"}) expect(500, message(path, "fault"));
}

TEST_P(json_on, a_body_beyond_its_limit_is_refused_declared_or_not) {
    expect(201, message("/late", "0000000001"), "1");
    expect(413, message("/late", "00000000001"));
    expect(413,
           "POST /late HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
           "Transfer-Encoding: chunked\r\n\r\n6\r\n000000\r\n5\r\n00001\r\n0\r\n\r\n");
}

// A body that was read from before is the program's fault: the client must not be blamed for it. A
// filter that calls next() again is such a program, and the client may be able to cause that call.
TEST(whole_bodies, that_were_read_from_before_are_an_error_of_the_program) {
    const auto twice = [](request& r) -> task<response> {
        (void)co_await http::read_json<by_exception>(r);
        (void)co_await http::read_json<by_exception>(r);
        co_return response();
    };
    const auto late = [](request& r) -> task<response> {
        (void)co_await r.incoming().read();
        (void)co_await http::read_multipart(r);
        co_return response();
    };
    const auto by_pieces = [](request& r) -> task<response> {
        (void)co_await r.incoming().read();
        http::multipart_reader parts(r);
        co_return response();
    };
    const auto fails_once = [](request& r) -> task<response> {
        (void)co_await http::read_json<by_exception>(r);
        throw std::runtime_error("a row is locked");
    };
    const auto again = [](request&, http::next_handler next) -> task<response> {
        bool failed = false;
        try {
            co_return co_await next();
        } catch (const std::runtime_error&) {
            failed = true;
        }
        EXPECT_TRUE(failed);
        co_return co_await next();
    };
    atomic<int> told{0};
    http::server_options o;
    o.endpoint = io::loopback(0);
    o.on_exception = [&told](std::exception_ptr error) {
        try {
            std::rethrow_exception(error);
        } catch (const std::logic_error& e) {
            EXPECT_NE(std::string_view(e.what()).find("something was read before"),
                      std::string_view::npos);
            told.fetch_add(1, relaxed);  // relaxed, both: the answer comes after it
        }
    };
    http::router routes;
    routes.post("/twice", http::read_body(twice))
        .post("/late", http::read_body(late))
        .post("/pieces", http::read_body(by_pieces));
    routes.group("/again").use(again).post("/x", http::read_body(fails_once));
    running_server server(std::move(o), std::move(routes));
    for (const char* const path : {"/twice", "/late", "/pieces", "/again/x"}) {
        test::client c(server.port());
        EXPECT_EQ(ask(c, message(path, "1")).substr(9, 3), "500") << path;
    }
    EXPECT_EQ(told.load(relaxed), 4);
}

INSTANTIATE_TEST_SUITE_P(ways, json_on, testing::ValuesIn(every_way), name_of_way);

}  // namespace
