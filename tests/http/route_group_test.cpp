// http/router.hpp: groups of routes, and which filters a request passes in which order.
#include <coppice/exec/sync_wait.hpp>
#include <coppice/http/next.hpp>
#include <coppice/http/router.hpp>
#include <coppice/http/server.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using http::next_handler;
using http::request;
using http::request_head;
using http::response;
using http::router;

// Adds its name to the request on the way to the handler, and to the answer on the way back.
struct trail {
    std::string text;
};
struct named {
    std::string name;
    task<response> operator()(request& r, next_handler next) const {
        if (r.find<trail>() == nullptr) r.set(trail{});
        r.get<trail>().text += name;
        response answer = co_await next();
        answer.body(std::string(answer.body()) + name);
        co_return answer;
    }
};
response show(request& r) {
    const trail* const t = r.find<trail>();
    return response::text((t == nullptr ? "" : t->text) + "|");
}
task<response> show_later(request& r) {
    co_return show(r);
}

// Returns what the handler at the path answers; "none" if there is no handler.
std::string at(const router& routes, std::string_view path, http::method verb = http::method::get) {
    const auto found = routes.match(verb, path);
    if (found.handler == nullptr) return "none";
    request_head head;
    request r(head, "", found.parameters);
    if (!found.handler->is_asynchronous()) return std::string(found.handler->answer(r).body());
    const auto answer = this_thread::sync_wait(found.handler->start(r));
    return std::string(std::get<0>(*answer).body());
}

TEST(route_group, filters_run_from_the_outermost_in_and_back_whenever_they_were_added) {
    router routes;
    routes.get("/before", show);
    auto api = routes.group("/api");
    api.get("/first", show_later);
    auto admin = api.group("/admin").use(named{"4"});
    admin.get("/x", show);
    routes.use(named{"1"});
    api.use(named{"2"}).use(named{"3"});
    routes.with(named{"8"}, named{"9"}).get("/with", show);
    api.with(named{"7"}).get("/with", show).get("", show);
    admin.use(named{"5"}).get("/y", show_later);
    EXPECT_EQ(at(routes, "/before"), "1|1");
    EXPECT_EQ(at(routes, "/api/first"), "123|321");
    EXPECT_EQ(at(routes, "/api/admin/x"), "12345|54321");
    EXPECT_EQ(at(routes, "/api/admin/y"), "12345|54321");
    EXPECT_EQ(at(routes, "/with"), "189|981");
    EXPECT_EQ(at(routes, "/api/with"), "1237|7321");
    EXPECT_EQ(at(routes, "/api"), "1237|7321");
    EXPECT_EQ(at(routes, "/api/admin"), "none");
}

TEST(route_group, a_handler_without_filters_is_unchanged) {
    router routes;
    routes.get("/plain", show);
    routes.group("/group").get("/plain", show);
    routes.with(named{"1"}).get("/filtered", show);
    const auto asynchronous = [&](std::string_view path) {
        const auto found = routes.match(http::method::get, path);
        EXPECT_TRUE(found.handler->is_plain());
        return found.handler->is_asynchronous();
    };
    EXPECT_FALSE(asynchronous("/plain"));
    EXPECT_FALSE(asynchronous("/group/plain"));
    EXPECT_TRUE(asynchronous("/filtered"));
}

TEST(route_group, a_prefix_may_have_parameters_and_routes_are_as_strict_as_without) {
    router routes;
    auto user = routes.group("/users/{id:int}");
    user.get("", [](request& r) { return response::text(r.parameter("id").value_or("?")); })
        .get("/posts/{post}", [](request& r) {
            return response::text(r.parameter("id").value_or("?") + " " +
                                  r.parameter("post").value_or("?"));
        });
    EXPECT_EQ(at(routes, "/users/7"), "7");
    EXPECT_EQ(at(routes, "/users/7/posts/a%20b"), "7 a b");
    EXPECT_EQ(at(routes, "/users/x"), "none");
    EXPECT_THROW(user.get("", show), std::invalid_argument);
    EXPECT_THROW(user.get("posts", show), std::invalid_argument);
    EXPECT_THROW(user.get("/{id}", show), std::invalid_argument);
    EXPECT_THROW(routes.group("/{rest...}").get("/x", show), std::invalid_argument);
    EXPECT_THROW(routes.group("api"), std::invalid_argument);
    EXPECT_THROW(routes.group("/api/"), std::invalid_argument);
    EXPECT_THROW(routes.group("/"), std::invalid_argument);
    EXPECT_THROW(routes.use(std::shared_ptr<http::filter>()), std::invalid_argument);
    EXPECT_THROW(user.use(std::shared_ptr<http::filter>()), std::invalid_argument);
    EXPECT_EQ(at(routes, "/users/7"), "7");
}

