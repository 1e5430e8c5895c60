// http/filters.hpp through a server: CORS, compression, and user-defined filters.
#include <coppice/http/body.hpp>
#include <coppice/http/filters.hpp>
#include <coppice/http/server.hpp>

#include "inflated.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace {

using namespace coppice;
using namespace coppice::test;
using http::body_writer;
using http::choose_coding;
using http::request;
using http::response;

std::string field(const std::string& answer, const std::string& name) {
    const std::size_t at = answer.find("\r\n" + name + ": ");
    if (at == answer.npos) return "";
    const std::size_t begin = at + name.size() + 4;
    return answer.substr(begin, answer.find("\r\n", begin) - begin);
}

std::string ask(std::uint16_t port, const std::string& method, const std::string& path,
                const std::string& fields = "") {
    client c(port);
    EXPECT_TRUE(c.send(method + " " + path + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n"));
    return c.receive(method == "HEAD");
}

const std::string long_text(10'000, 'x');

http::router routes() {
    http::router r;
    r.get("/long", [](request&) { return response::text(long_text).add("ETag", "\"1\""); })
        .get("/short", [](request&) { return response::text("short"); })
        .get("/image",
             [](request&) { return response().body(long_text).content_type("image/png"); })
        .get("/packed",
             [](request&) { return response::text(long_text).add("Content-Encoding", "br"); })
        .get("/fixed",
             [](request&) {
                 return response::text(long_text).add("Cache-Control", "public, no-transform");
             })
        .get("/stream", [](request&) {
            const auto produce = [](body_writer& out) -> task<> {
                for (int i = 0; i != 1000; ++i) co_await out.write("a line of text\n");
            };
            return response().body(http::stream(produce)).content_type("text/plain");
        });
    return r;
}

class filters_on : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, filters_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(filters_on, compression_uses_a_coding_that_the_client_accepts_and_names_it) {
    http::router r = routes();
    r.use(http::compression());
    running_server server(options_of(GetParam()), std::move(r));
    for (const char* const coding : {"gzip", "deflate"}) {
        const std::string accept = "Accept-Encoding: " + std::string(coding) + "\r\n";
        const std::string answer = ask(server.port(), "GET", "/long", accept);
        EXPECT_EQ(field(answer, "Content-Encoding"), coding);
        EXPECT_EQ(field(answer, "Vary"), "Accept-Encoding");
        EXPECT_EQ(field(answer, "ETag"), "W/\"1\"");
        EXPECT_LT(body_of(answer).size(), 200u);
        EXPECT_EQ(inflated(body_of(answer)), long_text);
        const std::string streamed = ask(server.port(), "GET", "/stream", accept);
        EXPECT_EQ(field(streamed, "Content-Encoding"), coding);
        std::string expected;
        for (int i = 0; i != 1000; ++i) expected += "a line of text\n";
        EXPECT_EQ(inflated(body_of(streamed)), expected);
    }
    const std::string plain = ask(server.port(), "GET", "/long");
    EXPECT_EQ(field(plain, "Content-Encoding"), "");
    EXPECT_EQ(field(plain, "Vary"), "Accept-Encoding");
    EXPECT_EQ(body_of(plain), long_text);
}

// A cache that stored the 200 must not forget that it depends on Accept-Encoding.
TEST_P(filters_on, rfc9110_15_4_5_a_304_says_what_the_answer_depends_on) {
    http::router r;
    r.get("/same", [](request&) { return response(304).add("ETag", "\"1\""); });
    r.use(http::compression());
    running_server server(options_of(GetParam()), std::move(r));
    EXPECT_EQ(field(ask(server.port(), "HEAD", "/same"), "Vary"), "Accept-Encoding");
}

TEST_P(filters_on, compression_leaves_answers_alone_that_it_must_not_change) {
    http::router r = routes();
    r.use(http::compression());
    running_server server(options_of(GetParam()), std::move(r));
    for (const char* const path : {"/short", "/image", "/packed", "/fixed"}) {
        const std::string answer = ask(server.port(), "GET", path, "Accept-Encoding: gzip\r\n");
        EXPECT_NE(field(answer, "Content-Encoding"), "gzip") << path;
        EXPECT_EQ(field(answer, "Vary"), "") << path;
    }
}

TEST(choose_coding, rfc9110_12_5_3_prefers_by_weight) {
    EXPECT_EQ(choose_coding(""), "");
    EXPECT_EQ(choose_coding("gzip"), "gzip");
    EXPECT_EQ(choose_coding("GZIP"), "gzip");
    EXPECT_EQ(choose_coding("deflate, gzip;q=1.0, *;q=0.5"), "gzip");
    EXPECT_EQ(choose_coding("deflate, gzip;q=0.5"), "deflate");
    EXPECT_EQ(choose_coding("br, *"), "gzip");
    EXPECT_EQ(choose_coding("gzip;q=0, *"), "deflate");
    EXPECT_EQ(choose_coding("gzip;q=0"), "");
    EXPECT_EQ(choose_coding("gzip ; q=0.000"), "");
    EXPECT_EQ(choose_coding("*;q=0"), "");
    EXPECT_EQ(choose_coding("identity"), "");
    EXPECT_EQ(choose_coding("gzip;q=2"), "");
    EXPECT_EQ(choose_coding("gzip;q=x"), "");
    EXPECT_EQ(choose_coding("br"), "");
}

TEST_P(filters_on, cors_permits_its_origins_and_answers_preflights) {
    http::router r = routes();
    http::cors_options o;
    o.origins = {"https://a.example", "https://b.example"};
    o.methods = {"GET", "PUT"};
    o.fields = {"X-Token"};
    o.exposed = {"ETag"};
    o.credentials = true;
    r.use(http::cors(o));
    running_server server(options_of(GetParam()), std::move(r));
    const std::string preflight =
        ask(server.port(), "OPTIONS", "/long",
            "Origin: https://b.example\r\nAccess-Control-Request-Method: PUT\r\n");
    EXPECT_TRUE(has_status(preflight, 204));
    EXPECT_EQ(field(preflight, "Access-Control-Allow-Origin"), "https://b.example");
    EXPECT_EQ(field(preflight, "Access-Control-Allow-Methods"), "GET, PUT");
    EXPECT_EQ(field(preflight, "Access-Control-Allow-Headers"), "X-Token");
    EXPECT_EQ(field(preflight, "Access-Control-Allow-Credentials"), "true");
    EXPECT_EQ(field(preflight, "Access-Control-Max-Age"), "600");
    EXPECT_EQ(field(preflight, "Vary"), "Origin");
    const std::string get = ask(server.port(), "GET", "/short", "Origin: https://a.example\r\n");
    EXPECT_EQ(field(get, "Access-Control-Allow-Origin"), "https://a.example");
    EXPECT_EQ(field(get, "Access-Control-Expose-Headers"), "ETag");
    for (const char* const fields : {"", "Origin: https://c.example\r\n", "Origin: null\r\n"}) {
        const std::string other = ask(server.port(), "GET", "/short", fields);
        EXPECT_EQ(field(other, "Access-Control-Allow-Origin"), "") << fields;
        EXPECT_EQ(field(other, "Vary"), "Origin");
    }
    // An error is an answer too.
    EXPECT_EQ(field(ask(server.port(), "GET", "/nowhere", "Origin: https://a.example\r\n"),
                    "Access-Control-Allow-Origin"),
              "https://a.example");
}

TEST(cors, options_that_browsers_would_reject_are_refused_at_construction) {
    http::cors_options o;
    o.credentials = true;
    EXPECT_THROW(http::cors(o), std::invalid_argument);
    o.origins = {"https://a\r\nX: y"};
    EXPECT_THROW(http::cors(o), std::invalid_argument);
}

class naming final : public http::filter {
public:
    explicit naming(std::string name) : name_(std::move(name)) {}
    std::optional<response> before(const request& r) const override {
        if (r.query("stop") == name_) return response::text("stopped by " + name_);
        if (r.query("throw") == name_) throw std::runtime_error(name_);
        return std::nullopt;
    }
    void after(const request&, response& answer) const override { answer.add("Passed", name_); }

private:
    std::string name_;
};

TEST_P(filters_on, filters_run_in_order_before_and_in_the_opposite_order_after) {
    http::router r = routes();
    r.use(std::make_shared<naming>("one")).use(std::make_shared<naming>("two"));
    http::server_options o = options_of(GetParam());
    o.on_exception = [](std::exception_ptr) {};
    running_server server(std::move(o), std::move(r));
    const std::string answer = ask(server.port(), "GET", "/short");
    EXPECT_LT(answer.find("Passed: two"), answer.find("Passed: one"));
    EXPECT_EQ(body_of(ask(server.port(), "GET", "/short?stop=one")), "stopped by one");
    EXPECT_EQ(body_of(ask(server.port(), "GET", "/short?stop=two")), "stopped by two");
    EXPECT_TRUE(has_status(ask(server.port(), "GET", "/short?throw=two"), 500));
}

}  // namespace
