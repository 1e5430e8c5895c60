// coppice-serve as its users run it: flags, messages, exit status, endpoints, signals.
#include "served.hpp"

#include <gtest/gtest.h>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using coppice::test::client;

class served : public coppice::test::served {
public:
    explicit served(std::vector<std::string> arguments, rlim_t files = 0)
        : coppice::test::served(COPPICE_SERVE, std::move(arguments), files) {}
};

bool has_status(const std::string& answer, int status) {
    return answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}
std::string body_of(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == answer.npos ? "" : answer.substr(end + 4);
}

TEST(serve, wrong_arguments_get_a_message_on_stderr_and_exit_2) {
    for (const std::vector<std::string>& wrong :
         std::vector<std::vector<std::string>>{{"--nonsense"},
                                               {"--port", "70000"},
                                               {"--port", "-1"},
                                               {"--port", "http"},
                                               {"--threads", "0"},
                                               {"--threads", "many"},
                                               {"--model", "both"},
                                               {"--model", "single", "--threads", "2"},
                                               {"--ring", "kqueue"},
                                               {"--address", "localhost"},
                                               {"--address", "256.0.0.1"},
                                               {"--address", "203.0.113.1", "--port", "0"},
                                               {"--root", "/does/not/exist"},
                                               {"--root", "/etc/passwd"},
                                               {"stray"}}) {
        served s(wrong);
        EXPECT_EQ(s.exit_status(), 2) << wrong[0] << " " << wrong.back();
        EXPECT_NE(s.err(), "") << wrong[0];
        EXPECT_EQ(s.out(), "") << wrong[0];
    }
}

TEST(serve, a_port_in_use_by_another_of_its_kind_is_an_error) {
    for (const char* const threads : {"1", "2"}) {
        served first({"--port", "0", "--threads", threads});
        ASSERT_NE(first.port(), 0);
        served second({"--port", std::to_string(first.port()), "--threads", threads});
        EXPECT_EQ(second.exit_status(), 2);
        EXPECT_NE(second.err().find("in use"), std::string::npos);
    }
}

TEST(serve, help_and_version_go_to_stdout_with_status_0) {
    served help({"--help"});
    EXPECT_EQ(help.exit_status(), 0);
    const std::string text = help.out();
    for (const char* const flag : {"--address", "--port", "--threads", "--model", "--ring",
                                   "--root", "--help", "--version"}) {
        EXPECT_NE(text.find(flag), std::string::npos) << flag;
    }
    served version({"--version"});
    EXPECT_EQ(version.exit_status(), 0);
    EXPECT_TRUE(version.out().starts_with("coppice-serve "));
}

struct way {
    const char* ring;
    const char* model;
};
class serve_on : public testing::TestWithParam<way> {
protected:
    static std::vector<std::string> flags() {
        return {"--port", "0", "--ring", GetParam().ring, "--model", GetParam().model};
    }
};
INSTANTIATE_TEST_SUITE_P(ways, serve_on,
                         testing::Values(way{"epoll", "single"}, way{"epoll", "multi"},
                                         way{"epoll", "worker"}, way{"epoll", "async"},
                                         way{"uring", "single"}, way{"uring", "multi"},
                                         way{"uring", "worker"}, way{"uring", "async"}),
                         [](const auto& instance) {
                             return std::string(instance.param.ring) + "_" + instance.param.model;
                         });

