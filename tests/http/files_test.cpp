// http/files.hpp through a server: conditions, ranges, large files, and no way out of the root.
#include <coppice/http/files.hpp>
#include <coppice/http/server.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <map>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace fs = std::filesystem;

std::string pattern(std::size_t size) {
    std::string text(size, ' ');
    for (std::size_t i = 0; i != size; ++i) text[i] = static_cast<char>('a' + i % 23);
    return text;
}

class files_on : public testing::TestWithParam<way> {
protected:
    void SetUp() override {
        fs::remove_all(base);
        fs::create_directories(root / "sub");
        std::ofstream(base / "secret") << "secret";
        std::ofstream(root / "a.html") << "0123456789";
        std::ofstream(root / "sub/b c.txt") << "b";
        std::ofstream(root / "big.bin") << pattern(10'000'000);
        std::ofstream(root / "empty");
        // 2020-01-01 00:00:00.5
        const timespec times[2] = {{1577836800, 500'000'000}, {1577836800, 500'000'000}};
        ::utimensat(AT_FDCWD, (root / "a.html").c_str(), times, 0);
    }
    void TearDown() override { fs::remove_all(base); }

    http::router routes() const {
        http::router r;
        r.get("/static/{path...}", http::files(root.string()));
        return r;
    }
    static std::string get(client& c, std::string_view path, std::string_view fields = "",
                           std::string_view method = "GET") {
        EXPECT_TRUE(c.send(std::string(method) + " " + std::string(path) +
                           " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n"));
        return c.receive(method == "HEAD");
    }
    static std::string field(const std::string& answer, const std::string& name) {
        const std::size_t at = answer.find("\r\n" + name + ": ");
        if (at == answer.npos) return "";
        const std::size_t begin = at + name.size() + 4;
        return answer.substr(begin, answer.find("\r\n", begin) - begin);
    }

    const fs::path base =
        fs::temp_directory_path() / ("coppice-files-" + std::to_string(::getpid()));
    const fs::path root = base / "public";
};

INSTANTIATE_TEST_SUITE_P(ways, files_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(files_on, a_file_has_its_type_date_and_tag) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    const std::string answer = get(c, "/static/a.html");
    EXPECT_TRUE(has_status(answer, 200));
    EXPECT_EQ(body_of(answer), "0123456789");
    EXPECT_EQ(field(answer, "Content-Type"), "text/html; charset=utf-8");
    EXPECT_EQ(field(answer, "Last-Modified"), "Wed, 01 Jan 2020 00:00:00 GMT");
    EXPECT_TRUE(field(answer, "ETag").starts_with('"'));
    EXPECT_EQ(field(answer, "Accept-Ranges"), "bytes");
    EXPECT_EQ(body_of(get(c, "/static/sub/b%20c.txt")), "b");
    EXPECT_EQ(field(get(c, "/static/empty"), "Content-Length"), "0");
    const std::string head = get(c, "/static/a.html", "", "HEAD");
    EXPECT_EQ(field(head, "Content-Length"), "10");
    EXPECT_EQ(field(head, "ETag"), field(answer, "ETag"));
}

TEST_P(files_on, a_large_file_arrives_whole_and_the_next_request_is_answered) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    for (int i = 0; i != 3; ++i) {
        EXPECT_EQ(body_of(get(c, "/static/big.bin")), pattern(10'000'000));
        EXPECT_EQ(body_of(get(c, "/static/a.html")), "0123456789");
    }
    const std::string part = get(c, "/static/big.bin", "Range: bytes=1000-1000000\r\n");
    EXPECT_TRUE(has_status(part, 206));
    EXPECT_EQ(body_of(part), pattern(10'000'000).substr(1000, 999'001));
}

TEST_P(files_on, a_client_that_reads_late_gets_a_large_file_too) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    ASSERT_TRUE(c.send("GET /static/big.bin HTTP/1.1\r\nHost: a\r\n\r\n"));
    client other(server.port());  // served meanwhile
    EXPECT_EQ(body_of(get(other, "/static/a.html")), "0123456789");
    EXPECT_EQ(body_of(c.receive()), pattern(10'000'000));
}

