// The trial that 51_fetch runs without arguments: a server on its own thread, and URLs to fetch.
#pragma once

#include <coppice/http.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

class fetch_trial {
public:
    fetch_trial() : thread_([this] { server_.run(); }) {}
    ~fetch_trial() {
        server_.drain();
        thread_.join();
    }
    std::vector<std::string> urls() const {
        const std::string at = "http://localhost:" + std::to_string(server_.port());
        return {at + "/hello", at + "/moved",           at + "/busy",
                at + "/loop",  "https://localhost/tls", at + "/ctrl-c"};
    }

private:
    using request = coppice::http::request;
    using response = coppice::http::response;

    static coppice::http::server_options options() {
        coppice::http::server_options o;
        o.endpoint = coppice::io::loopback(0);
        o.model = coppice::http::model::single;
        return o;
    }
    coppice::http::router routes() {
        coppice::http::router r;
        r.get("/hello", [](request&) { return response::text("hello"); })
            .get("/moved", [](request&) { return response(302).add("Location", "/hello"); })
            .get("/loop", [](request&) { return response(302).add("Location", "/loop"); })
            .get("/busy",
                 [this](request&) {
                     if (asked_.fetch_add(1) == 0) return response(503);
                     return response::text("at last");
                 })
            .get("/ctrl-c", [](request& q) -> coppice::task<response> {
                ::kill(::getpid(), SIGINT);  // stands for a user pressing Ctrl-C
                co_await coppice::http::pause(q, std::chrono::hours(1));
                co_return response::text("never");
            });
        return r;
    }

    std::atomic<int> asked_{0};
    coppice::http::server server_{options(), routes()};
    std::thread thread_;
};
