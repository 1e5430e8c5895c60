// Requests that are answered before their body has arrived: no body is ever taken for a request
// (RFC 9112 sections 9.3 and 11.2).
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/filters.hpp>
#include <coppice/http/server.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using http::body_writer;
using http::request;
using http::response;

// Counts how often each request passes, refuses requests that ask for it, and marks every answer.
class gate final : public http::filter {
public:
    std::optional<response> before(const request& r) const override {
        {
            const std::lock_guard lock(mutex_);
            ++passed_[std::string(r.find("X-Id").value_or(""))];
            body_seen_ = body_seen_ || !r.body().empty();
        }
        if (r.find("X-Deny")) return response::status(401);
        if (r.find("X-Throw")) throw std::runtime_error("the filter throws");
        return std::nullopt;
    }
    void after(const request& r, response& answer) const override {
        {
            const std::lock_guard lock(mutex_);
            ++left_[std::string(r.find("X-Id").value_or(""))];
        }
        answer.add("X-Id", r.find("X-Id").value_or("none"));
    }
    std::map<std::string, int> passed() const {
        const std::lock_guard lock(mutex_);
        return passed_;
    }
    std::map<std::string, int> left() const {
        const std::lock_guard lock(mutex_);
        return left_;
    }
    bool body_seen() const {
        const std::lock_guard lock(mutex_);
        return body_seen_;
    }

private:
    mutable std::mutex mutex_;
    mutable std::map<std::string, int> passed_, left_;
    mutable bool body_seen_ = false;
};

http::router routes(atomic<int>& smuggled) {
    http::router r;
    const auto text = [](request&) { return response::text("done"); };
    const auto read_all = [](request& q) -> task<response> {
        while (!(co_await q.incoming().read()).empty()) {
        }
        co_return response::text("done");
    };
    r.get("/next", [](request&) { return response::text("next"); })
        .any("/smuggled",
             [&smuggled](request&) {
                 smuggled.fetch_add(1, relaxed);
                 return response::text("smuggled");
             })
        .any("/buffered", text)
        .any("/offloaded", http::offload(text))
        .post("/task", [](request&) -> task<response> { co_return response::text("done"); })
        .post("/throwing",
              [](request&) -> response { throw std::runtime_error("the handler throws"); })
        .any("/reading", http::read_body(read_all))
        .post("/lazy",
              http::read_body([](request&) -> task<response> { co_return response::text("done"); }))
        .post("/reading_offloaded", http::offload(http::read_body(read_all)))
        .any("/streamed", [](request&) {
            return response().body(http::stream([](body_writer& out) -> task<> {
                co_await out.write("do");
                co_await out.flush();
                co_await out.write("ne");
            }));
        });
    return r;
}

struct answered {
    std::string method, target, fields;
    int status;
    bool early;  // from the head alone
    bool reads = true;
};
const answered every_answer[] = {
    {"POST", "/buffered", "X-Deny: 1\r\n", 401, true},
    {"POST", "/reading", "X-Deny: 1\r\n", 401, true},
    {"POST", "/reading_offloaded", "X-Deny: 1\r\n", 401, true},
    {"POST", "/offloaded", "X-Deny: 1\r\n", 401, true},
    {"POST", "/streamed", "X-Deny: 1\r\n", 401, true},
    {"POST", "/buffered", "X-Throw: 1\r\n", 500, true},
    {"POST", "/reading", "X-Throw: 1\r\n", 500, true},
    {"POST", "/none", "", 404, true},
    {"POST", "/next", "", 405, true},
    {"OPTIONS", "/next", "", 204, true},
    {"POST", "https://a/buffered", "", 421, true},
    {"POST", "https://a/reading", "", 421, true},
    {"OPTIONS", "/buffered", "Origin: http://b\r\nAccess-Control-Request-Method: PUT\r\n", 204,
     true},
    {"OPTIONS", "/reading", "Origin: http://b\r\nAccess-Control-Request-Method: PUT\r\n", 204,
     true},
    {"POST", "/buffered", "", 200, false},
    {"POST", "/offloaded", "", 200, false},
    {"POST", "/task", "", 200, false},
    {"POST", "/throwing", "", 500, false},
    {"POST", "/reading", "", 200, false},
    {"POST", "/reading_offloaded", "", 200, false},
    {"POST", "/streamed", "", 200, false},
    {"POST", "/lazy", "", 200, true, false},
};

