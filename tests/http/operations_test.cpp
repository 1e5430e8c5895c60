// What operators ask of a server: ids and traces of requests, lines of the access log that programs
// read, filters that refuse what is too much, and counts by route.
#include <coppice/http/admission.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>
#include <coppice/http/trace_context.hpp>

#include "allocations.hpp"
#include "raw_peer.hpp"
#include "served_world.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
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

constexpr std::string_view known_trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

std::string text_of(const trace_context& t) {
    const auto text = t.text();
    return std::string(text.data(), text.size());
}

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
    std::vector<std::string> wrong = {"", "00", good + "-", good + "-00", good + " ", " " + good,
                                      "ff" + good.substr(2), "cc" + good.substr(2) + "x",
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

// Sends requests in one connection, each with these field lines, to a server that answers with the
// id and the trace of each. Returns all that was received.
struct answered {
    std::string text;
    std::string log;
};
answered serve(http::server_options o, http::router r, const std::string& bytes) {
    answered result;
    const int file = ::memfd_create("log", 0);
    {
        http::access_log log(file);
        o.access_log = &log;
        const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
            raw_peer peer(loop, to);
            co_await peer.send(bytes, 1 << 20);
            peer.finish_sending();
            result.text = co_await peer.receive_all();
        };
        io::simulation world(3);
        (void)serve_in(world, std::move(o), std::move(r), client);
    }
    result.log.resize(static_cast<std::size_t>(::lseek(file, 0, SEEK_END)));
    EXPECT_EQ(::pread(file, result.log.data(), result.log.size(), 0),
              static_cast<ssize_t>(result.log.size()));
    ::close(file);
    return result;
}
std::string get(const std::string& lines, const std::string& target = "/") {
    return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n";
}
http::router telling() {
    http::router r;
    r.get("/", [](request& q) {
        return response::text("[" + std::string(q.id()) + " " + text_of(q.trace()) + "]");
    });
    return r;
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
    const answered a = serve(std::move(o), std::move(r), get("") + get("", "/none") + "junk\r\n\r\n");
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
    const std::string first = without(without(without(lines[0], "time\":\"", "\""), "seconds\":", ","),
                                      "4736-", "-01\"");
    EXPECT_EQ(first,
              "{\"time\":\"*\",\"client\":\"2001:db8::1\",\"port\":0,\"method\":\"GET\","
              "\"target\":\"/a?x=%22\",\"protocol\":\"HTTP/1.1\",\"host\":\"a\",\"status\":200,"
              "\"bytes\":5,\"seconds\":*,\"referer\":\"http://b/\\\"\\\\\","
              "\"user_agent\":\"a\\\"b\\\\c\\ufffd\\u0009d\xc3\xa9\",\"request_id\":\"r1\","
              "\"traceparent\":\"00-4bf92f3577b34da6a3ce929d0e0e4736-*-01\","
              "\"parent_span\":\"00f067aa0ba902b7\"}");
    EXPECT_NE(lines[1].find("\"host\":null,\"status\":204,\"bytes\":0,"), lines[1].npos) << lines[1];
    EXPECT_NE(lines[2].find("\"method\":null,\"target\":null,\"protocol\":null,\"host\":null"),
              lines[2].npos)
        << lines[2];
    EXPECT_TRUE(lines[0].starts_with("{\"time\":\"2000-01-01T00:00:0")) << lines[0];
    EXPECT_EQ(lines[0].substr(28, 2), "Z\"") << lines[0];
}

// ---- Filters that refuse ------------------------------------------------------------------------

using namespace std::chrono_literals;

