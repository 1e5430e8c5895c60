// http/access_log.hpp: every answer leaves a line, and a slow file delays no request.
#include <coppice/http/access_log.hpp>
#include <coppice/http/server.hpp>

#include "allocations.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using http::access_log;

class log_file {
public:
    ~log_file() { std::filesystem::remove(path); }
    std::string text() const {
        std::ifstream in(path);
        return std::string(std::istreambuf_iterator<char>(in), {});
    }
    const std::string path =
        std::filesystem::temp_directory_path() / ("coppice-log-" + std::to_string(::getpid()));
};

class access_log_on : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, access_log_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(access_log_on, every_answer_leaves_a_line_in_the_documented_format) {
    const log_file file;
    {
        access_log log(file.path);
        http::server_options o = options_of(GetParam());
        o.access_log = &log;
        http::router r;
        r.get("/plain", [](http::request&) { return http::response::text("plain"); });
        running_server server(std::move(o), std::move(r));
        client c(server.port());
        ASSERT_TRUE(
            c.send("GET /plain?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"
                   "POST /plain HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
                   "nonsense\r\n\r\n"));
        for (const int status : {200, 405, 400}) EXPECT_TRUE(has_status(c.receive(), status));
    }
    const std::string begin =
        R"(127\.0\.0\.1:\d+ \[\d\d/[A-Z][a-z][a-z]/\d{4}:\d\d:\d\d:\d\d \+0000\] )";
    const std::string end = R"( \d+\.\d{6}\n)";
    const std::regex expected(begin + "\"GET /plain\\?x=1 HTTP/1.1\" 200 5" + end +  //
                              begin + "\"POST /plain HTTP/1.0\" 405 18" + end +      //
                              begin + "\"-\" 400 \\d+" + end);
    EXPECT_TRUE(std::regex_match(file.text(), expected)) << file.text();
}

TEST(access_log, what_is_handed_over_is_written_in_order_and_once) {
    const log_file file;
    std::string expected;
    {
        access_log log(file.path);
        for (int i = 0; i != 10'000; ++i) {
            std::string line = std::to_string(i) + "\n";
            expected += line;
            log.write(line);
            EXPECT_TRUE(line.empty());
        }
    }
    EXPECT_EQ(file.text(), expected);
}

TEST(access_log, lines_are_dropped_and_counted_when_the_file_cannot_be_written) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::thread reader;
    {
        access_log log(ends[1]);
        const std::string batch(100'000, '\n');
        while (log.dropped() == 0) {  // no thread reads: first the pipe is full, then the memory
            std::string lines = batch;
            log.write(lines);
        }
        EXPECT_EQ(log.dropped() % batch.size(), 0u);
        reader = std::thread([fd = ends[0]] {
            char drained[65536];
            while (::read(fd, drained, sizeof drained) > 0) {
            }
        });
        // The log's destructor writes what it has taken.
    }
    ::close(ends[1]);
    reader.join();
    ::close(ends[0]);
}

TEST(access_log, after_reopen_lines_go_to_a_new_file_of_the_same_name) {
    const log_file file;
    const std::string old = file.path + ".1";
    access_log log(file.path);
    std::string line = "old\n";
    log.write(line);
    while (file.text() != "old\n") std::this_thread::yield();
    std::filesystem::rename(file.path, old);
    EXPECT_EQ(log.reopen(), std::error_code());
    line = "new\n";
    log.write(line);
    while (file.text() != "new\n") std::this_thread::yield();
    std::ifstream in(old);
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "old\n");
    std::filesystem::remove(old);
}

TEST(access_log, reopening_during_writes_loses_and_repeats_no_line) {
    const log_file file;
    constexpr int lines = 20'000;
    constexpr int rotations = 50;
    std::vector<std::string> paths{file.path};
    {
        access_log log(file.path);
        std::vector<std::thread> writers;
        for (int w = 0; w != 2; ++w) {
            writers.emplace_back([&log, w] {
                for (int i = w; i < lines; i += 2) {
                    std::string line = std::to_string(i) + "\n";
                    log.write(line);
                }
            });
        }
        for (int i = 0; i != rotations; ++i) {
            paths.push_back(file.path + "." + std::to_string(i));
            std::filesystem::rename(file.path, paths.back());
            ASSERT_EQ(log.reopen(), std::error_code());
        }
        for (std::thread& w : writers) w.join();
        EXPECT_EQ(log.dropped(), 0u);
    }
    std::vector<int> seen(lines);
    for (const std::string& path : paths) {
        std::ifstream in(path);
        for (std::size_t i = 0; in >> i;) ++seen.at(i);
        if (path != file.path) std::filesystem::remove(path);
    }
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), lines);
}

