// The trial of 66_rest: a client that prints the answers, then ends the service by a SIGTERM.
#pragma once

#include <coppice/http.hpp>
#include <coppice/io.hpp>

#include <sys/types.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

class rest_trial {
public:
    explicit rest_trial(coppice::io::endpoint service)
        : thread_([service] {
              coppice::io::run([&](coppice::io::context& loop) { return visit(loop, service); });
          }) {}
    ~rest_trial() { thread_.join(); }

private:
    static coppice::task<> ask(coppice::http::client& client, coppice::io::endpoint to,
                               std::string_view method, std::string_view target,
                               std::string_view fields = {}, std::string_view body = {}) {
        coppice::http::client_request question{.to = to, .target = target, .method = method};
        question.fields = fields;
        question.body = body;
        const auto answer = co_await client.send(std::move(question));
        const std::string text(answer.body());
        std::printf("%s %s: %d %s\n", std::string(method).c_str(), std::string(target).c_str(),
                    answer.status(), text.c_str());
    }
    static coppice::task<> visit(coppice::io::context& loop, coppice::io::endpoint to) {
        coppice::http::client client(loop);
        const std::string form = "Content-Type: application/x-www-form-urlencoded\r\n";
        const std::string sid = "Cookie: sid=s3cret\r\n";
        const std::string json = "Content-Type: application/json\r\n" + sid;
        co_await ask(client, to, "GET", "/notes");
        co_await ask(client, to, "POST", "/login", form, "password=open");
        co_await ask(client, to, "POST", "/notes", json, R"({"title": "one", "text": "1"})");
        co_await ask(client, to, "POST", "/notes", json, R"({"title": ""})");
        co_await ask(client, to, "POST", "/notes", json, R"({"title": 1})");
        co_await ask(client, to, "POST", "/notes", sid, "title=one");
        co_await ask(client, to, "PUT", "/notes/1", json, R"({"title": "two"})");
        co_await ask(client, to, "GET", "/notes", sid);
        co_await ask(client, to, "DELETE", "/notes/1", sid);
        co_await ask(client, to, "GET", "/notes/1", sid);
        co_await ask(client, to, "GET", "/nowhere");
        ::kill(::getpid(), SIGTERM);
    }

    std::thread thread_;
};
