// http/multipart.hpp: the grammar, to the byte and however it is cut; and what handlers get.
#include <coppice/http/multipart.hpp>

#include "multipart_pieces.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using http::multipart_limits;
using http::request;
using http::response;

// The result for the whole body; cut at each place, byte by byte, and in threes it is the same.
std::string said_of(std::string_view body, std::string_view boundary = "B",
                    const multipart_limits& limits = {}) {
    static guarded_bytes memory(1 << 16);
    const std::string whole =
        parse_in_pieces(body, boundary, limits, memory, 0, std::string_view::npos);
    EXPECT_EQ(parse_in_pieces(body, boundary, limits, memory, 0, 1), whole) << "bytewise";
    EXPECT_EQ(parse_in_pieces(body, boundary, limits, memory, 0, 3), whole) << "in threes";
    for (std::size_t at = 1; at < body.size(); ++at) {
        EXPECT_EQ(parse_in_pieces(body, boundary, limits, memory, at, body.npos), whole) << at;
    }
    return whole;
}

// A part with this field and content, between boundaries.
std::string part(std::string_view fields, std::string_view content = "x") {
    std::string text = "--B\r\n";
    text.append(fields).append("\r\n\r\n").append(content).append("\r\n");
    return text;
}
std::string form(std::string_view fields, std::string_view content = "x") {
    return part(fields, content).append("--B--\r\n");
}
const std::string named = "Content-Disposition: form-data; name=\"a\"";

TEST(multipart, parts_come_with_their_names_types_and_contents) {
    std::string body = part(named, "one");
    body += part(
        "content-type: Image/PNG\r\nX-Other: y\r\n"
        "content-disposition: FORM-DATA; filename=\"f.png\"; name=b; size=3",
        "\r\n--\r\n-B\r\r\n");
    body += part("Content-Disposition: form-data; name=\"\"", "");
    EXPECT_EQ(said_of(body + "--B--"),
              "[a|-|text/plain]one[/]"
              "[b|f.png|Image/PNG]\r\n--\r\n-B\r\r\n[/]"
              "[|-|text/plain][/][end]");
    EXPECT_EQ(said_of("--B--\r\n"), "[end]");
}

TEST(multipart, bytes_around_the_parts_are_dropped) {
    EXPECT_EQ(said_of("before\r\n--A\r\n-\r\n" + form(named) + "after\r\n--B\r\n--B--"),
              "[a|-|text/plain]x[/][end]");
    EXPECT_EQ(said_of("\r\n" + form(named)), "[a|-|text/plain]x[/][end]");
    EXPECT_EQ(said_of("--B \t \r\n" + named + "\r\n\r\nx\r\n--B-- \t"),
              "[a|-|text/plain]x[/][end]");
}

TEST(multipart, text_that_resembles_a_boundary_is_content) {
    for (const char* const content :
         {"\r\n--", "\r\n-B", "--B", "x--B--", "\n--A", "\r--C", "\n-\n--", "\r\n\r\n--A",
          "\r\r\n-", "\r", "\r\n", "\r\n--b", "-", "--", "\r\n--\r\n--\r\n-"}) {
        const std::string text = std::string("y").append(content);
        EXPECT_EQ(said_of(form(named, text)), "[a|-|text/plain]" + text + "[/][end]");
    }
    const std::string nested = "--C\r\n" + named + "\r\n\r\nz\r\n--C--\r\n";
    EXPECT_EQ(said_of(form(named, nested)), "[a|-|text/plain]" + nested + "[/][end]");
    // A CR may begin a delimiter, however many CRs come before it.
    EXPECT_EQ(said_of(form(named, "\r\n--\r\n--\r")), "[a|-|text/plain]\r\n--\r\n--\r[/][end]");
}

TEST(multipart, every_byte_is_content) {
    std::string all;
    for (int c = 0; c != 0x100; ++c) all += static_cast<char>(c);
    EXPECT_EQ(said_of(form(named, all)), "[a|-|text/plain]" + all + "[/][end]");
}

TEST(multipart, a_body_without_its_last_boundary_is_refused_wherever_it_ends) {
    const std::string whole = form(named);
    for (std::size_t size = 0; size <= whole.size(); ++size) {
        const std::string said = said_of(whole.substr(0, size));
        const bool complete = size == whole.size() || size + 2 == whole.size();
        EXPECT_EQ(said.find("(400 the form ends before") == said.npos, complete) << size << said;
    }
}

bool is_malformed(const std::string& body) {
    const std::string said = said_of(body);
    return said.find("(400 ") != said.npos && said.find("ends before") == said.npos;
}