TEST_P(serve_on, every_endpoint_answers_as_documented) {
    served s(flags());
    ASSERT_NE(s.port(), 0);
    EXPECT_EQ(body_of(s.get("/plaintext")), "Hello, World!");
    EXPECT_EQ(body_of(s.get("/json")), R"({"message":"Hello, World!"})");
    EXPECT_NE(s.get("/").find("<!doctype html>"), std::string::npos);
    EXPECT_TRUE(body_of(s.get("/live")).starts_with("{\"version\":1,\"now_ns\":"));
    EXPECT_EQ(body_of(s.get("/cpu")), "35422");
    EXPECT_EQ(body_of(s.get("/cpu?n=1")), "2");
    EXPECT_EQ(body_of(s.get("/cpu?n=0")), "0");
    EXPECT_TRUE(has_status(s.get("/io?ms=1"), 200));
    EXPECT_TRUE(has_status(s.get("/io-async?ms=1"), 200));
    EXPECT_TRUE(has_status(s.get("/healthz"), 200));
    EXPECT_TRUE(has_status(s.get("/unknown"), 404));
    EXPECT_TRUE(has_status(s.get("/static/x"), 404));
    for (const char* const bad :
         {"/cpu?n=46", "/cpu?n=-1", "/cpu?n=x", "/cpu?n=", "/io?ms=10001", "/io-async?ms=1e3"}) {
        const std::string answer = s.get(bad);
        EXPECT_TRUE(has_status(answer, 400)) << bad;
        EXPECT_NE(body_of(answer), "") << bad;
    }
    const std::string wrong_method = s.get("/plaintext", "PUT");
    EXPECT_TRUE(has_status(wrong_method, 405));
    EXPECT_NE(wrong_method.find("\r\nAllow: GET, HEAD\r\n"), std::string::npos);
    client c(s.port());
    c.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\nContent-Length: 3\r\n\r\nabc");
    const std::string echoed = c.receive();
    EXPECT_EQ(body_of(echoed), "abc");
    EXPECT_NE(echoed.find("\r\nContent-Type: a/b\r\n"), std::string::npos);
    const std::string metrics = body_of(s.get("/metrics"));
    EXPECT_NE(metrics.find("coppice_http_requests_total{code=\"200\"} "), std::string::npos);
    EXPECT_NE(metrics.find("coppice_http_requests_total{code=\"400\"} 6\n"), std::string::npos);
    EXPECT_NE(metrics.find("_bucket{le=\"+Inf\"}"), std::string::npos);
}

TEST_P(serve_on, sigterm_and_sigint_drain_and_exit_0) {
    for (const int number : {SIGTERM, SIGINT}) {
        std::vector<std::string> one_loop = flags();
        one_loop.insert(one_loop.end(), {"--threads", "1"});
        served s(one_loop);
        client idle(s.port());
        idle.send("GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n");
        EXPECT_TRUE(has_status(idle.receive(), 200));
        client busy(s.port());
        busy.send("GET /io-async?ms=150 HTTP/1.1\r\nHost: a\r\n\r\n");
        // On one loop: once a later request is answered, this request is in flight.
        EXPECT_TRUE(has_status(s.get("/healthz"), 200));
        s.signal(number);
        EXPECT_TRUE(has_status(busy.receive(), 200));
        EXPECT_TRUE(idle.ended());
        EXPECT_EQ(s.exit_status(), 0);
        EXPECT_EQ(s.out(), "") << "the listening line is alone on stdout";
    }
}

// Returns the times of the looks in the events that a page has got.
std::vector<std::int64_t> times_of_looks(const std::string& text) {
    constexpr std::string_view name = "data: {\"version\":1,\"now_ns\":";
    std::vector<std::int64_t> times;
    for (std::size_t at = 0; (at = text.find(name, at)) != text.npos;) {
        times.push_back(std::atoll(text.c_str() + (at += name.size())));
    }
    return times;
}

