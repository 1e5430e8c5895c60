// http::files_options, one by one and with conditions and ranges; entity tags; extremes of fields.
#include <coppice/http/files.hpp>
#include <coppice/http/filters.hpp>

#include "file_root.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <cstdint>
#include <ctime>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace fs = std::filesystem;

http::files files_of(const file_root& root, http::files_options options = {}) {
    return http::files(root.path.string(), std::move(options));
}

TEST(file_options, names_that_start_with_a_dot_are_served_only_on_request) {
    file_root root;
    root.write(".git/config", "text");
    root.write(".env", "text");
    root.write("sub/.htpasswd", "text");
    root.write("sub/.hidden/page.html", "text");
    root.write(".well-known/acme", "text");
    root.write(".well-known/.git/config", "text");
    root.write(".well-known-not/x", "text");
    root.write("a.b", "text");
    const http::files files = files_of(root);
    for (const char* const path :
         {".git/config", "%2egit/config", ".env", "sub/.htpasswd", "sub//.htpasswd",
          "sub/.hidden/page.html", ".well-known/.git/config", ".well-known-not/x"}) {
        EXPECT_EQ(ask(files, path).status(), 404) << path;
    }
    EXPECT_EQ(ask(files, ".well-known/acme").status(), 200);
    EXPECT_EQ(ask(files, "a.b").status(), 200);
    http::files_options all;
    all.hidden = true;
    const http::files open_files = files_of(root, all);
    for (const char* const path : {".git/config", ".env", "sub/.hidden/page.html"}) {
        EXPECT_EQ(ask(open_files, path).body(), "text") << path;
    }
}

TEST(file_options, a_directory_is_answered_with_its_index_if_it_has_one) {
    file_root root;
    root.write("index.html", "top");
    root.write("sub/index.html", "below");
    root.write("none/other.html", "x");
    root.write("a:b/index.html", "colon");
    const http::files plain = files_of(root);
    for (const char* const path : {"", "sub", "sub/", "none/"}) {
        EXPECT_EQ(ask(plain, path).status(), 404) << path;
    }
    http::files_options options;
    options.index = "index.html";
    const http::files files = files_of(root, options);
    EXPECT_EQ(ask(files, "").body(), "top");
    EXPECT_EQ(ask(files, "sub/").body(), "below");
    EXPECT_EQ(ask(files, "sub/").content_type(), "text/html; charset=utf-8");
    EXPECT_EQ(ask(files, "none/").status(), 404);
    EXPECT_EQ(ask(files, "nothing/").status(), 404);
    EXPECT_EQ(ask(files, "index.html/").status(), 404);
    const std::string tag = field_of(ask(files, "sub/"), "ETag");
    EXPECT_EQ(ask(files, "sub/", "If-None-Match: " + tag + "\r\n").status(), 304);
    EXPECT_EQ(ask(files, "sub/", "Range: bytes=1-2\r\n").body(), "el");
    // The redirect is relative to the request's path, whatever it is: no other site, no other
    // scheme.
    const http::response moved = ask(files, "sub?a=b");
    EXPECT_EQ(moved.status(), 301);
    EXPECT_EQ(field_of(moved, "Location"), "./sub/?a=b");
    EXPECT_EQ(field_of(ask(files, "a:b"), "Location"), "./a:b/");
    EXPECT_EQ(ask(files, "//sub").status(), 404);
}