TEST(multipart, a_line_that_does_not_end_in_crlf_is_refused) {
    EXPECT_TRUE(is_malformed("--B\n" + named + "\r\n\r\nx\r\n--B--"));
    EXPECT_TRUE(is_malformed("--B\r" + named + "\r\n\r\nx\r\n--B--"));
    EXPECT_TRUE(is_malformed("--B\r\n" + named + "\n\nx\r\n--B--"));
    EXPECT_TRUE(is_malformed("--B\r\n" + named + "\r\r\nx\r\n--B--"));
    EXPECT_TRUE(is_malformed("--B\r\n" + named + "\r\n\nx\r\n--B--"));
    EXPECT_TRUE(is_malformed("--B\r\n\r\nx\r\n--B--"));
    EXPECT_TRUE(is_malformed("--B--\rx"));
}

// Some readers take these for boundaries, and would see other parts than this parser.
TEST(multipart, a_boundary_after_a_bare_cr_or_lf_is_refused_wherever_it_is) {
    const std::string reason = "(400 a boundary in the form is not preceded by CRLF)";
    for (const std::string line : {"\n", "\r", "\n\n", "\n--\r"}) {
        for (const char* const behind : {"--B", "--B\r\n", "--B\n", "--B--", "--B--\r\n", "--BC"}) {
            const std::string held = line + std::string(behind).substr(0, 2);
            EXPECT_EQ(said_of(form(named, "x" + line + behind)),
                      "[a|-|text/plain]x" + held + reason)
                << behind;
            EXPECT_EQ(said_of("before" + line + behind + "\r\n" + form(named)), reason) << behind;
            EXPECT_EQ(said_of(line + behind + form(named)), reason) << behind;
        }
        EXPECT_EQ(said_of(form(named) + line + "--B\n"), "[a|-|text/plain]x[/][end]");
    }
    EXPECT_EQ(said_of("--B\r\n" + named + "\r\n\r\nx\n--B--\n"), "[a|-|text/plain]x\n--" + reason);
    // A boundary may begin with dashes.
    EXPECT_EQ(said_of("----\r\n" + named + "\r\n\r\n\n--x\r\n------", "--"),
              "[a|-|text/plain]\n--x[/][end]");
    EXPECT_EQ(said_of("----\r\n" + named + "\r\n\r\n\n-----\r\n------", "--"),
              "[a|-|text/plain]\n---" + reason);
}

TEST(multipart, a_boundary_with_anything_after_it_is_refused) {
    for (const char* const behind : {"x", "-", "-x", "--x", "\t-", " x", "C\r\n", "\n"})
        EXPECT_TRUE(is_malformed(part(named) + "--B" + behind + "\r\n--B--")) << behind;
    EXPECT_TRUE(is_malformed(form(named, "--B\r\n" + named + "\r\n\r\nx")));
    EXPECT_TRUE(is_malformed(form(named, "--B--\r\n")));
}

TEST(multipart, a_head_that_two_readers_could_read_in_two_ways_is_refused) {
    for (const char* const fields :
         {"X: y",
          "Content-Disposition: attachment; name=\"a\"",
          "Content-Disposition: form-data",
          "Content-Disposition: form-data; filename=\"a\"",
          "Content-Disposition: form-data; name=\"a\"; name=\"b\"",
          "Content-Disposition: form-data; name=\"a\"; NAME=\"b\"",
          "Content-Disposition: form-data; name=\"a\"; filename=\"a\"; filename=\"b\"",
          "Content-Disposition: form-data; name=\"a\r\n b\"",
          "Content-Disposition: form-data; name=\"a",
          "Content-Disposition: form-data; name=\"a\\\"",
          "Content-Disposition: form-data; name=\"a\"; filename*=UTF-8''x",
          "Content-Disposition: form-data; name=\"a\"; FileName*0=x",
          "Content-Disposition: form-data; name=\"a\"; filename*0*=x",
          "Content-Disposition: form-data; name=\"a\"; name*=UTF-8''b",
          "Content-Disposition: form-data; name*0=a; name=\"a\"",
          "Content-Disposition: form-data; name=a[]",
          "Content-Disposition: form-data; name=",
          "Content-Disposition: form-data; name",
          "Content-Disposition: form-data name=\"a\"",
          "Content-Disposition: form-data; name=\"a\"b",
          "Content-Disposition: form-data, name=a",
          "Content-Disposition : form-data; name=\"a\"",
          " Content-Disposition: form-data; name=a",
          ": form-data",
          "Content-Disposition"}) {
        EXPECT_TRUE(is_malformed(form(fields))) << fields;
    }
    EXPECT_TRUE(is_malformed(form(named + "\r\n" + named)));
    EXPECT_TRUE(is_malformed(form(named + "\r\nContent-Type: a/b\r\nContent-Type: a/b")));
    EXPECT_TRUE(is_malformed(form(named + "\r\nContent-Transfer-Encoding: base64")));
    EXPECT_FALSE(is_malformed(form(named + "\r\nContent-Transfer-Encoding: Binary")));
    for (const char control : {'\0', '\x01', '\x1f', '\x7f'}) {
        const std::string name = {'a', control};
        EXPECT_TRUE(is_malformed(form("Content-Disposition: form-data; name=\"" + name + "\"")));
        EXPECT_TRUE(is_malformed(form(named + "\r\nX: " + name)));
    }
}