const std::string hidden = "GET /smuggled HTTP/1.1\r\nHost: a\r\nX-Id: hidden\r\n\r\n";
constexpr std::size_t large = 200'000;

struct framed {
    const char* name;
    std::string fields, first, rest;  // the body: what arrives with the head, and later
    bool expects = false;
    bool drops = true;  // an early answer can leave the connection open
};
std::vector<framed> every_body() {
    const std::string size = std::to_string(hidden.size());
    const std::string double_size = std::to_string(2 * hidden.size());
    const std::string chunk = "\r\n" + hidden + "\r\n0\r\n\r\n";
    char hex[16];
    std::snprintf(hex, sizeof hex, "%zx", hidden.size());
    const std::string large_size = std::to_string(large);
    const std::string padding(large - hidden.size(), 'x');
    return {
        {"none", "", "", ""},
        {"empty", "Content-Length: 0\r\n", "", ""},
        {"length", "Content-Length: " + size + "\r\n", hidden, ""},
        {"length_part", "Content-Length: " + double_size + "\r\n", hidden, hidden},
        {"length_later", "Content-Length: " + size + "\r\n", "", hidden},
        {"length_large", "Content-Length: " + large_size + "\r\n", hidden, padding, false, false},
        {"chunked", "Transfer-Encoding: chunked\r\n", hex + chunk, ""},
        {"chunked_part", "Transfer-Encoding: chunked\r\n", hex + ("\r\n" + hidden),
         "\r\n0\r\n\r\n"},
        {"chunked_later", "Transfer-Encoding: chunked\r\n", "", hex + chunk},
        {"expect", "Content-Length: " + size + "\r\nExpect: 100-continue\r\n", "", hidden, true,
         false},
        {"expect_chunked", "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n", "",
         hex + chunk, true, false},
        {"expect_with_body", "Content-Length: " + size + "\r\nExpect: 100-continue\r\n", hidden,
         ""},
    };
}

bool closes(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return answer.substr(0, end).find("\r\nConnection: close") != std::string::npos;
}

class early_answers : public testing::TestWithParam<way> {
protected:
    // Sends in pieces of `piece` bytes, until the server has closed.
    void send(client& c, std::string_view bytes, std::size_t piece) {
        for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
            if (!c.send(bytes.substr(0, piece))) return;
        }
    }
    // One request on its own connection, and another after it.
    void ask(std::uint16_t port, const answered& a, const framed& body, const std::string& id,
             std::size_t piece) {
        client c(port);
        const int on = 1;  // pieces leave at once
        ::setsockopt(c.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        const std::string next = "GET /next HTTP/1.1\r\nHost: a\r\nX-Id: " + id + "-next\r\n\r\n";
        const std::string head = a.method + " " + a.target + " HTTP/1.1\r\nHost: a\r\nX-Id: " + id +
                                 "\r\n" + a.fields + body.fields + "\r\n";
        send(c, head + body.first, piece);
        std::string answer;
        if (!a.early) {
            if (body.expects) {
                ASSERT_EQ(c.receive(), "HTTP/1.1 100 Continue\r\n\r\n");
            }
            send(c, body.rest + next, piece);
            answer = c.receive();
        } else {
            answer = c.receive();
            send(c, body.rest + next, piece);
        }
        ASSERT_TRUE(has_status(answer, a.status)) << answer;
        EXPECT_NE(answer.find("\r\nX-Id: " + id + "\r\n"), answer.npos) << answer;
        if (closes(answer)) {
            EXPECT_EQ(c.receive_all(), "");
            const bool has_body = !body.first.empty() || !body.rest.empty();
            EXPECT_TRUE(a.early && (!body.drops || (!a.reads && has_body)));
            return;
        }
        if (a.early) {
            EXPECT_TRUE(body.drops);
        }
        const std::string second = c.receive();
        ASSERT_TRUE(has_status(second, 200)) << second;
        EXPECT_EQ(body_of(second), "next");
        EXPECT_NE(second.find("\r\nX-Id: " + id + "-next\r\n"), second.npos) << second;
    }
};
INSTANTIATE_TEST_SUITE_P(ways, early_answers, testing::ValuesIn(every_way), name_of_way);

