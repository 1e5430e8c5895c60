// What handlers, filters, and callbacks own may use the loops of their server until it is
// destroyed.
#include <coppice/http/client.hpp>
#include <coppice/http/server.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <exception>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace {

using namespace coppice;
using namespace coppice::test;
using http::request;
using http::response;

using owned_client = std::shared_ptr<std::optional<http::client>>;

class lifetime_on : public testing::TestWithParam<io::backend> {
protected:
    static http::router answers() {
        http::router r;
        r.get("/ok", [](request&) { return response::text("hello"); });
        return r;
    }
    static way one_loop() { return {GetParam(), http::model::single, 1}; }
    // The client is made on the loop; every copy of the handler shares it.
    static owned_client make_client(http::server_options& o) {
        auto client = std::make_shared<std::optional<http::client>>();
        o.on_loop = [weak = std::weak_ptr(client)](io::context& loop) {
            if (const owned_client c = weak.lock()) c->emplace(loop);
        };
        return client;
    }
    // Sends one request, so that the client in the server keeps a connection until the server ends.
    static void ask(http::server_options o, http::router routes) {
        running_server proxy(std::move(o), std::move(routes));
        client visitor(proxy.port());
        ASSERT_TRUE(visitor.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
        EXPECT_EQ(body_of(visitor.receive()), "hello");
    }

    running_server upstream{options_of(one_loop()), answers()};
};

INSTANTIATE_TEST_SUITE_P(rings, lifetime_on,
                         testing::Values(io::backend::epoll, io::backend::uring),
                         [](const auto& instance) {
                             return instance.param == io::backend::epoll ? "epoll" : "uring";
                         });

TEST_P(lifetime_on, a_handler_may_own_a_client_of_its_loop) {
    http::server_options o = options_of(one_loop());
    http::router r;
    r.get("/", [c = make_client(o), to = upstream->local()](request&) -> task<response> {
        auto answer = co_await (*c)->get(to, "/ok");
        co_return response::text(std::string(answer.body()));
    });
    ask(std::move(o), std::move(r));
}

TEST_P(lifetime_on, a_callback_may_own_a_client_of_its_loop) {
    http::server_options o = options_of(one_loop());
    auto c = std::make_shared<std::optional<http::client>>();
    o.on_exception = [c](const std::exception_ptr&) {};
    o.on_loop = [c](io::context& loop) { c->emplace(loop); };
    const std::weak_ptr weak = std::exchange(c, nullptr);
    http::router r;
    r.get("/", [weak, to = upstream->local()](request&) -> task<response> {
        auto answer = co_await (*weak.lock())->get(to, "/ok");
        co_return response::text(std::string(answer.body()));
    });
    ask(std::move(o), std::move(r));
}

TEST_P(lifetime_on, a_server_that_never_ran_destroys_its_handlers_once) {
    const auto counted = std::make_shared<int>(0);
    {
        http::router r;
        r.get("/", [counted](request&) { return response::text("x"); });
        const http::server never(options_of(one_loop()), std::move(r));
        EXPECT_EQ(counted.use_count(), 2);
    }
    EXPECT_EQ(counted.use_count(), 1);
}

class on_loop_of : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, on_loop_of, testing::ValuesIn(every_way), name_of_way);

TEST_P(on_loop_of, an_exception_on_any_loop_ends_the_server_and_leaves_run) {
    const int loops = static_cast<int>(loops_of(GetParam()));
    for (int failing = 0; failing != loops; ++failing) {
        http::server_options o = options_of(GetParam());
        internal::atomic<int> begun{0};
        o.on_loop = [&](io::context&) {
            if (begun.fetch_add(1, internal::relaxed) == failing) {
                throw std::runtime_error("not here");
            }
        };
        http::router r;
        r.get("/", [](request&) { return response::text("x"); });
        http::server server(std::move(o), std::move(r));
        server.drain_on({SIGUSR1});
        std::string caught;
        try {
            server.run();
        } catch (const std::runtime_error& error) {
            caught = error.what();
        }
        EXPECT_EQ(caught, "not here") << failing;
        EXPECT_EQ(begun.load(internal::relaxed), loops);
    }
}

}  // namespace
