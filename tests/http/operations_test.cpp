// What operators ask of a server: ids and traces of requests, lines of the access log that programs
// read, and counts by route.
#include <coppice/exec/just.hpp>
#include <coppice/http/admission.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>
#include <coppice/http/trace_context.hpp>

#include "allocations.hpp"
#include "answered.hpp"
#include "raw_peer.hpp"
#include "running_server.hpp"
#include "served_world.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using http::request;
using http::response;
using http::trace_context;
using namespace std::chrono_literals;

constexpr std::string_view known_trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

TEST(trace_context, is_read_from_what_the_specification_allows_and_written_as_version_00) {
    const auto again = [](std::string_view text) {
        const auto read = trace_context::parse(text);
        return read ? text_of(*read) : "refused";
    };
    EXPECT_EQ(again(known_trace), known_trace);
    const std::string body(known_trace.substr(2, 51));
    EXPECT_EQ(again("00" + body + "ff"), "00" + body + "03");  // only flags that are known
    EXPECT_EQ(again("cc" + body + "00"), "00" + body + "00");  // a later version
    EXPECT_EQ(again("cc" + body + "01-what-it-adds"), known_trace);
    EXPECT_TRUE(trace_context::parse(known_trace)->is_sampled());
    EXPECT_FALSE(trace_context().is_valid());
}

TEST(trace_context, is_not_read_from_malformed_text) {
    const std::string good(known_trace);
    std::vector<std::string> wrong = {"",
                                      "00",
                                      good + "-",
                                      good + "-00",
                                      good + " ",
                                      " " + good,
                                      "ff" + good.substr(2),
                                      "cc" + good.substr(2) + "x",
                                      "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                                      "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01"};
    for (std::size_t i = 0; i != good.size(); ++i) {
        wrong.push_back(good.substr(0, i));
        wrong.push_back(good.substr(0, i) + good.substr(i + 1));
        for (const char c : {'g', 'A', 'F', ' ', '_', '\t', '\x80', '/', ':', '`'}) {
            wrong.push_back(good);
            wrong.back()[i] = c;
        }
    }
    for (const std::string& text : wrong) EXPECT_FALSE(trace_context::parse(text)) << text;
}

// Returns the n-th text between brackets.
std::string told(const std::string& all, int n) {
    std::size_t at = 0;
    while (n-- != 0) at = all.find('[', at) + 1;
    const std::size_t begin = all.find('[', at) + 1;
    return all.substr(begin, all.find(']', begin) - begin);
}
bool is_hexadecimal(std::string_view text, std::size_t size) {
    return text.size() == size && text.find_first_not_of("0123456789abcdef") == text.npos;
}

TEST(requests, continue_the_trace_of_their_client_with_a_span_of_their_own) {
    const std::string sent = "traceparent: " + std::string(known_trace) + "\r\n";
    const answered a =
        serve({}, telling(), get(sent) + get("") + get(sent + sent) + get("traceparent: x\r\n"));
    std::vector<std::string> ids, traces, spans;
    for (int i = 0; i != 4; ++i) {
        const std::string mine = told(a.text, i);
        ASSERT_EQ(mine.size(), 32u + 1 + 55) << a.text;
        ids.push_back(mine.substr(0, 32));
        traces.push_back(mine.substr(36, 32));
        spans.push_back(mine.substr(69, 16));
        EXPECT_TRUE(trace_context::parse(mine.substr(33))) << mine;
        EXPECT_EQ(mine.ends_with("-01"), i == 0) << mine;
        EXPECT_EQ(traces.back() == known_trace.substr(3, 32), i == 0) << mine;
        EXPECT_NE(spans.back(), known_trace.substr(36, 16)) << mine;
    }
    for (std::vector<std::string>* const all : {&ids, &traces, &spans}) {
        std::ranges::sort(*all);
        EXPECT_EQ(std::ranges::adjacent_find(*all), all->end());
    }
}

TEST(requests, have_the_id_that_a_trusted_proxy_sends_and_otherwise_their_own) {
    const auto id = [](bool trusts, const std::string& lines) {
        http::server_options o;
        o.send_request_id = true;
        if (trusts) o.forwarding.from = {"127.0.0.1"};
        const answered a = serve(std::move(o), telling(), get(lines));
        const std::string mine = told(a.text, 0).substr(0, told(a.text, 0).find(' '));
        EXPECT_NE(a.text.find("\r\nX-Request-Id: " + mine + "\r\n"), a.text.npos) << a.text;
        return mine;
    };
    const std::string longest(128, 'x');
    EXPECT_EQ(id(true, "X-Request-Id: a-1_B.2:+/=@~\r\n"), "a-1_B.2:+/=@~");
    EXPECT_EQ(id(true, "x-request-id: " + longest + "\r\n"), longest);
    EXPECT_TRUE(is_hexadecimal(id(false, "X-Request-Id: forged\r\n"), 32));
    for (const std::string wrong :
         {"", "X-Request-Id:\r\n", "X-Request-Id: a b\r\n", "X-Request-Id: a\"\r\n",
          "X-Request-Id: a\\\r\n", "X-Request-Id: a\tb\r\n", "X-Request-Id: a,b\r\n",
          "X-Request-Id: \x80\r\n", "X-Request-Id: a\r\nX-Request-Id: b\r\n"}) {
        EXPECT_TRUE(is_hexadecimal(id(true, wrong), 32)) << wrong;
    }
    EXPECT_TRUE(is_hexadecimal(id(true, "X-Request-Id: x" + longest + "\r\n"), 32));
}

TEST(requests, send_no_second_id_to_a_client_that_gets_one_from_the_handler) {
    http::server_options o;
    o.send_request_id = true;
    http::router r;
    r.get("/", [](request&) { return response::text("x").add("X-Request-Id", "mine"); });
    const answered a =
        serve(std::move(o), std::move(r), get("") + get("", "/none") + "junk\r\n\r\n");
    EXPECT_NE(a.text.find("\r\nX-Request-Id: mine\r\n"), a.text.npos) << a.text;
    std::size_t ids = 0;
    for (std::size_t at = 0; (at = a.text.find("X-Request-Id", at)) != a.text.npos; ++at) ++ids;
    EXPECT_EQ(ids, 3u) << a.text;  // also for the 404 and the 400
}

// Returns the log of three requests: one with everything, one with little, and one that is none.
std::string log_in(http::access_log_format format) {
    http::server_options o;
    o.access_log_format = format;
    o.forwarding.from = {"127.0.0.1"};
    http::router r;
    r.get("/{x}", [](request&) { return response::text("five5"); });
    r.post("/{x}", [](request&) { return response(204); });
    return serve(std::move(o), std::move(r),
                 get("X-Forwarded-For: 2001:db8::1\r\nReferer: http://b/\"\\\r\n"
                     "User-Agent: a\"b\\c\xff\td\xc3\xa9\r\nX-Request-Id: r1\r\ntraceparent: " +
                         std::string(known_trace) + "\r\n",
                     "/a?x=%22") +
                     "POST /b HTTP/1.0\r\nConnection: keep-alive\r\nX-Forwarded-For: 192.0.2.7:80"
                     "\r\n\r\nnonsense\r\n\r\n")
        .log;
}
std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at != text.size();) {
        const std::size_t end = text.find('\n', at);
        lines.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return lines;
}
// Replaces digits of what differs from run to run: the date, the time, and numbers made by chance.
std::string without(std::string line, const std::string& from, const std::string& to) {
    const std::size_t begin = line.find(from) + from.size();
    const std::size_t end = line.find(to, begin);
    return line.find(from) == line.npos ? line : line.replace(begin, end - begin, "*");
}

