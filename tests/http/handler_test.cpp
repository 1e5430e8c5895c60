// http/handler.hpp: what a handler may be, and how a router collects them.
#include <coppice/http/handler.hpp>
#include <coppice/http/router.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <type_traits>

namespace {

using namespace coppice::http;

TEST(handler, may_be_a_function_a_move_only_callable_or_a_task) {
    const handler plain([](request&) { return response::text("plain"); });
    const handler owner([p = std::make_unique<int>(7)](request&) { return response(200 + *p); });
    const handler later([](request&) -> coppice::task<response> { co_return response(204); });
    request_head head;
    request r(head, "");
    EXPECT_FALSE(plain.is_asynchronous());
    EXPECT_EQ(plain.answer(r).body(), "plain");
    EXPECT_EQ(owner.answer(r).status(), 207);
    EXPECT_TRUE(later.is_asynchronous());
    static_assert(!std::is_constructible_v<handler, int>);
    static_assert(!std::is_constructible_v<handler, void (*)()>);
}

TEST(handler, may_not_be_an_empty_function) {
    using function = std::function<response(request&)>;
    using async_function = std::function<coppice::task<response>(request&)>;
    EXPECT_THROW(handler{function()}, std::invalid_argument);
    EXPECT_THROW(handler{async_function()}, std::invalid_argument);
    EXPECT_THROW(handler{offload(function())}, std::invalid_argument);
    EXPECT_THROW(handler{read_body(async_function())}, std::invalid_argument);
    response (*none)(request&) = nullptr;
    EXPECT_THROW(handler{none}, std::invalid_argument);
    router routes;
    EXPECT_THROW(routes.get("/a", function()), std::invalid_argument);
    routes.get("/a", function([](request&) { return response(200); }));
}

TEST(router, finds_the_handler_of_each_method_and_lists_the_allowed_methods) {
    const auto code = [](int status) { return [status](request&) { return response(status); }; };
    router routes;
    routes.get("/a", code(201))
        .post("/a", code(202))
        .put("/a", code(203))
        .del("/a", code(204))
        .head("/b", code(205))
        .any("/c", code(206));
    request_head head;
    request r(head, "");
    const auto status = [&](method m, std::string_view path) {
        const auto found = routes.match(m, path);
        return found.handler == nullptr ? 0 : found.handler->answer(r).status();
    };
    EXPECT_EQ(status(method::get, "/a"), 201);
    EXPECT_EQ(status(method::head, "/a"), 201);
    EXPECT_EQ(status(method::post, "/a"), 202);
    EXPECT_EQ(status(method::put, "/a"), 203);
    EXPECT_EQ(status(method::del, "/a"), 204);
    EXPECT_EQ(status(method::head, "/b"), 205);
    EXPECT_EQ(status(method::get, "/b"), 0);
    EXPECT_EQ(status(method::patch, "/c"), 206);
    EXPECT_EQ(routes.match(method::patch, "/a").allowed.to_string(),
              "GET, HEAD, POST, PUT, DELETE");
    EXPECT_THROW(routes.get("/a", code(200)), std::invalid_argument);
    EXPECT_THROW(routes.get("a", code(200)), std::invalid_argument);
}

}  // namespace
