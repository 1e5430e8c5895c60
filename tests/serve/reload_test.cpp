// coppice-serve at SIGHUP: the access log and the served directory are reopened.
#include "served.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;
using coppice::test::client;
using coppice::test::served;

bool has_status(const std::string& answer, int status) {
    return answer.starts_with("HTTP/1.1 " + std::to_string(status) + " ");
}
std::string body_of(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == answer.npos ? "" : answer.substr(end + 4);
}

class serve_reload : public testing::Test {
protected:
    serve_reload() { fs::create_directory(directory); }
    ~serve_reload() override { fs::remove_all(directory); }
    const fs::path directory =
        fs::temp_directory_path() / ("coppice-serve-reload-" + std::to_string(::getpid()));
    const fs::path log = directory / "log";
};

const std::string opened_again = "coppice-serve: SIGHUP: opened again";

// Sends requests with the numbers `first`, `first` + `step`, and so on below `end`.
void ask_numbered(std::uint16_t port, int first, int step, int end) {
    client c(port);
    for (int i = first; i < end; i += step) {
        ASSERT_TRUE(
            c.send("GET /plaintext?n=" + std::to_string(i) + " HTTP/1.1\r\nHost: a\r\n\r\n"));
        ASSERT_TRUE(has_status(c.receive(), 200)) << i;
    }
}

TEST_F(serve_reload, under_load_every_request_has_its_line_in_one_of_the_logs) {
    constexpr int requests = 3000;
    constexpr int clients = 3;
    constexpr int rotations = 10;
    for (const char* const ring : {"epoll", "uring"}) {
        for (const char* const model : {"multi", "worker"}) {
            std::vector<fs::path> logs{log};
            {
                served s(COPPICE_SERVE, {"--port", "0", "--threads", "2", "--ring", ring, "--model",
                                         model, "--access-log", log.string()});
                const std::uint16_t port = s.port();
                std::vector<std::thread> threads;
                for (int i = 0; i != clients; ++i) {
                    threads.emplace_back(ask_numbered, port, i, clients, requests);
                }
                for (int i = 0; i != rotations; ++i) {
                    logs.push_back(log.string() + "." + std::to_string(i));
                    fs::rename(log, logs.back());
                    s.signal(SIGHUP);
                    EXPECT_EQ(s.err_line(), opened_again);
                    EXPECT_TRUE(fs::exists(log));
                }
                for (std::thread& t : threads) t.join();
                s.signal(SIGTERM);
                EXPECT_EQ(s.exit_status(), 0);
            }
            std::map<std::string, int> lines;
            for (const fs::path& path : logs) {
                std::ifstream in(path);
                for (std::string line; std::getline(in, line);) {
                    const std::size_t at = line.find("?n=") + 3;
                    ++lines[line.substr(at, line.find(' ', at) - at)];
                }
                fs::remove(path);
            }
            EXPECT_EQ(lines.size(), static_cast<std::size_t>(requests)) << ring << model;
            for (const auto& [number, count] : lines) EXPECT_EQ(count, 1) << number;
        }
    }
}

TEST_F(serve_reload, what_cannot_be_reopened_stays_in_use_and_is_reported) {
    const fs::path moved = directory / "moved";
    fs::create_directories(directory / "there/root");
    std::ofstream(directory / "there/root/a.txt") << "kept";
    served s(COPPICE_SERVE, {"--port", "0", "--access-log", (directory / "there/log").string(),
                             "--root", (directory / "there/root").string()});
    ASSERT_NE(s.port(), 0);
    fs::rename(directory / "there", moved);
    s.signal(SIGHUP);
    for (const char* const what : {"/log", "/root"}) {
        const std::string said = s.err_line();
        EXPECT_NE(said.find(std::string(what) + " cannot be opened again"), said.npos) << said;
    }
    EXPECT_EQ(body_of(s.get("/static/a.txt")), "kept");
    s.signal(SIGTERM);
    EXPECT_EQ(s.exit_status(), 0);
    std::ifstream in(moved / "log");
    const std::string text(std::istreambuf_iterator<char>(in), {});
    EXPECT_NE(text.find("GET /static/a.txt"), text.npos) << text;
}

TEST_F(serve_reload, a_root_that_is_a_link_is_followed_again) {
    for (const char* const version : {"1", "2"}) {
        fs::create_directory(directory / version);
        std::ofstream(directory / version / "a.txt") << version;
    }
    const fs::path root = directory / "current";
    fs::create_directory_symlink("1", root);
    served s(COPPICE_SERVE, {"--port", "0", "--root", root.string()});
    EXPECT_EQ(body_of(s.get("/static/a.txt")), "1");
    fs::create_directory_symlink("2", directory / "next");
    fs::rename(directory / "next", root);
    EXPECT_EQ(body_of(s.get("/static/a.txt")), "1") << "until the signal";
    s.signal(SIGHUP);
    EXPECT_EQ(s.err_line(), opened_again);
    EXPECT_EQ(body_of(s.get("/static/a.txt")), "2");
}

TEST_F(serve_reload, does_not_end_a_draining_server_at_once) {
    served s(COPPICE_SERVE, {"--port", "0", "--threads", "1"});
    client busy(s.port());
    busy.send("GET /io-async?ms=300 HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(has_status(s.get("/healthz"), 200));
    s.signal(SIGTERM);
    EXPECT_EQ(s.err_line(), "coppice-serve: draining");
    s.signal(SIGHUP);
    EXPECT_TRUE(has_status(busy.receive(), 200));
    busy.reset();
    EXPECT_EQ(s.exit_status(), 0);
}

}  // namespace