TEST(a_line_of_the_access_log, is_apaches_in_combined_and_a_client_cannot_end_a_field_of_it) {
    const std::vector<std::string> lines = lines_of(log_in(http::access_log_format::combined));
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(without(lines[0], "[", "]"),
              "2001:db8::1 - - [*] \"GET /a?x=%22 HTTP/1.1\" 200 5 \"http://b/\\\"\\\\\" "
              "\"a\\\"b\\\\c\\xff\\x09d\\xc3\\xa9\"");
    EXPECT_EQ(without(lines[1], "[", "]"),
              "192.0.2.7 - - [*] \"POST /b HTTP/1.0\" 204 - \"-\" \"-\"");
    // What is no request has no client but the proxy.
    EXPECT_EQ(without(lines[2], "[", "]"), "127.0.0.1 - - [*] \"-\" 400 36 \"-\" \"-\"");
}

TEST(a_line_of_the_access_log, has_the_id_the_span_and_the_seconds_in_traced) {
    const std::vector<std::string> lines = lines_of(log_in(http::access_log_format::traced));
    ASSERT_EQ(lines.size(), 3u);
    const std::size_t id = lines[0].find("\\xa9\" r1 00-4bf92f3577b34da6a3ce929d0e0e4736-");
    ASSERT_NE(id, lines[0].npos) << lines[0];
    EXPECT_EQ(lines[0].substr(lines[0].size() - 12, 6), "-01 0.") << lines[0];
}

