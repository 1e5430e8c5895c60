// A server of each kind whose filters are tasks: what the tests of http/next.hpp share.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "running_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::test {

struct visitor {
    std::string name;
};

class filter_tasks_on : public testing::TestWithParam<way> {
protected:
    // Like a query of a database: on threads that are not the server's.
    static task<http::response> admits_visitors(http::request& r, http::next_handler next) {
        std::string name(r.find("X-User").value_or(""));
        co_await elsewhere.get_scheduler().schedule();
        if (name.empty()) co_return http::response::status(401);
        r.set(visitor{std::move(name)});
        http::response answer = co_await next();
        answer.add("X-Seen", "yes");
        co_return answer;
    }
    static http::response greet(http::request& r) {
        return http::response::text("hello " + r.get<visitor>().name);
    }
    static task<http::response> greet_later(http::request& r) {
        co_await http::pause(r, std::chrono::milliseconds(1));
        co_return greet(r);
    }
    static task<http::response> read_all(http::request& r) {
        std::string all;
        for (;;) {
            const std::string_view piece = co_await r.incoming().read();
            if (piece.empty()) break;
            all += piece;
        }
        co_return http::response::text("read " + std::to_string(all.size()));
    }
    http::server_options options() {
        http::server_options o = options_of(GetParam());
        o.on_exception = [this](std::exception_ptr) { exceptions.fetch_add(1, internal::relaxed); };
        return o;
    }
    static std::string ask(std::uint16_t port, const std::string& line,
                           const std::string& fields = "", const std::string& body = "") {
        client c(port);
        EXPECT_TRUE(c.send(line + " HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n" + body));
        return c.receive(line.starts_with("HEAD"));
    }

    static inline thread_pool elsewhere{1};
    internal::atomic<int> exceptions{0};
};

}  // namespace coppice::test
