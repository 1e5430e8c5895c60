// http/form.hpp: fields of application/x-www-form-urlencoded bodies as values.
#include <coppice/http/form.hpp>

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "allocations.hpp"

namespace {

using namespace coppice;
using http::urlencoded_form;

constexpr std::string_view right_type = "application/x-www-form-urlencoded";

// A request with that body; without a Content-Type if `type` is "".
class posted {
public:
    explicit posted(std::string body, std::string_view type = right_type) : body_(std::move(body)) {
        bytes_ = "POST / HTTP/1.1\r\nHost: a\r\n";
        if (!type.empty()) bytes_.append("Content-Type: ").append(type).append("\r\n");
        bytes_.append("Content-Length: ").append(std::to_string(body_.size())).append("\r\n\r\n");
        const http::parse_result result = http::parse_head(bytes_, head_, {});
        EXPECT_EQ(result.status, http::parse_status::complete) << result.reason;
    }
    http::request request() const { return {head_, body_}; }
    int refused(std::size_t fields_max = urlencoded_form::fields_max_default) const {
        try {
            const urlencoded_form form(request(), fields_max);
        } catch (const http::status_error& error) {
            return error.status();
        }
        return 0;
    }

private:
    std::string bytes_;
    std::string body_;
    http::request_head head_;
};

TEST(urlencoded_form, fields_are_values_of_their_types) {
    const posted p("n=-7&b=true&x=2.5&t=a+b%26c&tag=1&tag=2&%6eame=v&empty");
    const urlencoded_form form(p.request());
    EXPECT_EQ(form.size(), 8u);
    EXPECT_EQ(form.get<int>("n"), -7);
    EXPECT_EQ(form.get<unsigned>("n"), std::nullopt);
    EXPECT_EQ(form.get<bool>("b"), true);
    EXPECT_EQ(form.get<double>("x"), 2.5);
    EXPECT_EQ(form.get("t"), "a b&c");
    EXPECT_EQ(form.find("t"), "a+b%26c");
    EXPECT_EQ(form.get_all<int>("tag"), (std::vector<int>{1, 2}));
    EXPECT_EQ(form.get("name"), "v");
    EXPECT_EQ(form.find("empty"), "");
    EXPECT_EQ(form.find("absent"), std::nullopt);
    EXPECT_EQ(form.get_optional<int>("absent"), std::nullopt);
    EXPECT_EQ(form.get_optional<int>("n"), -7);
    EXPECT_EQ(form.require<long>("n"), -7);
}

template <class Ask>
std::string refusal(Ask ask) {
    try {
        ask();
    } catch (const http::status_error& error) {
        EXPECT_EQ(error.status(), 400);
        return error.what();
    }
    return "";
}

TEST(urlencoded_form, names_the_field_that_is_missing_or_malformed) {
    const posted p("n=x&m=1");
    const urlencoded_form form(p.request());
    EXPECT_NE(refusal([&] { form.require<int>("n"); }).find("'n' must be an integer"),
              std::string::npos);
    EXPECT_NE(refusal([&] { form.require("q"); }).find("'q' is missing"), std::string::npos);
    EXPECT_NE(refusal([&] { form.get_optional<int>("n"); }), "");
    EXPECT_NE(refusal([&] { form.get_all<int>("n"); }), "");
    EXPECT_EQ(refusal([&] { form.require<int>("m"); }), "");
}

TEST(urlencoded_form, other_media_types_are_refused) {
    EXPECT_EQ(posted("a=1", "").refused(), 415);
    for (const char* const type : {"text/plain", "application/json", "x", "application/"})
        EXPECT_EQ(posted("a=1", type).refused(), 415) << type;
    EXPECT_EQ(posted("a=1", std::string(right_type) + "\r\nContent-type: text/plain").refused(),
              400);
    EXPECT_EQ(posted("a=1", "Application/X-WWW-Form-Urlencoded; charset=utf-8").refused(), 0);
}

TEST(urlencoded_form, a_malformed_escape_or_a_nul_anywhere_is_refused) {
    for (const char* const body : {"%", "a=%", "a=%4", "a=%4g", "a=1&b=%zz", "%=1", "a=%00", "%00"})
        EXPECT_EQ(posted(body).refused(), 400) << body;
    EXPECT_EQ(posted(std::string(1, '\0')).refused(), 400);
    for (int c = 1; c != 0x100; ++c) {
        if (c == '%') continue;
        EXPECT_EQ(posted(std::string(3, static_cast<char>(c))).refused(), 0) << c;
    }
}

TEST(urlencoded_form, the_number_of_fields_has_a_limit) {
    EXPECT_EQ(posted("a&b=&&=&").refused(3), 0);
    EXPECT_EQ(posted("a&b=&&=&").refused(2), 413);
    EXPECT_EQ(posted("").refused(0), 0);
    EXPECT_EQ(posted("a").refused(0), 413);
    std::string many;
    for (int i = 0; i != 1001; ++i) many += "a&";
    EXPECT_EQ(posted(many).refused(), 413);
}

TEST(urlencoded_form, is_read_without_an_allocation) {
    const posted p("a=1&b=2");
    const test::allocation_count count;
    const urlencoded_form form(p.request());
    EXPECT_EQ(form.require<int>("b"), 2);
    EXPECT_EQ(count.so_far(), 0u);
}

}  // namespace