TEST_P(files_on, rfc9110_13_conditions_are_evaluated_in_order) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    const std::string tag = field(get(c, "/static/a.html"), "ETag");
    const std::string same = "Wed, 01 Jan 2020 00:00:00 GMT";
    const std::string before = "Tue, 31 Dec 2019 23:59:59 GMT";
    struct condition {
        std::string fields;
        int status;
    };
    for (const condition& k : {
             condition{"If-None-Match: " + tag + "\r\n", 304},
             condition{"If-None-Match: W/" + tag + "\r\n", 304},
             condition{"If-None-Match: \"x\", " + tag + "\r\n", 304},
             condition{"If-None-Match: *\r\n", 304},
             condition{"If-None-Match: \"x\"\r\n", 200},
             // 13.1.3: ignored if If-None-Match is present.
             condition{"If-None-Match: \"x\"\r\nIf-Modified-Since: " + same + "\r\n", 200},
             condition{"If-Modified-Since: " + same + "\r\n", 304},
             condition{"If-Modified-Since: Wednesday, 01-Jan-20 00:00:00 GMT\r\n", 304},
             condition{"If-Modified-Since: " + before + "\r\n", 200},
             condition{"If-Modified-Since: yesterday\r\n", 200},
             condition{"If-Match: " + tag + "\r\n", 200},
             condition{"If-Match: *\r\n", 200},
             condition{"If-Match: W/" + tag + "\r\n", 412},
             condition{"If-Match: \"x\"\r\n", 412},
             condition{"If-Unmodified-Since: " + same + "\r\n", 200},
             condition{"If-Unmodified-Since: " + before + "\r\n", 412},
             // 13.2.2: If-Match goes before If-Unmodified-Since, and both before the others.
             condition{"If-Match: " + tag + "\r\nIf-Unmodified-Since: " + before + "\r\n", 200},
             condition{"If-Match: \"x\"\r\nIf-None-Match: " + tag + "\r\n", 412},
         }) {
        const std::string answer = get(c, "/static/a.html", k.fields);
        EXPECT_TRUE(has_status(answer, k.status)) << k.fields << answer;
        if (k.status == 304) {
            EXPECT_EQ(field(answer, "ETag"), tag);
            EXPECT_EQ(field(answer, "Content-Length"), "");
            EXPECT_EQ(body_of(answer), "");
        }
    }
}

TEST_P(files_on, rfc9110_14_6_several_ranges_are_sent_as_parts_with_their_own_heads) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    const std::string answer = get(c, "/static/a.html", "Range: bytes=5-6,0-1,-1\r\n");
    EXPECT_TRUE(has_status(answer, 206)) << answer;
    EXPECT_EQ(field(answer.substr(0, answer.find("\r\n\r\n")), "Content-Range"), "");
    const std::string type(field(answer, "Content-Type"));
    const std::string_view named = "multipart/byteranges; boundary=";
    ASSERT_TRUE(type.starts_with(named)) << type;
    const std::string line = "\r\n--" + type.substr(named.size());
    std::string expected;
    for (const auto& [range, bytes] :
         {std::pair("5-6", "56"), std::pair("0-1", "01"), std::pair("9-9", "9")}) {
        expected += line + "\r\nContent-Type: text/html; charset=utf-8\r\nContent-Range: bytes " +
                    range + "/10\r\n\r\n" + bytes;
    }
    EXPECT_EQ(body_of(answer), expected + line + "--\r\n");
    // The connection continues; too many ranges get the whole file.
    std::string many = "Range: bytes=0-0";
    for (int i = 0; i != 16; ++i) many += ",2-2";
    EXPECT_EQ(body_of(get(c, "/static/a.html", many + "\r\n")), "0123456789");
}

TEST_P(files_on, rfc9110_14_ranges_are_served_refused_or_ignored) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    const std::string tag = field(get(c, "/static/a.html"), "ETag");
    struct range {
        std::string fields;
        int status;
        std::string body;
        std::string content_range;
    };
    for (const range& k : {
             range{"Range: bytes=0-3\r\n", 206, "0123", "bytes 0-3/10"},
             range{"Range: BYTES=2-2\r\n", 206, "2", "bytes 2-2/10"},
             range{"Range: bytes=7-\r\n", 206, "789", "bytes 7-9/10"},
             range{"Range: bytes=7-100\r\n", 206, "789", "bytes 7-9/10"},
             range{"Range: bytes=-3\r\n", 206, "789", "bytes 7-9/10"},
             range{"Range: bytes=-100\r\n", 206, "0123456789", "bytes 0-9/10"},
             range{"Range: bytes=10-\r\n", 416, "", "bytes */10"},
             range{"Range: bytes=-0\r\n", 416, "", "bytes */10"},
             range{"Range: bytes=3-2\r\n", 200, "0123456789", ""},
             range{"Range: bytes=a-b\r\n", 200, "0123456789", ""},
             range{"Range: bytes=-\r\n", 200, "0123456789", ""},
             range{"Range: bytes=0-1,1-4\r\n", 200, "0123456789", ""},  // they overlap
             range{"Range: bytes=3-4, 20-30\r\n", 206, "34", "bytes 3-4/10"},
             range{"Range: bytes=20-30,40-\r\n", 416, "", "bytes */10"},
             range{"Range: bytes=0-0,x\r\n", 200, "0123456789", ""},
             range{"Range: lines=0-1\r\n", 200, "0123456789", ""},
             range{"Range: bytes=0-99999999999999999999\r\n", 200, "0123456789", ""},
             range{"Range: bytes=0-3\r\nIf-Range: " + tag + "\r\n", 206, "0123", "bytes 0-3/10"},
             range{"Range: bytes=0-3\r\nIf-Range: \"x\"\r\n", 200, "0123456789", ""},
             range{"Range: bytes=0-3\r\nIf-Range: Wed, 01 Jan 2020 00:00:00 GMT\r\n", 206, "0123",
                   "bytes 0-3/10"},
             range{"Range: bytes=0-3\r\nIf-Range: Tue, 31 Dec 2019 00:00:00 GMT\r\n", 200,
                   "0123456789", ""},
         }) {
        const std::string answer = get(c, "/static/a.html", k.fields);
        EXPECT_TRUE(has_status(answer, k.status)) << k.fields << answer;
        if (k.status != 416) {
            EXPECT_EQ(body_of(answer), k.body) << k.fields;
        }
        EXPECT_EQ(field(answer, "Content-Range"), k.content_range) << k.fields;
    }
    EXPECT_TRUE(has_status(get(c, "/static/a.html", "Range: bytes=0-3\r\n", "HEAD"), 200));
    EXPECT_TRUE(has_status(get(c, "/static/empty", "Range: bytes=0-3\r\n"), 416));
}

