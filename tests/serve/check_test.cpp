// coppice-serve --check: ports that two listeners want, the extremes of every limit, and files of
// --config that must not be taken for what they do not say.
#include "served.hpp"

#include <gtest/gtest.h>

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;
using texts = std::vector<std::string>;

struct verdict {
    int status;
    std::string said;  // on stderr
};
verdict checked(texts flags) {
    flags.push_back("--check");
    coppice::test::served s(COPPICE_SERVE, std::move(flags));
    std::string said = s.err();
    return {s.exit_status(), std::move(said)};
}
// Checks a file of --config with flags.
verdict checked_file(const std::string& text, texts flags = {}) {
    const fs::path path =
        fs::temp_directory_path() / ("coppice-check-" + std::to_string(::getpid()));
    std::ofstream(path, std::ios::binary) << text;
    flags.insert(flags.end(), {"--config", path.string()});
    verdict v = checked(std::move(flags));
    fs::remove(path);
    return v;
}
std::string shown(const texts& flags) {
    std::string all;
    for (const std::string& each : flags) all += each + " ";
    return all;
}

TEST(serve_check, refuses_one_port_for_two_listeners_whose_addresses_overlap) {
    const std::pair<const char*, const char*> overlapping[] = {{"127.0.0.1", "127.0.0.1"},
                                                               {"0.0.0.0", "127.0.0.1"},
                                                               {"127.0.0.1", "0.0.0.0"},
                                                               {"::", "127.0.0.1"},
                                                               {"::1", "::"},
                                                               {"::", "::"},
                                                               {"0.0.0.0", "::"},
                                                               {"0:0:0:0:0:0:0:1", "::1"}};
    for (const auto& [address, admin] : overlapping) {
        const auto [status, said] = checked({"--port", "9090", "--address", address, "--admin-port",
                                             "9090", "--admin-address", admin});
        EXPECT_EQ(status, 2) << address << " " << admin;
        EXPECT_NE(said.find("--admin-port: "), said.npos) << said;
        EXPECT_NE(said.find("is the port of --port"), said.npos) << said;
    }
    const std::pair<const char*, const char*> apart[] = {
        {"127.0.0.1", "127.0.0.2"}, {"::1", "127.0.0.1"}, {"0.0.0.0", "::1"}};
    for (const auto& [address, admin] : apart) {
        const auto [status, said] = checked({"--port", "9090", "--address", address, "--admin-port",
                                             "9090", "--admin-address", admin});
        EXPECT_EQ(status, 0) << said;
    }
    EXPECT_EQ(checked({"--port", "0", "--admin-port", "0"}).status, 0);  // the system chooses two
    // The start refuses it too, before it listens.
    coppice::test::served s(COPPICE_SERVE, {"--port", "9090", "--admin-port", "9090"});
    EXPECT_EQ(s.exit_status(), 2);
    EXPECT_EQ(s.out(), "");
}

TEST(serve_check, refuses_limits_with_which_no_request_can_be_served) {
    for (const char* const flag :
         {"--max-target", "--max-header", "--max-buffered", "--max-fields", "--max-connections",
          "--max-connections-per-address", "--max-requests-per-connection", "--workload-limit",
          "--rate-limit", "--threads"}) {
        const auto [status, said] = checked({flag, "0"});
        EXPECT_EQ(status, 2) << flag;
        EXPECT_NE(said.find(flag), said.npos) << said;
        EXPECT_EQ(checked({flag, "1"}).status, 0) << flag;
    }
    for (const char* const flag : {"--header-timeout", "--idle-timeout", "--body-timeout",
                                   "--write-timeout", "--handler-timeout"}) {
        EXPECT_EQ(checked({flag, "0ms"}).status, 2) << flag;
        EXPECT_EQ(checked({flag, "1ms"}).status, 0) << flag;
    }
    // With these, 0 means something.
    for (const texts& flags :
         {texts{"--max-body", "0"}, texts{"--min-rate", "0"}, texts{"--drain-timeout", "0s"},
          texts{"--drain-delay", "0s"}, texts{"--shed-after", "0s"}, texts{"--port", "0"},
          texts{"--admin-port", "0"}}) {
        const auto [status, said] = checked(flags);
        EXPECT_EQ(status, 0) << shown(flags) << said;
    }
}

TEST(serve_check, refuses_hosts_that_no_client_can_ask_for) {
    for (const char* const host : {"example.org:99999", "example.org:0", "example.org:080", "a..b",
                                   ".a", "[::1", "[::g]:1"}) {
        const auto [status, said] = checked({"--hosts", host});
        EXPECT_EQ(status, 2) << host;
        EXPECT_NE(said.find(host), said.npos) << said;
    }
    EXPECT_EQ(checked({"--hosts", "example.org.", "*.example.org.:65535", "[::1]:1"}).status, 0);
}

const char* const switches[] = {"compress", "route-metrics", "request-id", "no-workloads"};

TEST(serve_check, takes_only_true_and_false_for_a_switch) {
    for (const std::string name : switches) {
        for (const char* const value : {"true", "false"}) {
            const auto [status, said] = checked_file(name + " = " + value + "\n");
            EXPECT_EQ(status, 0) << said;
        }
        for (const char* const value : {"2", "0", "-1", "\"yes\"", "\"on\"", "[true, true]", "x"}) {
            const auto [status, said] = checked_file(name + " = " + value + "\n");
            EXPECT_EQ(status, 2) << name << value;
            EXPECT_NE(said.find(name), said.npos) << said;
        }
        EXPECT_EQ(checked({"--" + name + "=2"}).status, 2) << name;
    }
    // A switch that is off neither needs nor excludes another flag.
    EXPECT_EQ(checked_file("no-workloads = false\nworkload-limit = 1\n").status, 0);
    EXPECT_EQ(checked_file("tls-only = false\n").status, 0);
    EXPECT_EQ(checked_file("no-workloads = true\nworkload-limit = 1\n").status, 2);
}

TEST(serve_check, takes_no_file_with_what_only_a_command_line_can_mean) {
    for (const std::string name : {"check", "healthcheck", "help", "version", "config"}) {
        for (const char* const value : {"true", "false", "\"x\""}) {
            const auto [status, said] = checked_file(name + " = " + value + "\n");
            EXPECT_EQ(status, 2) << name << value;
            EXPECT_NE(said.find(name), said.npos) << said;
        }
    }
}

TEST(serve_check, takes_no_file_that_has_a_name_twice) {
    for (const char* const text :
         {"port = 80\nthreads = 2\nport = 81\n", "port = 80\nport = 81\n",
          "compress = false\nport = 80\ncompress = true\n", "max-body = 1\n\n# x\nmax-body = 1\n",
          "hosts = [\"a\"]\nport = 1\nhosts = [\"b\"]\n",
          "port = 80\nthreads = 2\n--port = 81\n"}) {
        const auto [status, said] = checked_file(text);
        EXPECT_EQ(status, 2) << text;
        EXPECT_NE(said, "") << text;
    }
    // The command line comes before the file.
    EXPECT_EQ(checked_file("max-body = \"1k\"\n", {"--max-body", "2k"}).status, 0);
}

}  // namespace