TEST(rate_limit, gives_each_client_its_burst_and_then_its_rate) {
    const http::rate_limit limit({.per_second = 10, .burst = 3, .exempt = {"192.0.2.9"}});
    const internal::time_point start{1000s};
    const auto take = [&](const char* text, internal::duration after) {
        return limit.take(io::endpoint::parse(text).value(), start + after);
    };
    for (int i = 0; i != 3; ++i) EXPECT_EQ(take("192.0.2.1:1", 0s), 0s);
    EXPECT_EQ(take("192.0.2.1:2", 0s), 100ms);  // another port is the same client
    EXPECT_EQ(take("192.0.2.1:1", 40ms), 60ms);  // asking has cost nothing
    EXPECT_EQ(take("192.0.2.1:1", 100ms), 0s);
    EXPECT_EQ(take("192.0.2.1:1", 100ms), 100ms);
    EXPECT_EQ(take("192.0.2.2:1", 100ms), 0s);
    EXPECT_EQ(take("[::ffff:192.0.2.1]:1", 100ms), 100ms);
    for (int i = 0; i != 3; ++i) EXPECT_EQ(take("[2001:db8::1]:1", 0s), 0s);
    EXPECT_EQ(take("[2001:db8::ffff:2]:1", 0s), 100ms);  // the same /64
    EXPECT_EQ(take("[2001:db8:0:1::1]:1", 0s), 0s);
    for (int i = 0; i != 100; ++i) EXPECT_EQ(take("192.0.2.9:1", 0s), 0s);
    for (int i = 0; i != 3; ++i) EXPECT_EQ(take("192.0.2.1:1", 3600s), 0s);  // no more than a burst
    EXPECT_EQ(take("192.0.2.1:1", 3600s), 100ms);
    EXPECT_EQ(limit.refused(), 6u);
}

TEST(rate_limit, keeps_its_memory_when_more_clients_ask_than_it_remembers) {
    const http::rate_limit limit({.per_second = 1, .burst = 2, .addresses_max = 64});
    const internal::time_point now{1000s};
    const auto of = [](unsigned i) {
        return io::endpoint::parse("10.0." + std::to_string(i / 256) + "." +
                                       std::to_string(i % 256), 1)
            .value();
    };
    const coppice::test::allocation_count count;
    std::size_t allocated = 0;
    for (unsigned i = 0; i != 5000; ++i) {
        const io::endpoint client = of(i);
        const std::size_t before = count.so_far();
        EXPECT_EQ(limit.take(client, now), 0s);  // one that is new is never refused
        allocated += count.so_far() - before;
    }
    EXPECT_EQ(allocated, 0u);
    EXPECT_EQ(limit.refused(), 0u);
}

TEST(rate_limit, refuses_options_that_mean_nothing) {
    using options = http::rate_limit_options;
    for (const options& wrong :
         {options{.per_second = 0}, options{.per_second = -1}, options{.per_second = 1e10},
          options{.per_second = std::numeric_limits<double>::quiet_NaN()}, options{.burst = 0},
          options{.addresses_max = 0}, options{.per_second = 1e-6, .burst = 1 << 30}}) {
        EXPECT_THROW(http::rate_limit{wrong}, std::invalid_argument);
    }
    EXPECT_THROW(http::concurrency_limit(0), std::invalid_argument);
}

int count_of(std::string_view text, std::string_view part) {
    int n = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++n;
    return n;
}

TEST(rate_limit, answers_429_with_retry_after_and_a_forged_field_makes_no_other_client) {
    for (const bool trusts : {false, true}) {
        http::server_options o;
        if (trusts) o.forwarding.from = {"127.0.0.1"};
        http::router r = telling();
        const auto limit = std::make_shared<http::rate_limit>(
            http::rate_limit_options{.per_second = 0.5, .burst = 2});
        r.use(limit);
        std::string all;
        for (int i = 0; i != 5; ++i) all += get("X-Forwarded-For: 9.9.9." + std::to_string(i) + "\r\n");
        const answered a = serve(std::move(o), std::move(r), all);
        EXPECT_EQ(count_of(a.text, "HTTP/1.1 429 "), trusts ? 0 : 3) << a.text;
        EXPECT_EQ(count_of(a.text, "Retry-After: 2\r\n"), trusts ? 0 : 3) << a.text;
        EXPECT_EQ(limit->refused(), trusts ? 0u : 3u);
    }
}

TEST(concurrency_limit, refuses_what_is_too_much_at_once_and_lets_in_again_when_a_client_is_gone) {
    http::router r;
    const http::concurrency_limit limit(1, 7s);
    r.with(limit).get("/slow", [](request& q) -> task<response> {
        co_await http::pause(q, 1s);
        co_return response::text("slow");
    });
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        raw_peer second(loop, to), third(loop, to);
        {
            raw_peer first(loop, to);
            co_await first.send(get("", "/slow"), 1000);
            EXPECT_EQ(limit.in_flight(), 1u);
            co_await second.send(get("", "/slow"), 1000);
            const std::string refused = co_await second.receive("flight");
            EXPECT_EQ(count_of(refused, " 503 "), 1) << refused;
            EXPECT_EQ(count_of(refused, "Retry-After: 7\r\n"), 1) << refused;
            EXPECT_NE((co_await first.receive("slow")).find(" 200 "), std::string::npos);
            co_await first.send(get("", "/slow"), 1000);
            EXPECT_EQ(limit.in_flight(), 1u);
        }
        co_await third.send(get("", "/slow"), 1000);
        EXPECT_NE((co_await third.receive("slow")).find(" 200 "), std::string::npos);
    };
    http::server_options o;
    o.end_of_input_stops = true;
    io::simulation world(3);
    (void)serve_in(world, std::move(o), std::move(r), client);
    EXPECT_EQ(limit.in_flight(), 0u);
    EXPECT_EQ(limit.refused(), 1u);
}