TEST(file_options, cache_control_and_nosniff_are_sent_where_they_apply) {
    file_root root;
    root.write("a.txt", "0123456789");
    const http::files plain = files_of(root);
    EXPECT_EQ(field_of(ask(plain, "a.txt"), "X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(field_of(ask(plain, "a.txt", "Range: bytes=1-2\r\n"), "X-Content-Type-Options"),
              "nosniff");
    EXPECT_FALSE(ask(plain, "a.txt").find("Cache-Control"));
    EXPECT_FALSE(ask(plain, "a.txt").find("Vary"));
    http::files_options options;
    options.cache_control = "public, max-age=60";
    options.nosniff = false;
    const http::files files = files_of(root, options);
    const std::string tag = field_of(ask(files, "a.txt"), "ETag");
    EXPECT_FALSE(ask(files, "a.txt").find("X-Content-Type-Options"));
    for (const std::string& fields :
         {std::string(), std::string("Range: bytes=1-2\r\n"), "If-None-Match: " + tag + "\r\n"}) {
        const http::response answer = ask(files, "a.txt", fields);
        EXPECT_EQ(field_of(answer, "Cache-Control"), "public, max-age=60") << answer.status();
    }
    EXPECT_FALSE(ask(files, "nothing").find("Cache-Control"));
}

TEST(file_options, user_media_types_override_the_known_ones) {
    file_root root;
    for (const char* const name : {"a.gpx", "a.GPX", "a.html", "a.tar.gz", "a"})
        root.write(name, "x");
    http::files_options options;
    options.media_types = {{".gpx", "application/gpx+xml"}, {".tar.gz", "application/x-tgz"}};
    const http::files files = files_of(root, options);
    EXPECT_EQ(ask(files, "a.gpx").content_type(), "application/gpx+xml");
    EXPECT_EQ(ask(files, "a.GPX").content_type(), "application/gpx+xml");
    EXPECT_EQ(ask(files, "a.tar.gz").content_type(), "application/x-tgz");
    EXPECT_EQ(ask(files, "a.html").content_type(), "text/html; charset=utf-8");
    EXPECT_EQ(ask(files, "a").content_type(), "application/octet-stream");
}

class gzip_siblings : public testing::Test {
protected:
    void SetUp() override {
        root.write("a.txt", "plain text");
        root.write("a.txt.gz", "packed");
        root.write("b.txt", "plain text");
        root.write("only.txt.gz", "packed");
        http::files_options options;
        options.gzip_siblings = true;
        files.emplace(root.path.string(), options);
    }
    http::response with(std::string_view coding, std::string_view path = "a.txt",
                        const std::string& fields = "") const {
        return ask(*files, path, "Accept-Encoding: " + std::string(coding) + "\r\n" + fields);
    }
    // Returns the answer as the filter that compresses leaves it.
    static http::response filtered(http::response answer) {
        http::request_head head;
        EXPECT_EQ(http::parse_head("GET /a HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n",
                                   head, http::limits())
                      .status,
                  http::parse_status::complete);
        http::compression({.bytes_min = 0})->after(http::request(head, ""), answer);
        return answer;
    }
    file_root root;
    std::optional<http::files> files;
};

TEST_F(gzip_siblings, are_sent_to_clients_that_accept_gzip) {
    for (const char* const coding : {"gzip", "deflate;q=0.5, gzip", "*", "x-gzip"}) {
        const http::response answer = with(coding);
        EXPECT_EQ(answer.body(), "packed") << coding;
        EXPECT_EQ(field_of(answer, "Content-Encoding"), "gzip");
        EXPECT_EQ(answer.content_type(), "text/plain; charset=utf-8");
        EXPECT_EQ(field_of(answer, "Vary"), "Accept-Encoding");
    }
    for (const char* const coding : {"", "identity", "br", "gzip;q=0", "deflate"}) {
        const http::response answer = with(coding);
        EXPECT_EQ(answer.body(), "plain text") << coding;
        EXPECT_FALSE(answer.find("Content-Encoding"));
        EXPECT_EQ(field_of(answer, "Vary"), "Accept-Encoding");
    }
    EXPECT_EQ(with("gzip", "b.txt").body(), "plain text");
    EXPECT_EQ(with("gzip", "only.txt").status(), 404);
    EXPECT_EQ(with("gzip", "a.txt.gz").body(),
              "packed");  // requested by its own name, it is a file
    EXPECT_FALSE(with("gzip", "a.txt.gz").find("Content-Encoding"));
    EXPECT_EQ(ask(files_of(root), "a.txt", "Accept-Encoding: gzip\r\n").body(), "plain text");
}

TEST_F(gzip_siblings, have_their_own_tags_conditions_and_ranges) {
    const std::string packed = field_of(with("gzip"), "ETag");
    const std::string plain = field_of(with(""), "ETag");
    EXPECT_NE(packed, plain);
    EXPECT_EQ(with("gzip", "a.txt", "If-None-Match: " + packed + "\r\n").status(), 304);
    EXPECT_EQ(field_of(with("gzip", "a.txt", "If-None-Match: " + packed + "\r\n"), "Vary"),
              "Accept-Encoding");
    EXPECT_EQ(with("gzip", "a.txt", "If-None-Match: " + plain + "\r\n").status(), 200);
    EXPECT_EQ(with("", "a.txt", "If-None-Match: " + packed + "\r\n").status(), 200);
    const http::response part =
        with("gzip", "a.txt", "Range: bytes=1-3\r\nIf-Range: " + packed + "\r\n");
    EXPECT_EQ(part.status(), 206);
    EXPECT_EQ(part.body(), "ack");
    EXPECT_EQ(field_of(part, "Content-Range"), "bytes 1-3/6");
    EXPECT_EQ(field_of(part, "Content-Encoding"), "gzip");
    // Parts of the two are never joined.
    EXPECT_EQ(with("gzip", "a.txt", "Range: bytes=1-3\r\nIf-Range: " + plain + "\r\n").body(),
              "packed");
    EXPECT_EQ(with("", "a.txt", "Range: bytes=1-3\r\nIf-Range: " + packed + "\r\n").body(),
              "plain text");
}

TEST_F(gzip_siblings, that_are_older_than_their_file_are_not_sent) {
    root.set_modified("a.txt", 1'600'000'000, 1);
    root.set_modified("a.txt.gz", 1'600'000'000, 0);
    EXPECT_EQ(with("gzip").body(), "plain text");
    root.set_modified("a.txt.gz", 1'600'000'000, 1);
    EXPECT_EQ(with("gzip").body(), "packed");
    fs::remove(root.path / "a.txt.gz");
    fs::create_directory(root.path / "a.txt.gz");
    EXPECT_EQ(with("gzip").body(), "plain text");
}

TEST_F(gzip_siblings, are_not_compressed_again) {
    const http::response answer = filtered(with("gzip"));
    EXPECT_EQ(answer.body(), "packed");
    EXPECT_TRUE(field_of(answer, "ETag").starts_with('"'));
}

TEST_F(gzip_siblings, say_once_that_they_vary_behind_the_filter_that_compresses) {
    const std::string fresh = "If-None-Match: " + field_of(with("gzip"), "ETag") + "\r\n";
    const std::string_view line = "\r\nVary: Accept-Encoding\r\n";
    for (http::response answer :
         {with("gzip"), with("gzip", "b.txt"), with("gzip", "a.txt", fresh)}) {
        const http::response made = filtered(std::move(answer));
        const std::size_t at = made.fields().find(line);
        ASSERT_NE(at, std::string_view::npos) << made.status();
        EXPECT_EQ(made.fields().find("Vary", at + line.size()), std::string_view::npos)
            << made.status();
    }
}

TEST(file_options, that_are_invalid_are_refused_by_name) {
    file_root root;
    const auto refused = [&](http::files_options options) -> std::string {
        try {
            (void)files_of(root, std::move(options));
        } catch (const std::invalid_argument& why) {
            return why.what();
        }
        return "";
    };
    EXPECT_EQ(refused({}), "");
    for (const char* const index : {".", "..", "a/b", "/index.html", "../x"}) {
        http::files_options options;
        options.index = index;
        EXPECT_NE(refused(options).find("files_options::index is \"" + std::string(index)),
                  std::string::npos);
    }
    http::files_options nul;
    nul.index = std::string("a\0b", 3);
    EXPECT_NE(refused(nul).find("index"), std::string::npos);
    for (const char* const value : {"a\r\nb", " a", "a\n"}) {
        http::files_options options;
        options.cache_control = value;
        EXPECT_NE(refused(options).find("files_options::cache_control"), std::string::npos);
        http::files_options types;
        types.media_types = {{".a", value}};
        EXPECT_NE(refused(types).find("files_options::media_types"), std::string::npos);
    }
    http::files_options ending;
    ending.media_types = {{"gpx", "text/plain"}};
    EXPECT_NE(refused(ending).find("gpx"), std::string::npos);
}

TEST(file_tag, differs_between_files_of_the_same_size_and_time) {
    file_root root;
    root.write("a.txt", "first.");
    root.set_modified("a.txt", 1'577'836'800, 5);
    const http::files files = files_of(root);
    const std::string first = field_of(ask(files, "a.txt"), "ETag");
    EXPECT_TRUE(first.starts_with('"') && first.ends_with('"')) << first;
    EXPECT_EQ(field_of(ask(files, "a.txt"), "ETag"), first);
    EXPECT_EQ(ask(files, "a.txt", "If-None-Match: " + first + "\r\n").status(), 304);
    root.write("new", "second");
    root.set_modified("new", 1'577'836'800, 5);
    fs::rename(root.path / "new", root.path / "a.txt");
    EXPECT_EQ(root.status("a.txt").st_mtim.tv_nsec, 5);
    const http::response changed = ask(files, "a.txt", "If-None-Match: " + first + "\r\n");
    EXPECT_EQ(changed.status(), 200);
    EXPECT_EQ(changed.body(), "second");
    const std::string second = field_of(changed, "ETag");
    EXPECT_NE(first, second);
    EXPECT_EQ(ask(files, "a.txt", "If-Match: " + first + "\r\n").status(), 412);
    const std::string range = "Range: bytes=3-5\r\nIf-Range: ";
    EXPECT_EQ(ask(files, "a.txt", range + first + "\r\n").body(), "second");
    EXPECT_EQ(ask(files, "a.txt", range + second + "\r\n").body(), "ond");
}

TEST(file_tag, changes_with_the_content_even_if_the_files_time_is_set_back) {
    file_root root;
    root.write("a.txt", "first.");
    root.set_modified("a.txt", 1'577'836'800, 5);
    const http::files files = files_of(root);
    const std::string first = field_of(ask(files, "a.txt"), "ETag");
    const struct stat before = root.status("a.txt");
    struct stat after = before;
    while (after.st_ctim.tv_nsec == before.st_ctim.tv_nsec) {  // for the kernel's next tick
        root.write("a.txt", "second");
        root.set_modified("a.txt", 1'577'836'800, 5);
        after = root.status("a.txt");
    }
    ASSERT_EQ(after.st_ino, before.st_ino);
    const http::response changed = ask(files, "a.txt", "If-None-Match: " + first + "\r\n");
    EXPECT_EQ(changed.body(), "second");
    EXPECT_NE(field_of(changed, "ETag"), first);
}

TEST(file_extremes, any_time_of_a_file_is_served_as_a_date) {
    file_root root;
    root.write("a.txt", "x");
    const http::files files = files_of(root);
    for (const std::int64_t seconds :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{-1}, std::int64_t{-62'135'596'801},
          std::int64_t{1} << 31, std::int64_t{1} << 33, std::int64_t{253'402'300'799},
          std::int64_t{253'402'300'800}, std::int64_t{1} << 40, std::int64_t{1} << 55,
          INT64_MAX - 1, INT64_MAX, INT64_MIN, INT64_MIN + 1}) {
        root.set_modified("a.txt", seconds);  // as far as the file system can
        const http::response answer = ask(files, "a.txt");
        ASSERT_EQ(answer.status(), 200) << seconds;
        const std::string modified = field_of(answer, "Last-Modified");
        const auto date = http::parse_date(modified, 0);
        ASSERT_TRUE(date) << modified;
        // RFC 9110 section 8.8.2.1: not in the future.
        EXPECT_GE(*date, 0);
        EXPECT_LE(*date, std::time(nullptr));
        EXPECT_EQ(ask(files, "a.txt", "If-Match: " + field_of(answer, "ETag") + "\r\n").status(),
                  200);
    }
}

TEST(file_extremes, any_date_of_a_condition_is_compared_or_ignored) {
    file_root root;
    root.write("a.txt", "x");
    root.set_modified("a.txt", 1'577'836'800);  // 2020-01-01
    const http::files files = files_of(root);
    struct date {
        const char* text;
        int if_modified;
        int if_unmodified;
    };
    for (const date& k : {
             date{"Fri, 31 Dec 9999 23:59:59 GMT", 304, 200},
             date{"Fri, 31 Dec 9999 23:59:60 GMT", 304, 200},
             date{"Mon, 01 Jan 0001 00:00:00 GMT", 200, 412},
             date{"Mon, 01 Jan 0000 00:00:00 GMT", 200, 200},
             date{"Thu, 01 Jan 1970 00:00:00 GMT", 200, 412},
             date{"Wed, 31 Dec 1969 23:59:59 GMT", 200, 412},
             date{"Mon, 29 Feb 2100 00:00:00 GMT", 200, 200},
             date{"Mon, 31 Apr 2021 00:00:00 GMT", 200, 200},
             date{"Mon, 99 Dec 9999 99:99:99 GMT", 200, 200},
             date{"Fri, 31 Dec 99999 23:59:59 GMT", 200, 200},
             date{"Wednesday, 01-Jan-20 00:00:00 GMT", 304, 200},
             date{"Sun Nov  6 08:49:37 1994", 200, 412},
             date{"Sun Nov  0 08:49:37 1994", 200, 200},
             date{"-1", 200, 200},
             date{"18446744073709551615", 200, 200},
             date{"", 200, 200},
         }) {
        const std::string text = std::string(k.text) + "\r\n";
        EXPECT_EQ(ask(files, "a.txt", "If-Modified-Since: " + text).status(), k.if_modified)
            << k.text;
        EXPECT_EQ(ask(files, "a.txt", "If-Unmodified-Since: " + text).status(), k.if_unmodified)
            << k.text;
        // Exactly this date, otherwise the whole file.
        const bool same = text == "Wednesday, 01-Jan-20 00:00:00 GMT\r\n";
        EXPECT_EQ(ask(files, "a.txt", "Range: bytes=0-0\r\nIf-Range: " + text).status(),
                  same ? 206 : 200)
            << k.text;
    }
}

TEST(file_extremes, any_number_in_a_range_is_served_refused_or_ignored) {
    file_root root;
    root.write("a.txt", "0123456789");
    root.write("huge", "");
    constexpr std::int64_t huge = std::int64_t{1} << 40;
    ASSERT_EQ(::truncate((root.path / "huge").c_str(), huge), 0);
    const http::files files = files_of(root);
    struct range {
        const char* text;
        int status;
        const char* content_range;
    };
    for (const range& k : {
             range{"0-18446744073709551615", 206, "bytes 0-9/10"},
             range{"9-18446744073709551614", 206, "bytes 9-9/10"},
             range{"18446744073709551615-", 416, "bytes */10"},
             range{"18446744073709551615-18446744073709551615", 416, "bytes */10"},
             range{"18446744073709551614-18446744073709551615", 416, "bytes */10"},
             range{"9223372036854775807-9223372036854775808", 416, "bytes */10"},
             range{"-18446744073709551615", 206, "bytes 0-9/10"},
             range{"-9223372036854775808", 206, "bytes 0-9/10"},
             range{"18446744073709551616-", 200, ""},
             range{"0-18446744073709551616", 200, ""},
             range{"-18446744073709551616", 200, ""},
             range{"00000000000000000000000000000001-2", 206, "bytes 1-2/10"},
             range{"+1-2", 200, ""},
             range{"-+1", 200, ""},
             range{"--1", 200, ""},
             range{"0x1-2", 200, ""},
             range{"1 - 2", 200, ""},
             range{"", 200, ""},
             range{",", 200, ""},
             range{",,1-1,,", 200, ""},
         }) {
        const http::response answer =
            ask(files, "a.txt", "Range: bytes=" + std::string(k.text) + "\r\n");
        EXPECT_EQ(answer.status(), k.status) << k.text;
        EXPECT_EQ(field_of(answer, "Content-Range"), k.content_range) << k.text;
    }
    std::string many = "Range: bytes=0-0";
    for (int i = 0; i != 10'000; ++i) many += ",1-1";
    EXPECT_EQ(ask(files, "a.txt", many + "\r\n").body(), "0123456789");
    const http::response far = ask(files, "huge", "Range: bytes=1099511627770-\r\n");
    EXPECT_EQ(far.status(), 206);
    EXPECT_EQ(far.body(), std::string_view("\0\0\0\0\0\0", 6));
    EXPECT_EQ(field_of(ask(files, "huge", "Range: bytes=-1\r\n"), "Content-Range"),
              "bytes 1099511627775-1099511627775/1099511627776");
}

}  // namespace