TEST(route_group, a_pattern_never_extends_the_last_segment_of_its_prefix) {
    router routes;
    EXPECT_THROW(routes.group("/api").get("items", show), std::invalid_argument);
    EXPECT_THROW(routes.group("/api").any("{id}", show), std::invalid_argument);
    EXPECT_THROW(routes.group("/{i").get("d}", show), std::invalid_argument);
    EXPECT_THROW(routes.group("/{i").get("", show), std::invalid_argument);
    EXPECT_THROW(routes.group("/{i").get("/d}", show), std::invalid_argument);
    EXPECT_THROW(routes.group("/a").group("/b").get("c", show), std::invalid_argument);
    EXPECT_THROW(routes.group("/a").group("").get("c", show), std::invalid_argument);
    EXPECT_THROW(routes.group("").get("c", show), std::invalid_argument);
    EXPECT_THROW(routes.group("").get("", show), std::invalid_argument);
    EXPECT_EQ(at(routes, "/apiitems"), "none");
    EXPECT_EQ(at(routes, "/api7"), "none");
    EXPECT_EQ(at(routes, "/7"), "none");
    EXPECT_EQ(at(routes, "/a/bc"), "none");
    EXPECT_EQ(at(routes, "/ac"), "none");
    routes.group("/api").get("/items", show).get("", show).get("/", show);
    EXPECT_NE(at(routes, "/api/items"), "none");
    EXPECT_NE(at(routes, "/api"), "none");
    EXPECT_NE(at(routes, "/api/"), "none");
}

TEST(route_group, a_chain_of_calls_gives_a_group_that_can_be_kept) {
    router routes;
    auto api = routes.group("/api").use(named{"1"}).get("/a", show).use(named{"2"});
    static_assert(std::is_same_v<decltype(api), http::route_group>);
    static_assert(std::is_same_v<decltype(api.use(named{"3"})), http::route_group>);
    static_assert(std::is_same_v<decltype(api.get("/a", show)), http::route_group>);
    static_assert(std::is_same_v<decltype(routes.get("/a", show)), router&>);
    auto same = api.get("/b", show);
    same.use(named{"3"});
    EXPECT_EQ(at(routes, "/api/a"), "123|321");
    EXPECT_EQ(at(routes, "/api/b"), "123|321");
}

TEST(route_group, an_empty_function_is_refused_as_a_filter) {
    router routes;
    routes.get("/", show);
    using function = task<response>(request&, next_handler);
    std::function<function> empty;
    function* const none = nullptr;
    EXPECT_THROW(routes.use(empty), std::invalid_argument);
    EXPECT_THROW(routes.use(std::function<function>()), std::invalid_argument);
    EXPECT_THROW(routes.use(none), std::invalid_argument);
    EXPECT_THROW(routes.group("/g").use(empty), std::invalid_argument);
    EXPECT_THROW(routes.with(empty), std::invalid_argument);
    EXPECT_EQ(at(routes, "/"), "|");
    empty = named{"1"};
    routes.use(empty);
    EXPECT_EQ(at(routes, "/"), "1|1");
}

static_assert(!std::is_copy_constructible_v<next_handler>);
static_assert(std::is_nothrow_move_constructible_v<next_handler>);

TEST(route_group, every_method_can_be_added_to_a_group) {
    router routes;
    const auto code = [](int status) {
        return [status](request&) { return response::text(std::to_string(status)); };
    };
    routes.group("/g")
        .get("/a", code(1))
        .post("/a", code(2))
        .put("/a", code(3))
        .del("/a", code(4))
        .patch("/a", code(5))
        .options("/a", code(6))
        .head("/a", code(7))
        .any("/a", code(8));
    using http::method;
    const method verbs[] = {method::get,   method::post,    method::put,  method::del,
                            method::patch, method::options, method::head, method::trace};
    for (std::size_t i = 0; i != std::size(verbs); ++i) {
        EXPECT_EQ(at(routes, "/g/a", verbs[i]), std::to_string(i + 1));
    }
}

TEST(route_group, a_moved_router_keeps_its_filters) {
    router routes;
    routes.group("/g").use(named{"1"}).get("/a", show);
    router moved(std::move(routes));
    EXPECT_EQ(at(moved, "/g/a"), "1|1");
    moved.use(named{"0"});
    EXPECT_EQ(at(moved, "/g/a"), "01|10");
    router assigned;
    assigned.with(named{"9"}).get("/b", show);
    assigned = std::move(moved);
    EXPECT_EQ(at(assigned, "/g/a"), "01|10");
    EXPECT_EQ(at(assigned, "/b"), "none");
}