TEST(a_line_of_the_access_log, is_an_object_of_valid_text_in_json) {
    const std::vector<std::string> lines = lines_of(log_in(http::access_log_format::json));
    ASSERT_EQ(lines.size(), 3u);
    const std::string first =
        without(without(without(lines[0], "time\":\"", "\""), "seconds\":", ","), "4736-", "-01\"");
    EXPECT_EQ(first,
              "{\"time\":\"*\",\"client\":\"2001:db8::1\",\"port\":0,\"method\":\"GET\","
              "\"target\":\"/a?x=%22\",\"protocol\":\"HTTP/1.1\",\"host\":\"a\",\"status\":200,"
              "\"bytes\":5,\"seconds\":*,\"referer\":\"http://b/\\\"\\\\\","
              "\"user_agent\":\"a\\\"b\\\\c\\ufffd\\u0009d\xc3\xa9\",\"request_id\":\"r1\","
              "\"traceparent\":\"00-4bf92f3577b34da6a3ce929d0e0e4736-*-01\","
              "\"parent_span\":\"00f067aa0ba902b7\"}");
    EXPECT_NE(lines[1].find("\"host\":null,\"status\":204,\"bytes\":0,"), lines[1].npos)
        << lines[1];
    EXPECT_NE(lines[2].find("\"method\":null,\"target\":null,\"protocol\":null,\"host\":null"),
              lines[2].npos)
        << lines[2];
    EXPECT_TRUE(lines[0].starts_with("{\"time\":\"2000-01-01T00:00:0")) << lines[0];
    EXPECT_EQ(lines[0].substr(28, 2), "Z\"") << lines[0];
}

TEST(a_line_of_the_access_log, has_no_other_end_of_a_line_or_control_in_any_format) {
    using format = http::access_log_format;
    const std::string evil[] = {
        "\x80",         "\xc2\x80",     "\xc2\x85",     "\xc2\x9f",
        "\xe2\x80\xa8", "\xe2\x80\xa9", "\xed\xa0\x80", "\xed\xa0\x80\xed\xb0\x80",
        "\xc0\x8a",     "\x85",         "\xe2\x80",     "\xf4\x90\x80\x80"};
    for (const format f : {format::plain, format::combined, format::traced, format::json}) {
        http::server_options o;
        o.access_log_format = f;
        o.forwarding.from = {"127.0.0.1"};
        std::string all;
        for (const std::string& text : evil) {
            for (const char* const field :
                 {"User-Agent", "Referer", "X-Request-Id", "traceparent", "X-Forwarded-For"}) {
                all += get(field + (": a" + text) + "b\r\n");
            }
            all += get("", "/" + text);
        }
        const std::string log = serve(std::move(o), telling(), all).log;
        for (std::size_t i = 0; i != log.size(); ++i) {
            const auto byte = static_cast<unsigned char>(log[i]);
            EXPECT_TRUE(byte == '\n' || (byte >= 0x20 && byte != 0x7f)) << unsigned(byte);
        }
        for (unsigned code = 0x80; code != 0xa0; ++code) {
            EXPECT_EQ(log.find({'\xc2', static_cast<char>(code)}), log.npos) << code;
        }
        EXPECT_EQ(log.find("\xe2\x80\xa8"), log.npos);
        EXPECT_EQ(log.find("\xe2\x80\xa9"), log.npos);
    }
}

// ---- Counts of routes ---------------------------------------------------------------------------

