// Fetches URLs, at most eight at once, each with a time limit, retries and redirects; Ctrl-C stops
// all. Without arguments it fetches from a server of its own.
// [top]
#include <coppice/coppice.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace coppice;
// [/top]

namespace {

// Milliseconds.
long long since(std::chrono::steady_clock::time_point began) {
    return (std::chrono::steady_clock::now() - began) / std::chrono::milliseconds(1);
}

// [fetch]
// Fetches one URL and prints what became of it.
task<> fetch(http::client& client, std::string url) {
    http::client_request request;
    request.url = url;
    const auto began = std::chrono::steady_clock::now();
    try {
        const http::client_response answer =
            co_await execution::timeout(client.send(request), std::chrono::seconds(5));
        const http::url from(answer.url());
        std::printf("%d, %zu bytes from %s\n", answer.status(), answer.body().size(),
                    std::string(from.path()).c_str());
        std::fprintf(stderr, "%s took %lld ms\n", url.c_str(), since(began));
    } catch (const std::system_error& error) {
        std::printf("%s\n", error.what());
    }
}

// Takes the next URL until there is none.
task<> work(http::client& client, const std::vector<std::string>& urls, std::size_t& next) {
    while (next != urls.size()) co_await fetch(client, urls[next++]);
}

task<> fetch_all(io::context& loop, std::vector<std::string> urls, std::size_t at_once) {
    http::client_options options;
    options.redirects_max = 5;
    options.retries = 2;
    options.connections_per_host_max = 4;
    http::client client(loop, options);
    std::size_t next = 0;
    std::vector<task<>> workers;
    for (std::size_t i = 0; i != at_once; ++i) workers.push_back(work(client, urls, next));
    co_await execution::when_all_range(std::move(workers));
}
// [/fetch]

// What is fetched if nothing else is given; on a thread of its own.
class fetched_server {
public:
    fetched_server() : server_(options(), routes()), thread_([this] { server_.run(); }) {}
    ~fetched_server() {
        server_.drain();
        thread_.join();
    }
    std::vector<std::string> urls() const {
        const std::string at = "http://localhost:" + std::to_string(server_.port());
        return {at + "/hello", at + "/moved", at + "/busy", at + "/loop", "https://localhost/tls"};
    }

private:
    using request = http::request;
    using response = http::response;

    static http::server_options options() {
        http::server_options o;
        o.endpoint = io::loopback(0);
        o.model = http::model::single;
        return o;
    }
    http::router routes() {
        http::router r;
        r.get("/hello", [](request&) { return response::text("hello"); })
            .get("/moved", [](request&) { return response(302).add("Location", "/hello"); })
            .get("/loop", [](request&) { return response(302).add("Location", "/loop"); })
            .get("/busy", [this](request&) {
                if (asked_.fetch_add(1) == 0) return response(503);
                return response::text("at last");
            });
        return r;
    }

    std::atomic<int> asked_{0};
    http::server server_;
    std::thread thread_;
};

}  // namespace

int main(int count, char** arguments) {
    std::vector<std::string> urls(arguments + 1, arguments + count);
    std::optional<fetched_server> server;
    std::size_t at_once = 8;
    if (urls.empty()) {
        urls = server.emplace().urls();
        at_once = 1;  // so that the lines have an order
    }
    const bool done = io::run([&](io::context& loop) { return fetch_all(loop, urls, at_once); },
                              {.stop_on = {SIGINT}});
    if (!done) std::puts("stopped");
}