TEST(access_log, a_failed_reopen_keeps_the_old_file) {
    namespace fs = std::filesystem;
    const log_file directory;
    fs::create_directory(directory.path);
    const std::string path = directory.path + "/log";
    {
        access_log log(path);
        fs::rename(directory.path, directory.path + ".moved");
        EXPECT_EQ(log.reopen(), std::errc::no_such_file_or_directory);
        std::string line = "kept\n";
        log.write(line);
    }
    std::ifstream in(directory.path + ".moved/log");
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "kept\n");
    fs::remove_all(directory.path + ".moved");
}

TEST(access_log, a_file_of_the_caller_is_not_reopened) {
    access_log log(STDERR_FILENO);
    EXPECT_EQ(log.reopen(), std::errc::operation_not_supported);
}

TEST(access_log, a_file_that_cannot_be_opened_is_an_error) {
    EXPECT_THROW(access_log("/does/not/exist"), std::system_error);
}

// While it exists, the system has no room for the stack of a thread that is started.
class no_threads {
public:
    no_threads() {
        ::pthread_getattr_default_np(&before_);
        pthread_attr_t huge;
        ::pthread_attr_init(&huge);
        ::pthread_attr_setstacksize(&huge, std::size_t{1} << 60);
        ::pthread_setattr_default_np(&huge);
        ::pthread_attr_destroy(&huge);
    }
    ~no_threads() {
        ::pthread_setattr_default_np(&before_);
        ::pthread_attr_destroy(&before_);
    }

private:
    pthread_attr_t before_{};
};

// Returns the number that the next file would get.
int next_descriptor() {
    const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    ::close(file);
    return file;
}

TEST(access_log, closes_its_file_if_its_thread_cannot_start) {
    const log_file file;
    const int next = next_descriptor();
    {
        const no_threads none;
        EXPECT_THROW(access_log(file.path), std::system_error);
        EXPECT_THROW(access_log(STDERR_FILENO), std::system_error);
    }
    EXPECT_EQ(next_descriptor(), next);
    EXPECT_NE(::fcntl(STDERR_FILENO, F_GETFD), -1);  // the caller's file stays open
}

TEST(access_log, lines_of_more_bytes_than_may_wait_are_dropped_and_counted) {
    const log_file file;
    {
        access_log log(file.path);
        std::string lines(access_log::waiting_bytes_max + 1, '\n');
        log.write(lines);
        EXPECT_TRUE(lines.empty());
        EXPECT_EQ(log.dropped(), access_log::waiting_bytes_max + 1);
        lines.assign(access_log::waiting_bytes_max, '\n');
        log.write(lines);
    }
    EXPECT_EQ(std::filesystem::file_size(file.path), access_log::waiting_bytes_max);
}

// Fills a pipe, so that the next write blocks. Returns how many bytes it took.
std::size_t fill(int pipe) {
    const int flags = ::fcntl(pipe, F_GETFL);
    ::fcntl(pipe, F_SETFL, flags | O_NONBLOCK);
    const std::string zeros(4096, '0');
    std::size_t taken = 0;
    for (ssize_t n = 0; (n = ::write(pipe, zeros.data(), zeros.size())) > 0;) {
        taken += static_cast<std::size_t>(n);
    }
    ::fcntl(pipe, F_SETFL, flags);
    return taken;
}

TEST(access_log, lines_for_which_there_is_no_memory_are_dropped_and_counted) {
    if (!fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    std::size_t expected = fill(ends[1]);
    std::vector<std::string> batches(8, std::string(200, '\n'));
    for (const std::string& each : batches) expected += each.size();
    expected -= 200;
    std::size_t received = 0;
    std::thread reader;
    {
        access_log log(ends[1]);
        // The log's thread takes one batch at most, and waits for the pipe. So one of the next is
        // appended to another, which allocates.
        fail_allocation(1);
        std::thread writer([&log, &batches] {
            for (std::string& each : batches) log.write(each);
        });
        writer.join();
        EXPECT_TRUE(allocation_has_failed());
        EXPECT_EQ(log.dropped(), 200u);
        reader = std::thread([from = ends[0], &received] {
            char drained[4096];
            for (ssize_t n = 0; (n = ::read(from, drained, sizeof drained)) > 0;) {
                received += static_cast<std::size_t>(n);
            }
        });
    }
    ::close(ends[1]);
    reader.join();
    ::close(ends[0]);
    EXPECT_EQ(received, expected);
}

TEST(access_log, a_pipe_without_a_reader_loses_lines_and_does_not_end_the_process) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    ::close(ends[0]);
    struct sigaction ends_the_process{};
    ends_the_process.sa_handler = SIG_DFL;
    struct sigaction before{};
    ::sigaction(SIGPIPE, &ends_the_process, &before);
    {
        access_log log(ends[1]);
        for (std::uint64_t sent = 1; sent <= 3; ++sent) {
            std::string line = "a line\n";
            log.write(line);
            while (log.dropped() != sent) std::this_thread::yield();
        }
    }
    ::sigaction(SIGPIPE, &before, nullptr);
    ::close(ends[1]);
}

}  // namespace