TEST_P(early_answers, rfc9112_9_3_a_body_is_never_taken_for_the_next_request) {
    atomic<int> smuggled{0};
    const auto counted = std::make_shared<gate>();
    http::router r = routes(smuggled);
    r.use(counted).use(http::cors({}));
    http::server_options o = options_of(GetParam());
    o.on_exception = [](std::exception_ptr) {};
    {
        running_server server(std::move(o), std::move(r));
        int number = 0;
        for (const std::size_t piece : {std::size_t{1} << 20, std::size_t{7}}) {
            for (const answered& a : every_answer) {
                for (const framed& body : every_body()) {
                    // A long body in pieces takes long. A body that the client was to hold back may
                    // arrive with its head or after it.
                    if (piece == 7 && (body.rest.size() >= large / 2 ||
                                       std::string_view(body.name) == "expect_with_body")) {
                        continue;
                    }
                    const std::string id = std::to_string(++number);
                    SCOPED_TRACE(a.method + " " + a.target + " " + a.fields + body.name);
                    ASSERT_NO_FATAL_FAILURE(ask(server.port(), a, body, id, piece));
                }
            }
        }
    }
    EXPECT_EQ(smuggled.load(relaxed), 0);
    EXPECT_FALSE(counted->body_seen());
    for (const auto& [id, times] : counted->passed()) EXPECT_EQ(times, 1) << id;
    for (const auto& [id, times] : counted->left()) EXPECT_EQ(times, 1) << id;
}

TEST_P(early_answers, rfc9110_15_5_14_a_declared_length_beyond_the_limit_is_answered_and_closes) {
    atomic<int> smuggled{0};
    http::server_options o = options_of(GetParam());
    o.limits.body_bytes_max = o.streamed_body_bytes_max = 30;
    running_server server(std::move(o), routes(smuggled));
    for (const char* const path : {"/buffered", "/reading", "/offloaded", "/streamed"}) {
        for (const char* const expect : {"", "Expect: 100-continue\r\n"}) {
            client c(server.port());
            const std::string head =
                "POST " + std::string(path) +
                " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(hidden.size()) +
                "\r\n" + expect + "\r\n";
            ASSERT_TRUE(c.send(head + (*expect == '\0' ? hidden : "")));
            const std::string answer = c.receive();
            EXPECT_TRUE(has_status(answer, 413)) << answer;
            EXPECT_TRUE(closes(answer));
            EXPECT_EQ(c.receive_all(), "");
        }
    }
    EXPECT_EQ(smuggled.load(relaxed), 0);
}

TEST_P(early_answers, dropped_body_bytes_max_is_exact) {
    for (const std::size_t most : {std::size_t{0}, std::size_t{10}, ~std::size_t{0}}) {
        atomic<int> smuggled{0};
        http::server_options o = options_of(GetParam());
        o.dropped_body_bytes_max = most;
        running_server server(std::move(o), routes(smuggled));
        for (const std::size_t size : {1, 10, 11}) {
            client c(server.port());
            ASSERT_TRUE(c.send("POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: " +
                               std::to_string(size) + "\r\n\r\n"));
            const std::string answer = c.receive();
            EXPECT_TRUE(has_status(answer, 404));
            EXPECT_EQ(closes(answer), size > most) << size << " of " << most;
            client chunked(server.port());
            ASSERT_TRUE(chunked.send(
                "POST /none HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"));
            EXPECT_EQ(closes(chunked.receive()), most == 0);
            // A body that exceeds the limit while it arrives ends the connection.
            char hex[32];
            std::snprintf(hex, sizeof hex, "%zx\r\n", size);
            chunked.send(hex + std::string(size, 'x') + "\r\n0\r\n\r\n" +
                         "GET /next HTTP/1.1\r\nHost: a\r\n\r\n");
            if (size > most) {
                EXPECT_EQ(chunked.receive_all(), "");
            } else {
                EXPECT_EQ(body_of(chunked.receive()), "next");
            }
        }
    }
}

}  // namespace