TEST_P(serve_on, pages_share_the_looks_at_the_figures_until_a_drain_ends_their_events) {
    served s(flags());
    std::vector<std::unique_ptr<client>> pages;
    std::vector<std::string> got(3);
    for (std::size_t i = 0; i != got.size(); ++i) {
        pages.push_back(std::make_unique<client>(s.port()));
        ASSERT_TRUE(pages[i]->send("GET /live/events HTTP/1.1\r\nHost: a\r\n\r\n"));
    }
    for (std::size_t i = 0; i != got.size(); ++i) {
        while (times_of_looks(got[i]).size() < 3) {
            const std::string more = pages[i]->receive_piece();
            ASSERT_NE(more, "");
            got[i] += more;
        }
    }
    s.signal(SIGTERM);
    std::set<std::int64_t> looks;
    for (std::size_t i = 0; i != got.size(); ++i) {
        got[i] += pages[i]->receive_all();
        EXPECT_NE(got[i].find("\r\nContent-Type: text/event-stream\r\n"), std::string::npos);
        EXPECT_TRUE(got[i].ends_with("\r\n0\r\n\r\n")) << "the answer is cut off";
        const std::vector<std::int64_t> mine = times_of_looks(got[i]);
        EXPECT_EQ(std::set(mine.begin(), mine.end()).size(), mine.size()) << "a look came twice";
        looks.insert(mine.begin(), mine.end());
    }
    EXPECT_EQ(s.exit_status(), 0);
    std::int64_t before = 0;
    for (const std::int64_t look : looks) {
        EXPECT_GE(look - std::exchange(before, look), 500'000'000);
    }
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitized = true;
#elif defined(__has_feature)
constexpr bool sanitized = __has_feature(address_sanitizer);
#else
constexpr bool sanitized = false;
#endif

TEST_P(serve_on, when_descriptors_run_out_idle_connections_make_room) {
    if (sanitized) GTEST_SKIP() << "the sanitizer checks addresses with descriptors of its own";
    std::vector<std::string> one_loop = flags();
    one_loop.insert(one_loop.end(), {"--threads", "1"});
    served s(one_loop, 40);
    ASSERT_NE(s.port(), 0);
    const char* const request = "GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n";
    client busy(s.port());
    ASSERT_TRUE(busy.begin_post(3));
    std::vector<std::unique_ptr<client>> many;
    for (int i = 0; i != 60; ++i) {
        many.push_back(std::make_unique<client>(s.port()));
        ASSERT_TRUE(many.back()->send(request));
        ASSERT_EQ(body_of(many.back()->receive()), "Hello, World!") << i;
    }
    EXPECT_TRUE(many.front()->ended());
    ASSERT_TRUE(busy.send("abc"));
    EXPECT_EQ(body_of(busy.receive()), "abc");
    many.clear();
    const std::string metrics = s.get("/metrics");
    EXPECT_EQ(metrics.find("\ncoppice_http_connections_shed_total 0\n"), std::string::npos);
    EXPECT_NE(metrics.find("\ncoppice_http_connections_refused_total 0\n"), std::string::npos);
}

TEST_P(serve_on, when_descriptors_run_out_among_busy_connections_it_recovers) {
    if (sanitized) GTEST_SKIP() << "the sanitizer checks addresses with descriptors of its own";
    std::vector<std::string> one_loop = flags();
    one_loop.insert(one_loop.end(), {"--threads", "1"});
    served s(one_loop, 40);
    ASSERT_NE(s.port(), 0);
    std::vector<std::unique_ptr<client>> busy;
    bool is_in = true;
    while (is_in) {
        ASSERT_LT(busy.size(), 60u);
        busy.push_back(std::make_unique<client>(s.port()));
        is_in = busy.back()->begin_post(3);
    }
    busy.pop_back();  // was refused
    ASSERT_GT(busy.size(), 4u);
    for (const auto& c : busy) {
        ASSERT_TRUE(c->send("abc"));
        EXPECT_EQ(body_of(c->receive()), "abc");
    }
    client last(s.port());
    ASSERT_TRUE(last.send("GET /plaintext HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_EQ(body_of(last.receive()), "Hello, World!");
}

TEST_P(serve_on, the_access_log_names_the_request) {
    const std::string path = std::filesystem::temp_directory_path() /
                             ("coppice-serve-log-" + std::to_string(::getpid()));
    std::vector<std::string> arguments = flags();
    arguments.insert(arguments.end(), {"--access-log", path});
    {
        served s(arguments);
        EXPECT_TRUE(has_status(s.get("/healthz"), 200));
        s.signal(SIGTERM);
        EXPECT_EQ(s.exit_status(), 0);
    }
    std::ifstream in(path);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    EXPECT_NE(text.find("\"GET /healthz HTTP/1.1\" 200 3 "), std::string::npos) << text;
    std::filesystem::remove(path);
}

TEST(serve, files_are_served_from_the_root_and_nowhere_else) {
    namespace fs = std::filesystem;
    const fs::path root =
        fs::temp_directory_path() / ("coppice-serve-" + std::to_string(::getpid()));
    fs::create_directories(root / "public/sub");
    std::ofstream(root / "secret") << "secret";
    std::ofstream(root / "public/a.html") << "<p>a";
    std::ofstream(root / "public/sub/b c.txt") << "b";
    fs::create_symlink(root / "secret", root / "public/out");
    fs::create_symlink("a.html", root / "public/in");
    served s({"--port", "0", "--root", (root / "public").string()});
    ASSERT_NE(s.port(), 0);
    const std::string answer = s.get("/static/a.html");
    EXPECT_EQ(body_of(answer), "<p>a");
    EXPECT_NE(answer.find("Content-Type: text/html"), std::string::npos);
    EXPECT_EQ(body_of(s.get("/static/sub/b%20c.txt")), "b");
    EXPECT_EQ(body_of(s.get("/static/in")), "<p>a");
    for (const char* const hidden :
         {"/static/out", "/static/../secret", "/static/%2e%2e/secret", "/static/sub/../../secret",
          "/static/..%2fsecret", "/static/sub", "/static/", "/static//etc/passwd",
          "/static/%2fetc%2fpasswd"}) {
        const std::string refused = s.get(hidden);
        EXPECT_TRUE(has_status(refused, 404) || has_status(refused, 400)) << hidden << refused;
        EXPECT_EQ(refused.find("secret"), std::string::npos) << hidden;
    }
    fs::remove_all(root);
}

// Returns what a command prints; ignores its status.
std::string said_by(const std::string& command) {
    std::FILE* const pipe = ::popen(command.c_str(), "r");
    std::string text;
    for (int c; (c = std::fgetc(pipe)) != EOF;) text.push_back(static_cast<char>(c));
    ::pclose(pipe);
    return text;
}

TEST_P(serve_on, curl_gets_what_it_expects) {
    if (std::system("curl --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "curl is missing";
    served s(flags());
    const std::string curl = "curl -sS --max-time 10 ";
    const std::string at = " http://127.0.0.1:" + std::to_string(s.port());
    EXPECT_EQ(said_by(curl + at + "/plaintext"), "Hello, World!");
    EXPECT_EQ(said_by(curl + "-0" + at + "/plaintext"), "Hello, World!");
    EXPECT_NE(said_by(curl + "-I" + at + "/plaintext").find("Content-Length: 13"),
              std::string::npos);
    EXPECT_EQ(said_by(curl + "-d hello" + at + "/echo"), "hello");
    EXPECT_EQ(said_by("head -c 2000000 /dev/zero | " + curl + "-H 'Expect: 100-continue' " +
                      "-X POST -T -" + at + "/echo | wc -c"),
              "2000000\n");
    EXPECT_EQ(said_by(curl + at + "/cpu?n=10" + at + "/json"),
              "110{\"message\":\"Hello, World!\"}");
}

TEST_P(serve_on, wrk_finds_no_fault) {
    if (std::system("command -v wrk >/dev/null 2>&1") != 0) GTEST_SKIP() << "wrk is missing";
    served s(flags());
    const std::string at = " http://127.0.0.1:" + std::to_string(s.port());
    for (const char* const target : {"/plaintext", "/io-async?ms=1"}) {
        const std::string report = said_by("wrk -t1 -c16 -d1s" + at + target);
        EXPECT_NE(report.find(" requests in "), std::string::npos) << report;
        EXPECT_EQ(report.find("Socket errors"), std::string::npos) << report;
        EXPECT_EQ(report.find("Non-2xx"), std::string::npos) << report;
    }
    s.signal(SIGTERM);
    EXPECT_EQ(s.exit_status(), 0);
}

}  // namespace