TEST_P(files_on, no_spelling_and_no_link_leads_out_of_the_root) {
    fs::create_symlink(base / "secret", root / "out");
    fs::create_symlink("../secret", root / "out_relative");
    fs::create_symlink("..", root / "up");
    fs::create_symlink("a.html", root / "in");
    fs::create_symlink("/proc/self/root", root / "magic");
    fs::create_hard_link(root / "a.html", root / "hard");
    ASSERT_EQ(::mkfifo((root / "fifo").c_str(), 0600), 0);
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    const bool follows = http::files(root.string()).follows_links();
    EXPECT_TRUE(has_status(get(c, "/static/in"), follows ? 200 : 404));
    EXPECT_EQ(body_of(get(c, "/static/hard")), "0123456789");
    for (const char* const hidden : {"/static/out",
                                     "/static/out_relative",
                                     "/static/up/secret",
                                     "/static/../secret",
                                     "/static/%2e%2e/secret",
                                     "/static/%2E%2e%2fsecret",
                                     "/static/..%2fsecret",
                                     "/static/sub/../../secret",
                                     "/static/sub/..%2f..%2fsecret",
                                     "/static/.%2e/secret",
                                     "/static//etc/passwd",
                                     "/static/%2fetc%2fpasswd",
                                     "/static/sub",
                                     "/static/sub/",
                                     "/static/",
                                     "/static/.",
                                     "/static/a.html/",
                                     "/static/a.html%00",
                                     "/static/fifo",
                                     "/static/magic/etc/passwd",
                                     "/static/nothing"}) {
        client each(server.port());
        const std::string refused = get(each, hidden);
        EXPECT_TRUE(has_status(refused, 404) || has_status(refused, 400)) << hidden << refused;
        EXPECT_EQ(refused.find("root:"), std::string::npos) << hidden;
        EXPECT_NE(body_of(refused), "secret") << hidden;
    }
}

TEST_P(files_on, a_file_that_shrinks_while_it_is_sent_ends_the_connection) {
    running_server server(options_of(GetParam()), routes());
    client c(server.port());
    ASSERT_TRUE(c.send("GET /static/big.bin HTTP/1.1\r\nHost: a\r\n\r\n"));
    while (server->statistics().requests == 0) std::this_thread::yield();
    fs::resize_file(root / "big.bin", 1);
    bool reset = false;
    const std::string answer = c.receive_all(&reset);
    EXPECT_LT(answer.size(), 10'000'000u);
    EXPECT_TRUE(reset);  // not an end, which a client could take for the file's
}

TEST(files, a_root_that_is_not_a_directory_is_an_error) {
    EXPECT_THROW(http::files("/does/not/exist"), std::system_error);
    EXPECT_THROW(http::files("/etc/passwd"), std::system_error);
}

TEST(media_type_of, depends_on_the_ending_whatever_its_case) {
    EXPECT_EQ(http::media_type_of("a/b.HTML").view(), "text/html; charset=utf-8");
    EXPECT_EQ(http::media_type_of("a.b/c").view(), "application/octet-stream");
    EXPECT_EQ(http::media_type_of("x.tar.gz").view(), "application/gzip");
    EXPECT_EQ(http::media_type_of("").view(), "application/octet-stream");
}

}  // namespace