TEST(next_handler, may_be_called_twice_or_not_at_all_and_its_task_may_be_dropped) {
    int calls = 0;
    router routes;
    routes
        .with([](request&, next_handler next) -> task<response> {
            (void)co_await next();
            co_return co_await next();
        })
        .get("/twice", [&](request&) { return response::text(std::to_string(++calls)); });
    routes
        .with([](request&, next_handler next) -> task<response> {
            {
                const task<response> dropped = next();
            }
            co_return response::text("alone");
        })
        .get("/dropped", [&](request&) { return response::text(std::to_string(++calls)); });
    EXPECT_EQ(at(routes, "/twice"), "2");
    EXPECT_EQ(at(routes, "/dropped"), "alone");
    EXPECT_EQ(calls, 2);
}

TEST(next_handler, goes_through_any_number_of_filters_in_a_small_stack) {
    router routes;
    auto all = routes.group("/all").get("/x", show_later);
    constexpr int count = 3000;
    int passed = 0;
    for (int i = 0; i != count; ++i) {
        all.use([&passed](request&, next_handler next) -> task<response> {
            ++passed;
            response answer = co_await next();
            ++passed;
            co_return answer;
        });
    }
    EXPECT_EQ(at(routes, "/all/x"), "|");
    EXPECT_EQ(passed, 2 * count);
}

// A filter that is not a task.
class marking final : public http::filter {
public:
    explicit marking(std::string name) : name_(std::move(name)) {}
    std::optional<response> before(const request& r) const override {
        EXPECT_EQ(r.body(), "");
        if (r.find("X-Deny") == name_) return response::status(403);
        return std::nullopt;
    }
    void after(const request&, response& answer) const override { answer.add("X-Passed", name_); }

private:
    std::string name_;
};

std::vector<std::string> passed(const std::string& answer) {
    std::vector<std::string> names;
    for (std::size_t i = 0; (i = answer.find("X-Passed: ", i)) != answer.npos; i += 10) {
        names.push_back(answer.substr(i + 10, answer.find("\r\n", i) - i - 10));
    }
    return names;
}

class route_group_on : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, route_group_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(route_group_on, filters_that_are_not_tasks_see_only_heads_and_answers_of_their_routes) {
    router routes;
    const auto post = [](request& r) { return response::text(std::string(r.body())); };
    auto api = routes.group("/api").post("/early", post);
    api.use(std::make_shared<marking>("api"));
    api.group("/inner")
        .use(std::make_shared<marking>("inner"))
        .use(named{"!"})
        .post("/x", post)
        .get("/throws", [](request&) -> response { throw std::runtime_error("fault"); });
    routes.post("/free", post).use(std::make_shared<marking>("all"));
    http::server_options o = options_of(GetParam());
    o.on_exception = [](std::exception_ptr) {};
    running_server server(std::move(o), std::move(routes));
    const auto ask = [&](const std::string& line, const std::string& fields = "") {
        client c(server.port());
        EXPECT_TRUE(
            c.send(line + " HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n" + fields + "\r\nbody"));
        return c.receive();
    };
    using names = std::vector<std::string>;
    EXPECT_EQ(passed(ask("POST /free")), (names{"all"}));
    EXPECT_EQ(passed(ask("POST /api/early")), (names{"api", "all"}));
    const std::string inner = ask("POST /api/inner/x");
    EXPECT_EQ(passed(inner), (names{"inner", "api", "all"}));
    EXPECT_EQ(body_of(inner), "body!");
    const std::string denied = ask("POST /api/inner/x", "X-Deny: api\r\n");
    EXPECT_TRUE(has_status(denied, 403));
    EXPECT_EQ(passed(denied), (names{"inner", "api", "all"}));
    const std::string thrown = ask("GET /api/inner/throws");
    EXPECT_TRUE(has_status(thrown, 500));
    EXPECT_EQ(passed(thrown), (names{"inner", "api", "all"}));
    for (const char* const line : {"GET /api/none", "GET /api/inner/x", "OPTIONS /api/early"}) {
        EXPECT_EQ(passed(ask(line)), (names{"all"})) << line;
    }
    // The head is enough for a refusal.
    client waits(server.port());
    ASSERT_TRUE(
        waits.send("POST /api/early HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"
                   "Content-Length: 4\r\nX-Deny: api\r\n\r\n"));
    EXPECT_TRUE(has_status(waits.receive(), 403));
}

}  // namespace