TEST(multipart, names_are_as_browsers_write_them) {
    const auto name = [](const std::string& sent) {
        const std::string said =
            said_of(form("Content-Disposition: form-data; name=\"a\"; filename=\"" + sent + "\""));
        return said.substr(3, said.find("|text") - 3);
    };
    EXPECT_EQ(name("a\\\"b\\\\c"), "a\"b\\c");
    EXPECT_EQ(name("C:\\dir\\file"), "C:\\dir\\file");
    EXPECT_EQ(name("a%22b;c=\xc3\xa9"), "a%22b;c=\xc3\xa9");
    EXPECT_EQ(name(""), "");
    EXPECT_EQ(said_of(form(named + "; filenames*=x; names*=y")), "[a|-|text/plain]x[/][end]");
}

TEST(multipart, limits_are_exact_to_the_byte) {
    const std::size_t head = named.size() + 4;
    const multipart_limits enough{.part_head_bytes_max = head, .parts_max = 1};
    EXPECT_EQ(said_of(form(named), "B", enough), "[a|-|text/plain]x[/][end]");
    EXPECT_EQ(said_of(form(named), "B", {.part_head_bytes_max = head - 1}),
              "(413 the head of a part of the form is too large)");
    EXPECT_EQ(said_of(part(named) + form(named), "B", enough),
              "[a|-|text/plain]x[/](413 the form has too many parts)");
    EXPECT_EQ(said_of("--B--", "B", {.part_head_bytes_max = 0, .parts_max = 0}), "[end]");
    EXPECT_EQ(said_of(form("X: " + std::string(10'000, 'x'))),
              "(413 the head of a part of the form is too large)");
}

TEST(multipart, an_invalid_boundary_is_an_error) {
    const std::string longest(70, 'x');
    EXPECT_EQ(said_of("--" + longest + "--", longest), "[end]");
    EXPECT_EQ(said_of("--'()+_,-./:=? z--", "'()+_,-./:=? z"), "[end]");
    EXPECT_EQ(said_of("------", "--"), "[end]");
    for (const std::string& none :
         {std::string(), longest + "x", std::string("a "), std::string("a\r\n"),
          std::string("a\"b"), std::string("\xff"), std::string(1, '\0'), std::string("a;b")}) {
        EXPECT_THROW(http::multipart_parser{none}, std::invalid_argument) << none;
    }
}

int status_of_type(std::optional<std::string_view> type) {
    try {
        return static_cast<int>(http::multipart_boundary(type).size());
    } catch (const http::status_error& error) {
        return error.status();
    }
}

TEST(multipart, the_boundary_comes_from_the_content_type) {
    EXPECT_EQ(http::multipart_boundary("multipart/form-data; boundary=abc"), "abc");
    EXPECT_EQ(http::multipart_boundary("Multipart/Form-Data;charset=x; Boundary=\"a b\" ;"), "a b");
    EXPECT_EQ(status_of_type(std::nullopt), 415);
    for (const char* const type :
         {"", "multipart", "multipart/", "multipart/mixed; boundary=a", "text/plain",
          "multipart/form-datax; boundary=a", "/form-data; boundary=a"}) {
        EXPECT_EQ(status_of_type(type), 415) << type;
    }
    for (const char* const type :
         {"multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary",
          "multipart/form-data; boundary=a; boundary=a",
          "multipart/form-data; boundary=a; boundary*=UTF-8''b",
          "multipart/form-data; boundary*0=a; boundary=b", "multipart/form-data; boundary=\"\"",
          "multipart/form-data; boundary=\"a", "multipart/form-data boundary=a",
          "multipart/form-data; boundary=a b", "multipart/form-data; boundary=\"a \"",
          "multipart/form-data; boundary = a"}) {
        EXPECT_EQ(status_of_type(type), 400) << type;
    }
}

TEST(safe_file_name, leads_to_no_other_directory) {
    EXPECT_EQ(http::safe_file_name("photo.jpg"), "photo.jpg");
    EXPECT_EQ(http::safe_file_name("../../etc/passwd"), "passwd");
    EXPECT_EQ(http::safe_file_name("C:\\dir\\a b.txt"), "a b.txt");
    EXPECT_EQ(http::safe_file_name(".htaccess"), "htaccess");
    EXPECT_EQ(http::safe_file_name(std::string_view("a\0b\r\n\x7f.c", 8)), "ab.c");
    EXPECT_EQ(http::safe_file_name(" .. x .. "), "x");
    for (const char* const nothing :
         {"", ".", "..", "...", "/", "a/", "a\\", "..\\..", " . ", "\n"})
        EXPECT_EQ(http::safe_file_name(nothing), "") << nothing;
    EXPECT_EQ(http::safe_file_name(std::string(300, 'x')).size(), 255u);
    std::string accents;
    for (int i = 0; i != 200; ++i) accents += "\xc3\xa9";
    EXPECT_EQ(http::safe_file_name(accents), accents.substr(0, 254));
    EXPECT_EQ(http::safe_file_name(std::string(300, '\x80')), "");
}

// What a handler reads from a form, as text.
std::string described(const http::multipart_form& f) {
    std::string text;
    for (const http::multipart_part& p : f.parts) {
        text.append(p.name).append("/").append(p.filename.value_or("-")).append("=");
        text.append(p.data).append(";");
    }
    return text;
}
task<response> by_pieces(request& r) {
    http::multipart_reader parts(r, {.parts_max = 3});
    std::string text;
    for (;;) {
        const http::multipart_head* const p = co_await parts.next();
        if (p == nullptr) break;
        text.append(p->name).append("=");
        if (p->name == "skip") continue;
        for (;;) {
            const std::string_view piece = co_await parts.read();
            if (piece.empty()) break;
            text.append(piece);
        }
        const std::string_view again = co_await parts.read();
        text.append(again).append(";");
    }
    const http::multipart_head* const end = co_await parts.next();
    const std::string_view none = co_await parts.read();
    if (end != nullptr || !none.empty()) text += "(more)";
    co_return response::text(std::move(text));
}
http::router form_routes() {
    http::router routes;
    const multipart_limits small{.bytes_max = 2000};
    routes
        .post("/whole",
              [small](request& r) {
                  return response::text(described(http::parse_multipart(r, small)));
              })
        .post("/late", http::read_body([small](request& r) -> task<response> {
                  const http::multipart_form f = co_await http::read_multipart(r, small);
                  co_return response::text(described(f));
              }))
        .post("/pieces", http::read_body(by_pieces));
    return routes;
}
std::string message(std::string_view path, std::string_view body,
                    std::string_view type = "multipart/form-data; boundary=B") {
    std::string text = "POST ";
    text.append(path).append(" HTTP/1.1\r\nHost: a\r\nContent-Type: ").append(type);
    text.append("\r\nContent-Length: ").append(std::to_string(body.size())).append("\r\n\r\n");
    return text.append(body);
}

std::string ask(test::client& c, std::string_view bytes) {
    EXPECT_TRUE(c.send(bytes));
    return c.receive();
}

class multipart_on : public testing::TestWithParam<way> {};

TEST_P(multipart_on, handlers_get_forms_whole_and_in_pieces_cut_anywhere) {
    running_server server(options_of(GetParam()), form_routes());
    const std::string body = part(named, "one") +
                             part("Content-Disposition: form-data; name=skip; filename=f", "two") +
                             form("Content-Disposition: form-data; name=c", "three");
    for (const char* const path : {"/whole", "/late"}) {
        test::client c(server.port());
        EXPECT_EQ(body_of(ask(c, message(path, body))), "a/-=one;skip/f=two;c/-=three;") << path;
    }
    const std::string bytes = message("/pieces", body);
    const std::size_t head = bytes.size() - body.size();
    test::client c(server.port());
    for (std::size_t at = head; at < bytes.size(); at += 7) {
        c.send(bytes.substr(0, at));
        EXPECT_EQ(body_of(ask(c, bytes.substr(at))), "a=one;skip=c=three;") << at;
    }
}

TEST_P(multipart_on, errors_of_clients_are_answered_and_never_reach_handlers) {
    running_server server(options_of(GetParam()), form_routes());
    for (const char* const path : {"/whole", "/late", "/pieces"}) {
        const auto status = [&](const std::string& bytes, int expected) {
            test::client c(server.port());
            const std::string answer = ask(c, bytes);
            EXPECT_TRUE(has_status(answer, expected)) << path << answer;
        };
        status(message(path, form(named), "text/plain"), 415);
        status(message(path, form(named), "multipart/form-data"), 400);
        status(message(path, form(named),
                       "multipart/form-data; boundary=B\r\ncontent-type: multipart/form-data"),
               400);
        status(message(path, "--B\r\n" + named), 400);
        status(message(path, form("X: y")), 400);
        status(message(path, ""), 400);
        status(message(path, part(named) + part(named) + part(named) + form(named)),
               path == std::string_view("/pieces") ? 413 : 200);
        status(message(path, form(named, std::string(2000, 'x'))),
               path == std::string_view("/pieces") ? 200 : 413);
    }
}

INSTANTIATE_TEST_SUITE_P(ways, multipart_on, testing::ValuesIn(every_way), name_of_way);

}  // namespace
