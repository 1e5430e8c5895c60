// coppice-serve's flags for workloads, limits, timeouts, CORS, and compression: what each changes,
// its extremes, and what is refused.
#include "served.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

using coppice::test::client;
using texts = std::vector<std::string>;

class served : public coppice::test::served {
public:
    // On one loop, so that requests are handled in the order in which they arrive.
    explicit served(const texts& flags)
        : coppice::test::served(COPPICE_SERVE, with(flags, {"--port", "0", "--threads", "1"})) {}

private:
    static texts with(texts all, const texts& more) {
        all.insert(all.end(), more.begin(), more.end());
        return all;
    }
};

bool has_status(const std::string& answer, int status) {
    return answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}
std::string request(const std::string& target, const std::string& fields = "") {
    return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}
std::string post(const std::string& body) {
    return "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}
std::string answer_to(served& s, const std::string& bytes) {
    client c(s.port());
    c.send(bytes);
    return c.receive();
}

const texts sizes = {"--max-target", "--max-header", "--max-body", "--min-rate"};
const texts counts = {"--max-connections", "--max-connections-per-address",
                      "--max-requests-per-connection", "--workload-limit"};
const texts times = {"--header-timeout", "--idle-timeout",    "--body-timeout",
                     "--write-timeout",  "--handler-timeout", "--drain-timeout"};

TEST(serve_flags, are_shown_by_help_in_groups_with_their_defaults) {
    served s({"--help"});
    EXPECT_EQ(s.exit_status(), 0);
    const std::string text = s.out();
    std::size_t at = 0;
    for (const char* const next :
         {"\nContent:", "--root", "--cors", "--compress", "--no-workloads", "--workload-limit",
          "\nLimits:", "--max-target SIZE=8k", "--max-header SIZE=32k", "--max-fields N=100",
          "--max-body SIZE=8M", "\nTimeouts:", "--header-timeout TIME=10s", "--idle-timeout",
          "--body-timeout", "--write-timeout", "--handler-timeout", "--drain-timeout TIME=30s"}) {
        const std::size_t found = text.find(next, at);
        ASSERT_NE(found, text.npos) << next << " is not behind the others in\n" << text;
        at = found;
    }
}

TEST(serve_flags, bad_values_get_a_message_on_stderr_and_exit_2) {
    std::vector<texts> wrong = {{"--cors"},
                                {"--cors", "https://a\r\nb"},
                                {"--cors", "https://a/"},
                                {"--cors", "a.example"},
                                {"--no-workloads", "--workload-limit", "1"},
                                {"--hosts", "http://a"},
                                {"--rate-burst", "1"},
                                {"--rate-limit", "0"},
                                {"--access-log-format", "json"},
                                {"--access-log", "-", "--access-log-format", "xml"},
                                {"--max-fields", "101"},
                                {"--max-fields", "0"}};
    for (const std::string& flag : sizes) {
        for (const char* const bad : {"", "-1", "x", "1x", "1kk", "1 k", "0x10", "1.5M",
                                      "18446744073709551616", "17179869184G"}) {
            wrong.push_back({flag, bad});
        }
    }
    for (const std::string& flag : counts) {
        for (const char* const bad : {"", "-1", "0", "x", "1k", "18446744073709551616"}) {
            wrong.push_back({flag, bad});
        }
    }
    for (const std::string& flag : times) {
        for (const char* const bad : {"", "-1s", "s", "10", "1d", "1.5s", "2562048h",
                                      "18446744073709551615ms", "18446744073709551616s"}) {
            wrong.push_back({flag, bad});
        }
        if (flag != "--drain-timeout") wrong.push_back({flag, "0s"});
    }
    for (const texts& flags : wrong) {
        served s(flags);
        EXPECT_EQ(s.exit_status(), 2) << flags[0] << " " << flags.back();
        EXPECT_NE(s.err(), "") << flags[0];
        EXPECT_EQ(s.out(), "") << flags[0];
    }
}

TEST(serve_flags, at_their_extremes_still_serve) {
    texts most, least = {"--max-body", "0", "--drain-timeout", "0s"};
    for (const std::string& flag : sizes) {
        most.insert(most.end(), {flag, "18446744073709551615"});
    }
    for (const std::string& flag : counts) {
        most.insert(most.end(), {flag, "18446744073709551615"});
        least.insert(least.end(), {flag, "1"});
    }
    for (const std::string& flag : times) most.insert(most.end(), {flag, "2562047h"});
    for (const texts& flags : {most, least}) {
        served s(flags);
        const std::string answer = s.get("/plaintext");
        EXPECT_TRUE(has_status(answer, 200)) << answer;
        s.signal(SIGTERM);
        EXPECT_EQ(s.exit_status(), 0);
    }
}

// What --check says: its exit status, and its message.
std::pair<int, std::string> checked(texts flags) {
    flags.push_back("--check");
    coppice::test::served s(COPPICE_SERVE, std::move(flags));
    std::string said = s.err();
    return {s.exit_status(), std::move(said)};
}

TEST(serve_flags, check_names_the_flag_whose_value_is_beyond_its_extreme) {
    const std::vector<texts> wrong = {
        {"--admin-port", "1", "--admin-address", "here"},
        {"--admin-port", "1", "--admin-address", ""},
        {"--admin-address", "::1"},
        {"--admin-port", "65536"},
        {"--admin-port", "-1"},
        {"--address", "256.0.0.1"},
        {"--address", "[::1"},
        {"--port", "65536"},
        {"--tls-port", "1"},
        {"--threads", "0"},
        {"--threads", "1025"},
        {"--model", "single", "--threads", "2"},
        {"--access-log", "/"},
        {"--access-log", ""},
        {"--access-log", "/does/not/exist"},
        {"--rate-limit", "1000000001"},
        {"--rate-limit", "1", "--rate-burst", "1073741825"},
        {"--rate-limit", "1", "--rate-exempt", "10.0.0.1/8"},
        {"--max-fields", "101"},
        {"--max-buffered", "-1"},
        {"--max-buffered", "17179869184G"},
        {"--drain-delay", "2562048h"},
        {"--shed-after", "2562048h"},
        {"--proxies", "::1/129"},
        {"--forwarded-from", "10.0.0.0/33"},
        {"--hosts", "a/b"},
    };
    for (const texts& flags : wrong) {
        const auto [status, said] = checked(flags);
        EXPECT_EQ(status, 2) << flags[0] << " " << flags.back();
        EXPECT_NE(said.find(flags[flags.size() - 2]), said.npos) << flags.back() << ": " << said;
    }
}

TEST(serve_flags, check_accepts_the_extremes) {
    texts most = {"--port",         "65535",
                  "--admin-port",   "65534",
                  "--threads",      "1024",
                  "--rate-limit",   "1000000000",
                  "--drain-delay",  "2562047h",
                  "--shed-after",   "2562047h",
                  "--max-fields",   "100",
                  "--access-log",   "-",
                  "--max-buffered", "18446744073709551615"};
    texts least = {"--port",       "0",  "--admin-port",   "0",      "--admin-address", "::",
                   "--threads",    "1",  "--model",        "single", "--rate-limit",    "1",
                   "--rate-burst", "1",  "--drain-delay",  "0s",     "--shed-after",    "0s",
                   "--max-fields", "1",  "--max-body",     "0",      "--access-log",    "new-log",
                   "--address",    "::", "--max-buffered", "1"};
    for (const std::string& flag : times) most.insert(most.end(), {flag, "2562047h"});
    for (const texts& flags : {most, least}) {
        const auto [status, said] = checked(flags);
        EXPECT_EQ(status, 0) << said;
    }
    EXPECT_FALSE(std::filesystem::exists("new-log"));  // a check makes no file
}

TEST(serve_flags, no_workloads_leaves_out_only_the_workloads) {
    served s({"--no-workloads"});
    for (const char* const target : {"/cpu", "/io", "/io-async", "/cpu?n=1", "/io?ms=0"}) {
        EXPECT_TRUE(has_status(s.get(target), 404)) << target;
    }
    EXPECT_TRUE(has_status(answer_to(s, post("a")), 404));
    for (const char* const target : {"/", "/plaintext", "/json", "/healthz", "/metrics"}) {
        EXPECT_TRUE(has_status(s.get(target), 200)) << target;
    }
}

TEST(serve_flags, workloads_beyond_their_limit_get_503_until_one_ends) {
    for (const char* const model : {"single", "multi", "worker", "async"}) {
        served s({"--workload-limit", "2", "--model", model});
        const auto waiting = [&] {
            auto c = std::make_unique<client>(s.port());
            c->send(request("/io-async?ms=10000"));
            return c;
        };
        const auto running = [&](const char* target) {
            return !has_status(answer_to(s, request(target)), 503);
        };
        const std::unique_ptr<client> first = waiting();
        std::unique_ptr<client> second = waiting();
        EXPECT_TRUE(has_status(s.get("/healthz"), 200));  // so these are in flight
        // In `worker`, however, the pool may see the two after later requests.
        while (running("/io-async?ms=0")) {
        }
        for (const char* const target : {"/cpu?n=1", "/io?ms=0", "/io-async?ms=0"}) {
            const std::string answer = answer_to(s, request(target));
            EXPECT_TRUE(has_status(answer, 503)) << model << target;
            EXPECT_NE(answer.find("\r\nRetry-After: 1\r\n"), answer.npos);
        }
        EXPECT_TRUE(has_status(answer_to(s, post("a")), 503));
        EXPECT_TRUE(has_status(s.get("/plaintext"), 200));
        second->reset();
        while (!running("/io-async?ms=0")) {
        }
        EXPECT_TRUE(has_status(answer_to(s, request("/cpu?n=1")), 200));
    }
}

TEST(serve_flags, limits_refuse_requests_beyond_them_and_serve_the_others) {
    const std::string long_name(200, 'x');
    served s({"--max-target", "100", "--max-header", "300", "--max-fields", "3", "--max-body", "1k",
              "--max-requests-per-connection", "2"});
    EXPECT_TRUE(has_status(answer_to(s, request("/healthz")), 200));
    EXPECT_TRUE(has_status(answer_to(s, request("/" + long_name)), 414));
    EXPECT_TRUE(has_status(answer_to(s, request("/healthz", "a: 1\r\nb: 2\r\n")), 200));
    EXPECT_TRUE(has_status(answer_to(s, request("/healthz", "a: 1\r\nb: 2\r\nc: 3\r\n")), 431));
    EXPECT_TRUE(has_status(answer_to(s, request("/healthz", "a: " + long_name + "\r\n")), 200));
    EXPECT_TRUE(
        has_status(answer_to(s, request("/healthz", "a: " + long_name + long_name + "\r\n")), 431));
    EXPECT_TRUE(has_status(answer_to(s, post(std::string(1024, 'a'))), 200));
    EXPECT_TRUE(has_status(answer_to(s, post(std::string(1025, 'a'))), 413));
    client c(s.port());
    c.send(request("/healthz"));
    EXPECT_EQ(c.receive().find("Connection: close"), std::string::npos);
    c.send(request("/healthz"));
    EXPECT_NE(c.receive().find("Connection: close"), std::string::npos);
    EXPECT_TRUE(c.ended());
}

TEST(serve_flags, connections_beyond_their_limit_are_refused) {
    for (const char* const flag : {"--max-connections", "--max-connections-per-address"}) {
        served s({flag, "2"});
        // Requests in flight: the server may close an idle connection to make room.
        client first(s.port()), second(s.port());
        for (client* const c : {&first, &second}) ASSERT_TRUE(c->begin_post(3));
        client third(s.port());
        third.send(request("/healthz"));
        EXPECT_FALSE(has_status(third.receive(), 200)) << flag;
        first.reset();
        while (!has_status(answer_to(s, request("/healthz")), 200)) {
        }
    }
}

TEST(serve_flags, timeouts_end_a_late_connection) {
    struct late {
        texts flags;
        std::string sent;
    };
    const std::string head = "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n";
    for (const late& l : {late{{"--header-timeout", "50ms"}, "GET / HT"},
                          late{{"--idle-timeout", "50ms"}, request("/healthz")},
                          late{{"--body-timeout", "50ms", "--min-rate", "1G"}, head + "12345"}}) {
        served s(l.flags);
        client c(s.port());
        ASSERT_TRUE(c.send(l.sent));
        bool reset = false;
        c.receive_all(&reset);  // gives up after 10 s, which is an error too
        EXPECT_FALSE(reset) << l.flags[0];
    }
}

TEST(serve_flags, the_client_of_a_handler_beyond_its_timeout_gets_503) {
    served s({"--handler-timeout", "50ms"});
    EXPECT_TRUE(has_status(answer_to(s, request("/io-async?ms=10000")), 503));
}

TEST(serve_flags, the_write_timeout_ends_a_client_that_does_not_read) {
    namespace fs = std::filesystem;
    const fs::path root =
        fs::temp_directory_path() / ("coppice-serve-write-" + std::to_string(::getpid()));
    fs::create_directories(root);
    std::ofstream(root / "large") << "x";
    fs::resize_file(root / "large", 64u << 20);  // more than the sockets' buffers hold
    served s({"--write-timeout", "50ms", "--min-rate", "100G", "--root", root.string()});
    client c(s.port());
    c.send(request("/static/large"));
    while (s.get("/metrics").find("coppice_http_timeouts_total 1\n") == std::string::npos) {
    }
    fs::remove_all(root);
}

TEST(serve_flags, a_drain_ends_with_its_timeout) {
    served s({"--drain-timeout", "0s"});
    client busy(s.port());
    busy.send(request("/io-async?ms=10000"));
    EXPECT_TRUE(has_status(s.get("/healthz"), 200));
    s.signal(SIGTERM);
    EXPECT_FALSE(has_status(busy.receive(), 200));
    EXPECT_EQ(s.exit_status(), 0);
}

TEST(serve_flags, cors_permits_the_origins_and_no_others) {
    served s({"--cors", "https://one.example", "https://two.example"});
    for (const std::string origin : {"https://one.example", "https://two.example"}) {
        const std::string answer = answer_to(s, request("/json", "Origin: " + origin + "\r\n"));
        EXPECT_NE(answer.find("\r\nAccess-Control-Allow-Origin: " + origin + "\r\n"), answer.npos)
            << answer;
    }
    EXPECT_EQ(answer_to(s, request("/json", "Origin: https://three.example\r\n"))
                  .find("Access-Control-Allow-Origin"),
              std::string::npos);
    served none({});
    EXPECT_EQ(
        answer_to(none, request("/json", "Origin: https://one.example\r\n")).find("Access-Control"),
        std::string::npos);
}

TEST(serve_flags, compress_compresses_text_for_clients_that_accept_it) {
    served s({"--compress"});
    EXPECT_NE(answer_to(s, request("/", "Accept-Encoding: gzip\r\n"))
                  .find("\r\nContent-Encoding: gzip\r\n"),
              std::string::npos);
    EXPECT_EQ(answer_to(s, request("/")).find("Content-Encoding"), std::string::npos);
    served plain({});
    EXPECT_EQ(answer_to(plain, request("/", "Accept-Encoding: gzip\r\n")).find("Content-Encoding"),
              std::string::npos);
}

TEST(serve_flags, hosts_and_rates_refuse_what_is_not_wanted) {
    served s({"--hosts", "a", "--rate-limit", "1", "--rate-burst", "4", "--request-id"});
    EXPECT_TRUE(has_status(answer_to(s, "GET / HTTP/1.1\r\nHost: b\r\n\r\n"), 421));
    std::string all;
    for (int i = 0; i != 9; ++i) all += request("/plaintext");
    client c(s.port());
    c.send(all + request("/plaintext", "Connection: close\r\n"));
    const std::string answers = c.receive_all();
    EXPECT_NE(answers.find("HTTP/1.1 200 "), answers.npos) << answers;
    EXPECT_NE(answers.find("\r\nX-Request-Id: "), answers.npos) << answers;
    EXPECT_NE(answers.find("HTTP/1.1 429 "), answers.npos) << answers;
}

TEST(serve_flags, healthcheck_ends_with_0_only_if_the_server_answers_that_it_is_well) {
    const auto asked = [](texts flags) {
        flags.push_back("--healthcheck");
        coppice::test::served s(COPPICE_SERVE, std::move(flags));
        std::string said = s.err();
        return std::pair(s.exit_status(), std::move(said));
    };
    std::string port;
    {
        served s({"--hosts", "*.example.org", "--address", "0.0.0.0"});
        unsigned at = 0;
        ASSERT_EQ(std::sscanf(s.line().c_str(), "listening on http://0.0.0.0:%u", &at), 1);
        port = std::to_string(at);
        const texts same = {"--port", port, "--address", "0.0.0.0"};
        texts hosts = same;
        hosts.insert(hosts.end(), {"--hosts", "*.example.org"});
        EXPECT_EQ(asked(hosts), std::pair(0, std::string()));
        const auto [status, said] = asked(same);
        EXPECT_EQ(status, 1);
        EXPECT_NE(said.find("421"), said.npos) << said;
    }
    EXPECT_EQ(asked({"--port", port}).first, 1);  // it has ended
    for (const texts& unknown : {texts{"--port", "0"}, texts{"--admin-port", "0"}}) {
        const auto [status, said] = asked(unknown);
        EXPECT_EQ(status, 2);
        EXPECT_NE(said.find("--healthcheck"), said.npos) << said;
    }
}

TEST(serve_flags, metrics_count_by_route_and_what_is_refused) {
    served s({"--rate-limit", "1", "--rate-exempt", "127.0.0.0/8", "--shed-after", "10s",
              "--route-metrics"});
    for (int i = 0; i != 10; ++i) EXPECT_TRUE(has_status(s.get("/plaintext"), 200));
    EXPECT_TRUE(has_status(s.get("/none/1"), 404));
    const std::string metrics = s.get("/metrics");
    for (const char* const series :
         {"\ncoppice_http_rate_limited_total 0\n", "\ncoppice_http_shed_requests_total 0\n",
          "route_requests_total{method=\"GET\",route=\"/plaintext\",class=\"2xx\"} 10\n",
          "route_requests_total{method=\"\",route=\"\",class=\"4xx\"} 1\n",
          "route_in_flight{method=\"GET\",route=\"/plaintext\"} 0\n",
          "route_duration_seconds_bucket{method=\"GET\",route=\"/plaintext\",le=\"+Inf\"} 10\n",
          "route_duration_seconds_count{method=\"GET\",route=\"/plaintext\"} 10\n"}) {
        EXPECT_NE(metrics.find(series), metrics.npos) << series << "\nin\n" << metrics;
    }
}

}  // namespace
