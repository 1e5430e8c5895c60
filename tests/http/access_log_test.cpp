// http/access_log.hpp: every answer leaves a line, and a slow file holds up nobody.
#include <coppice/http/access_log.hpp>
#include <coppice/http/server.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <regex>

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

TEST_P(access_log_on, every_answer_leaves_a_line_in_the_documented_form) {
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

TEST(access_log, lines_are_dropped_and_counted_when_the_file_takes_no_more) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    std::thread reader;
    {
        access_log log(ends[1]);
        const std::string batch(100'000, '\n');
        while (log.dropped() == 0) {  // nobody reads: the pipe is full, then the memory
            std::string lines = batch;
            log.write(lines);
        }
        EXPECT_EQ(log.dropped() % batch.size(), 0u);
        reader = std::thread([fd = ends[0]] {
            char drained[65536];
            while (::read(fd, drained, sizeof drained) > 0) {
            }
        });
        // The log's end writes what it has taken over.
    }
    ::close(ends[1]);
    reader.join();
    ::close(ends[0]);
}

TEST(access_log, a_file_that_cannot_be_opened_is_an_error) {
    EXPECT_THROW(access_log("/does/not/exist"), std::system_error);
}

}  // namespace