// Delays the handler, as a loop that is busy does.
task<response> late(request& r, http::next_handler next) {
    co_await http::pause(r, std::chrono::milliseconds(r.query<int>("ms").value_or(0)));
    co_return co_await next();
}

TEST(load_shedding, refuses_only_requests_whose_handlers_begin_late) {
    http::router r;
    const http::load_shedding shedding(200ms, 3s);
    r.use(late).use(shedding);
    r.post("/", [](request& q) { return response::text(std::string(q.body())); });
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        const auto post = [](const char* ms) {
            return "POST /?ms=" + std::string(ms) + " HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n";
        };
        raw_peer peer(loop, to);
        co_await peer.send(post("150") + "good", 1000);
        EXPECT_NE((co_await peer.receive("good")).find(" 200 "), std::string::npos);
        co_await peer.send(post("250") + "late", 1000);
        const std::string refused = co_await peer.receive("to do");
        EXPECT_EQ(count_of(refused, " 503 "), 1) << refused;
        EXPECT_EQ(count_of(refused, "Retry-After: 3\r\n"), 1) << refused;
        // A client that is slow itself does not count, in the head or in the body, nor does the
        // request before.
        co_await peer.send(post("150") + "good" + post("150") + "more", 2);
        EXPECT_NE((co_await peer.receive("more")).find(" 200 "), std::string::npos);
    };
    io::simulation world(3);
    (void)serve_in(world, {}, std::move(r), client);
    EXPECT_EQ(shedding.refused(), 1u);
}

TEST(allowed_hosts, compares_names_without_case_and_ports_only_if_told) {
    const http::allowed_hosts hosts({"example.org", "*.example.net", "[::1]:8080", "10.0.0.1"});
    for (const char* const good :
         {"example.org", "EXAMPLE.org", "example.org:1", "a.example.net", "a.b.example.net:80",
          "[::1]:8080", "10.0.0.1:5"}) {
        EXPECT_TRUE(hosts.contains(good)) << good;
    }
    for (const char* const bad : {"", "example.org.", "example.com", "xexample.org", "example.org.evil",
                                  "example.net", ".example.net", "xexample.net", "[::1]", "[::1]:80",
                                  "[::2]:8080", "10.0.0.10", ":80"}) {
        EXPECT_FALSE(hosts.contains(bad)) << bad;
    }
    for (const char* const wrong : {"", "*", "*.", "a b", "http://a", "a/b", "a:", "a:x", "a:8 ",
                                    "[::1", "a*.b", "*.*.b", "a@b"}) {
        EXPECT_THROW(http::allowed_hosts({wrong}), std::invalid_argument) << wrong;
    }
    EXPECT_THROW(http::allowed_hosts({}), std::invalid_argument);
}

TEST(allowed_hosts, answers_421_before_a_handler_sees_the_request) {
    const auto status = [](const std::string& bytes) {
        http::router r = telling();
        r.use(std::make_shared<http::allowed_hosts>(std::vector<std::string>{"a"}));
        return serve({}, std::move(r), bytes).text.substr(9, 3);
    };
    EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: A:80\r\n\r\n"), "200");
    EXPECT_EQ(status("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"), "200");
    EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: b\r\n\r\n"), "421");
    EXPECT_EQ(status("GET /none HTTP/1.1\r\nHost: b\r\n\r\n"), "421");
    EXPECT_EQ(status("GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n"), "421");
    EXPECT_EQ(status("GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n"), "421");
    EXPECT_EQ(status("GET / HTTP/1.0\r\n\r\n"), "421");
    EXPECT_EQ(status("GET / HTTP/1.1\r\n\r\n"), "400");
    EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), "400");
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

}  // namespace
