// Filters: a task that looks up a session, a group of routes, a value that is handed to the
// handler, typed parameters, and a filter for one route.
#include <coppice/coppice.hpp>

#include <cstdio>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

using namespace coppice;

namespace {

// [session]
struct member {
    std::string name;
    bool is_admin;
};

// Stands for a database whose calls block. They are made on a thread of its own.
class sessions {
public:
    task<std::optional<member>> find(std::string key) {
        co_await worker_.get_scheduler().schedule();
        const auto found = known_.find(key);
        if (found == known_.end()) co_return std::nullopt;
        co_return found->second;
    }

private:
    const std::map<std::string, member> known_{{"k1", {"ada", true}}, {"k2", {"bob", false}}};
    thread_pool worker_{1};
};

// Answers in place of the handler, or hands the member to it.
class session_filter {
public:
    explicit session_filter(sessions& of) : sessions_(&of) {}
    task<http::response> operator()(http::request& r, http::next_handler next) const {
        std::optional<member> found =
            co_await sessions_->find(std::string(r.find("X-Session").value_or("")));
        if (!found) co_return http::response::status(401);
        r.set(std::move(*found));
        co_return co_await next();
    }

private:
    sessions* sessions_;
};

task<http::response> admins_only(http::request& r, http::next_handler next) {
    if (!r.get<member>().is_admin) throw http::status_error(403, "for administrators");
    co_return co_await next();
}
// [/session]

// [handlers]
http::response list(http::request& r) {
    const int page = r.optional_query<int>("page").value_or(1);
    std::string text = r.get<member>().name + " reads page " + std::to_string(page);
    for (const std::string& tag : r.query_all("tag")) text += ", " + tag;
    return http::response::text(std::move(text));
}
http::response remove(http::request& r) {
    const auto id = r.require_parameter<unsigned>("id");
    return http::response::text(r.get<member>().name + " removes " + std::to_string(id));
}
// [/handlers]

// [routes]
http::router routes(sessions& known) {
    http::router routes;
    routes.get("/health", [](http::request&) { return http::response::text("fine"); });
    auto api = routes.group("/api").use(session_filter(known));
    api.get("/items", list);
    api.with(admins_only).post("/items/{id:int}/remove", remove);
    return routes;
}
// [/routes]

// Sends a request on a connection of its own, and prints the answer's status and body.
task<> ask(io::context& loop, io::endpoint to, std::string line, std::string session) {
    io::tcp::socket socket(loop);
    co_await socket.connect(to);
    const std::string request = line + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n" +
                                "X-Session: " + session + "\r\n\r\n";
    co_await socket.send_all(std::as_bytes(std::span(request)));
    std::string answer;
    for (;;) {
        const io::pooled_buffer some = co_await socket.receive_pooled();
        if (some.empty()) break;
        answer.append(reinterpret_cast<const char*>(some.bytes().data()), some.bytes().size());
    }
    const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
    std::printf("%s: %s %s\n", line.c_str(), answer.substr(9, 3).c_str(), body.c_str());
}

task<> visit(io::context& loop, http::server& server) {
    const io::endpoint to = server.local();
    co_await ask(loop, to, "GET /health", "");
    co_await ask(loop, to, "GET /api/items", "");
    co_await ask(loop, to, "GET /api/items?page=2&tag=a&tag=b+c", "k2");
    co_await ask(loop, to, "GET /api/items?page=two", "k2");
    co_await ask(loop, to, "POST /api/items/7/remove", "k2");
    co_await ask(loop, to, "POST /api/items/7/remove", "k1");
    server.drain();
}

}  // namespace

int main() {
    sessions known;
    http::server server({.endpoint = io::loopback(0), .threads = 1}, routes(known));
    std::thread visitor([&] {
        io::context loop;
        std::optional<io::context::work_guard> guard(loop);
        std::thread network([&] { loop.run(); });
        this_thread::sync_wait(execution::starts_on(loop.get_scheduler(), visit(loop, server)));
        guard.reset();
        network.join();
    });
    server.run();
    visitor.join();
}