TEST(route_statistics, count_by_pattern_and_never_by_path) {
    http::router r;
    const auto slow = [](request& q) -> task<response> {
        co_await http::pause(q, 3ms);
        co_return response(q.parameter<int>("id") == 0 ? 404 : 200);
    };
    r.group("/api").get("/items/{id:int}", slow);
    r.post("/x", [](request&) -> response { throw std::runtime_error("x"); });
    http::server_options o;
    o.route_metrics = true;
    o.on_exception = [](std::exception_ptr) {};
    std::string all;
    for (int i = 0; i != 50; ++i) {
        all += get("", "/api/items/" + std::to_string(i)) + get("", "/" + std::to_string(i));
    }
    all += "POST /x HTTP/1.1\r\nHost: a\r\n\r\nDELETE /x HTTP/1.1\r\nHost: a\r\n\r\n" +
           get("", "/%zz") + "bad\r\n\r\n";
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        raw_peer peer(loop, to);
        co_await peer.send(all, 1 << 20);
        (void)co_await peer.receive_all();
    };
    io::simulation world(3);
    const http::server_statistics s = serve_in(world, std::move(o), std::move(r), client);
    ASSERT_EQ(s.routes.size(), 3u);
    EXPECT_EQ(s.routes[0].name.method + s.routes[0].name.pattern, "GET/api/items/{id:int}");
    EXPECT_EQ(s.routes[0].by_class, (std::array<std::uint64_t, 5>{0, 49, 0, 1, 0}));
    EXPECT_EQ(s.routes[0].latency_up_to[11], 0u);  // 2.0 ms
    EXPECT_EQ(s.routes[0].latency_up_to[23], 50u);
    EXPECT_GE(s.routes[0].latency_sum, 50u * 3'000'000);
    EXPECT_EQ(s.routes[1].name.method + s.routes[1].name.pattern, "POST/x");
    EXPECT_EQ(s.routes[1].by_class, (std::array<std::uint64_t, 5>{0, 0, 0, 0, 1}));
    EXPECT_EQ(s.routes[2].name.method + s.routes[2].name.pattern, "");
    EXPECT_EQ(s.routes[2].by_class, (std::array<std::uint64_t, 5>{0, 0, 0, 52, 0}));
    for (const auto& route : s.routes) EXPECT_EQ(route.in_flight, 0u);
}

TEST(route_statistics, tell_what_is_in_flight_while_it_is) {
    http::router r;
    r.get("/slow", [](request& q) -> task<response> {
        co_await http::pause(q, 1s);
        co_return response::text("slow");
    });
    r.get("/body", [](request&) {
        return response().body(http::stream([](http::body_writer& out) -> task<> {
            co_await out.write("begun");
            co_await out.flush();
            co_await execution::just_stopped();
        }));
    });
    http::server_options o;
    o.endpoint = io::loopback(0);
    o.model = http::model::single;
    o.route_metrics = true;
    io::simulation world(3);
    o.simulation = &world;
    std::optional<http::server> server;
    const auto in_flight = [&](std::size_t route) {
        return server->statistics().routes[route].in_flight;
    };
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        raw_peer peer(loop, to);
        co_await peer.send(get("", "/slow"), 1000);
        EXPECT_EQ(in_flight(0), 1u);
        (void)co_await peer.receive("slow");
        EXPECT_EQ(in_flight(0), 0u);
        co_await peer.send(get("", "/body"), 1000);
        (void)co_await peer.receive_all();
        EXPECT_EQ(in_flight(1), 0u);  // its producer was stopped
    };
    const talk_with talks = talk_to_server(client);
    bool ended = false;
    o.on_loop = [&](io::context& loop) { converse(loop, *server, talks, ended); };
    server.emplace(std::move(o), std::move(r));
    server->run();
    EXPECT_TRUE(ended);
}

// Sends a request and receives its answer without an allocation.
bool asks(client& c, std::string_view bytes) {
    char buffer[512];
    ::send(c.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ssize_t n;
    do {
        n = ::recv(c.fd(), buffer, sizeof buffer, 0);
    } while (n < 0 && errno == EINTR);
    return n > 0 && std::string_view(buffer, static_cast<std::size_t>(n)).find(" 200 ") == 8;
}

class operations_on : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, operations_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(operations_on, allocate_nothing_in_steady_state) {
    const int file = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    {
        http::access_log log(file);
        http::server_options o = options_of(GetParam());
        o.access_log = &log;
        o.access_log_format = http::access_log_format::json;
        o.send_request_id = true;
        o.route_metrics = true;
        o.forwarding.from = {"127.0.0.1"};
        http::router r;
        r.use(std::make_shared<http::allowed_hosts>(std::vector<std::string>{"a"}));
        r.use(std::make_shared<http::rate_limit>(
            http::rate_limit_options{.per_second = 1e9, .burst = 1u << 20}));
        r.get("/", [](request& q) { return response::status(q.trace().is_valid() ? 200 : 500); });
        running_server server(std::move(o), std::move(r));
        client c(server.port());
        const std::string bytes =
            get("X-Forwarded-For: 2001:db8:1111:2222:3333:4444:5555:6666\r\ntraceparent: " +
                std::string(known_trace) + "\r\nUser-Agent: one that is rather long\r\n");
        std::size_t allocated = 1;
        for (int round = 0; round != 50 && allocated != 0; ++round) {
            const coppice::test::allocation_count count;
            for (int i = 0; i != 100; ++i) ASSERT_TRUE(asks(c, bytes));
            allocated = count.so_far();
        }
        EXPECT_EQ(allocated, 0u);
    }
    ::close(file);
}

}  // namespace
