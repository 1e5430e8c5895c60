// http/request.hpp: values that filters hand on, and parameters as values.
#include <coppice/http/internal/request_values.hpp>
#include <coppice/http/parameters.hpp>
#include <coppice/http/request.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace shop {

enum class color { red, green };
bool parse_parameter(std::string_view text, color& value) {
    if (text != "red" && text != "dark green") return false;
    value = text == "red" ? color::red : color::green;
    return true;
}

}  // namespace shop

namespace {

using coppice::http::bad_request;
using coppice::http::head_parser;
using coppice::http::path_parameters;
using coppice::http::request;
using coppice::http::request_head;
using coppice::http::status_error;

struct noted {
    noted(std::vector<int>& to, int n) : list(&to), number(n) {}
    noted(noted&& other) noexcept : list(other.list), number(std::exchange(other.number, 0)) {}
    ~noted() {
        if (number != 0) list->push_back(number);
    }
    std::vector<int>* list;
    int number;
};
struct first : noted {
    using noted::noted;
};
struct second : noted {
    using noted::noted;
};

TEST(request_values, are_kept_by_type_and_destroyed_with_the_request_in_reverse_order) {
    std::vector<int> destroyed;
    request_head head;
    {
        request r(head, "");
        EXPECT_EQ(r.find<first>(), nullptr);
        EXPECT_THROW(r.get<first>(), std::out_of_range);
        first& set = r.set(first(destroyed, 1));
        r.set<second>(second(destroyed, 2));
        EXPECT_EQ(r.find<first>(), &set);
        EXPECT_EQ(r.get<second>().number, 2);
        const request& constant = r;
        EXPECT_EQ(constant.find<first>(), &set);
        EXPECT_EQ(constant.get<first>().number, 1);
        EXPECT_EQ(constant.find<int>(), nullptr);
        EXPECT_THROW(constant.get<int>(), std::out_of_range);
        r.set(first(destroyed, 3));
        EXPECT_EQ(destroyed, (std::vector<int>{1}));
        EXPECT_EQ(r.get<first>().number, 3);
        request moved(std::move(r));
        EXPECT_EQ(moved.get<first>().number, 3);
    }
    EXPECT_EQ(destroyed, (std::vector<int>{1, 3, 2}));
}

struct brittle {
    explicit brittle(int n) : number(n) {}
    brittle(brittle&& other) : number(other.number) {
        if (number < 0) throw std::runtime_error("it breaks");
    }
    int number;
};

TEST(request_values, whose_move_throws_change_nothing) {
    request_head head;
    request r(head, "");
    r.set(brittle(1));
    EXPECT_THROW(r.set(brittle(-1)), std::runtime_error);
    EXPECT_EQ(r.get<brittle>().number, 1);
    r.set(std::make_unique<int>(7));
    EXPECT_EQ(*r.get<std::unique_ptr<int>>(), 7);
}

// Makes a request for /?QUERY, and returns what reading it throws: "STATUS TEXT".
class asked {
public:
    explicit asked(const std::string& query)
        : text_("GET /?" + query + " HTTP/1.1\r\nHost: a\r\n\r\n"),
          parser_(coppice::http::limits{}) {
        EXPECT_EQ(parser_.parse(text_).status, coppice::http::parse_status::complete) << query;
    }
    request operator()(const path_parameters& parameters = {}) const {
        return request(parser_.head(), "", parameters);
    }

private:
    std::string text_;
    head_parser parser_;
};
template <class F>
std::string thrown_by(F&& f) {
    try {
        (void)f();
    } catch (const status_error& error) {
        return std::to_string(error.status()) + " " + error.what();
    } catch (const std::out_of_range&) {
        return "out of range";
    }
    return "nothing";
}

TEST(query, gives_a_number_a_bool_a_text_or_a_user_type) {
    const asked a("i=-7&b=true&c=0&f=-2.5e2&s=a%20b+c&own=dark+green&empty=&none");
    const request r = a();
    EXPECT_EQ(r.query<int>("i"), -7);
    EXPECT_EQ(r.query<unsigned>("i"), std::nullopt);
    EXPECT_EQ(r.query<bool>("b"), true);
    EXPECT_EQ(r.query<bool>("c"), false);
    EXPECT_EQ(r.query<bool>("i"), std::nullopt);
    EXPECT_EQ(r.query<double>("f"), -250.0);
    EXPECT_EQ(r.query<float>("s"), std::nullopt);
    EXPECT_EQ(r.query<std::string>("s"), "a b c");
    EXPECT_EQ(r.query<std::string_view>("s"), "a%20b+c");
    EXPECT_EQ(r.query<shop::color>("own"), shop::color::green);
    EXPECT_EQ(r.query<shop::color>("s"), std::nullopt);
    EXPECT_EQ(r.query<int>("empty"), std::nullopt);
    EXPECT_EQ(r.query<bool>("none"), std::nullopt);
    EXPECT_EQ(r.query<double>("absent"), std::nullopt);
    EXPECT_EQ(r.require_query<int>("i"), -7);
    EXPECT_EQ(r.optional_query<int>("i"), -7);
    EXPECT_EQ(r.optional_query<int>("absent"), std::nullopt);
}

TEST(query, as_a_floating_point_number_is_finite_and_whole) {
    for (const char* const text :
         {"nan", "inf", "-inf", "infinity", "1e999", "+1", "%201", "1.5x", "0x10", "", "-", "."}) {
        const asked a("f=" + std::string(text));
        EXPECT_EQ(a().query<double>("f"), std::nullopt) << text;
        EXPECT_EQ(a().query<float>("f"), std::nullopt) << text;
    }
    EXPECT_EQ(asked("f=1e%2B2")().query<double>("f"), 100.0);
    EXPECT_EQ(asked("f=3.5e38")().query<float>("f"), std::nullopt);
}

TEST(query, that_is_absent_or_malformed_gives_400) {
    const asked a("page=x&small=300&n=-1&b=yes&f=abc&own=blue&empty");
    const request r = a();
    EXPECT_EQ(thrown_by([&] { return r.require_query<int>("p"); }),
              "400 query parameter 'p' is missing");
    EXPECT_EQ(thrown_by([&] { return r.require_query<int>("page"); }),
              "400 query parameter 'page' must be an integer from -2147483648 to 2147483647: 'x'");
    EXPECT_EQ(thrown_by([&] { return r.optional_query<std::uint8_t>("small"); }),
              "400 query parameter 'small' must be an integer from 0 to 255: '300'");
    EXPECT_EQ(thrown_by([&] { return r.require_query<std::uint64_t>("n"); }),
              "400 query parameter 'n' must be an integer from 0 to 18446744073709551615: '-1'");
    EXPECT_EQ(thrown_by([&] { return r.require_query<bool>("b"); }),
              "400 query parameter 'b' must be true, false, 1 or 0: 'yes'");
    EXPECT_EQ(thrown_by([&] { return r.require_query<double>("f"); }),
              "400 query parameter 'f' must be a number: 'abc'");
    EXPECT_EQ(thrown_by([&] { return r.require_query<shop::color>("own"); }),
              "400 query parameter 'own' is not valid: 'blue'");
    EXPECT_EQ(thrown_by([&] { return r.require_query<int>("empty"); }).substr(0, 3), "400");
    EXPECT_EQ(r.require_query<std::string>("empty"), "");
}

TEST(query, that_is_refused_is_quoted_in_part_without_harmful_bytes) {
    const asked a("q=%3Cscript%3E'\\&long=" + std::string(5000, 'y'));
    const request r = a();
    EXPECT_EQ(thrown_by([&] { return r.require_query<bool>("q"); }),
              "400 query parameter 'q' must be true, false, 1 or 0: "
              "'%3Cscript%3E\\x27\\x5c'");
    EXPECT_LT(thrown_by([&] { return r.require_query<bool>("long"); }).size(), 200u);
    EXPECT_LT(thrown_by([&] { return r.require_query<bool>(std::string(5000, 'n')); }).size(),
              200u);
}

TEST(query_all, gives_every_value_in_order) {
    const asked a("tag=a&x=1&tag=b+c&t%61g=d&tag&tag=");
    const request r = a();
    EXPECT_EQ(r.query_all("tag"), (std::vector<std::string>{"a", "b c", "d", "", ""}));
    EXPECT_EQ(r.query_all("none"), std::vector<std::string>());
    EXPECT_EQ(r.query_all<int>("x"), std::vector<int>{1});
    EXPECT_EQ(thrown_by([&] { return r.query_all<int>("tag"); }).substr(0, 3), "400");
}

TEST(require_parameter, blames_the_client_for_a_value_and_the_program_for_an_unknown_name) {
    path_parameters parameters;
    parameters.push_back({"id", "x1"});
    parameters.push_back({"name", "a%20b+c"});
    const asked a("");
    const request r = a(parameters);
    EXPECT_EQ(r.require_parameter("name"), "a b+c");
    EXPECT_EQ(thrown_by([&] { return r.require_parameter<std::int16_t>("id"); }),
              "400 path parameter 'id' must be an integer from -32768 to 32767: 'x1'");
    EXPECT_EQ(thrown_by([&] { return r.require_parameter<int>("none"); }), "out of range");
}

TEST(status_error, keeps_its_status_and_text_and_refuses_an_interim_status) {
    const status_error error = bad_request("the text");
    const status_error copy(error);
    EXPECT_EQ(copy.status(), 400);
    EXPECT_STREQ(copy.what(), "the text");
    for (const int status : {0, 199, 600, -1}) {
        EXPECT_DEATH(status_error(status, "x"), "out of range") << status;
    }
}

}  // namespace
