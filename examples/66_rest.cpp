// A REST service: notes in memory, JSON by nlohmann-json, errors as JSON, a login by a cookie, and
// a graceful end.
#include <coppice/coppice.hpp>

#include <csignal>
#include <cstdio>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "66_rest_trial.hpp"

using namespace coppice;

// [note]
struct note {
    int id = 0;
    std::string title;
    std::string text;
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(note, id, title, text)
// [/note]

// [codec]
// Teaches coppice to read and write every type that nlohmann-json knows. nlohmann-json copies and
// writes by recursion, and the stack is finite, so deeply nested values are rejected.
template <class T>
    requires nlohmann::detail::is_compatible_type<nlohmann::json, T>::value
struct coppice::http::json_codec<T> {
    using malformed = nlohmann::json::exception;  // the client's fault: 400
    static constexpr std::size_t depth_max = 100;
    static T parse(std::string_view text) { return nlohmann::json::parse(text).get<T>(); }
    static std::string print(const T& value) { return nlohmann::json(value).dump(); }
};
// [/codec]

namespace {

// [notes]
class notes {
public:
    std::vector<note> all() const {
        const std::lock_guard lock(mutex_);
        std::vector<note> copies;
        for (const auto& [id, n] : notes_) copies.push_back(n);
        return copies;
    }
    note find(int id) const {
        const std::lock_guard lock(mutex_);
        const auto at = notes_.find(id);
        if (at == notes_.end()) throw http::status_error(404, "there is no such note");
        return at->second;
    }
    // A new note has the id 0.
    note put(note n) {
        const std::lock_guard lock(mutex_);
        if (n.id == 0) n.id = ++last_;
        return notes_.insert_or_assign(n.id, std::move(n)).first->second;
    }
    void remove(int id) {
        const std::lock_guard lock(mutex_);
        if (notes_.erase(id) == 0) throw http::status_error(404, "there is no such note");
    }

private:
    mutable std::mutex mutex_;
    std::map<int, note> notes_;
    int last_ = 0;
};
// [/notes]

// [filter]
// A real service would look up a random name in a table of sessions.
task<http::response> logged_in(http::request& r, http::next_handler next) {
    if (http::cookie(r, "sid") != "s3cret") throw http::status_error(401, "log in first");
    co_return co_await next();
}
// [/filter]

note checked_note(http::request& r) {
    note n = http::json_body<note>(r);
    n.id = 0;
    if (n.title.empty() || n.title.size() > 80) {
        throw http::status_error(422, "title must have 1 to 80 bytes");
    }
    return n;
}

// [routes]
http::router routes(notes& store) {
    http::router routes;
    routes.use(http::json_errors());
    routes.post("/login", [](http::request& r) {
        const http::urlencoded_form form(r);
        if (form.require("password") != "open") throw http::status_error(403, "wrong password");
        return http::add_cookie(http::response(204), {.name = "sid", .value = "s3cret"});
    });
    auto api = routes.group("/notes").use(logged_in);
    api.get("", [&](http::request&) { return http::json_response(store.all()); });
    api.get("/{id:int}", [&](http::request& r) {
        return http::json_response(store.find(r.require_parameter<int>("id")));
    });
    api.post(
        "", [&](http::request& r) { return http::json_response(store.put(checked_note(r)), 201); });
    api.put("/{id:int}", [&](http::request& r) {
        note n = checked_note(r);
        n.id = store.find(r.require_parameter<int>("id")).id;
        return http::json_response(store.put(std::move(n)));
    });
    api.del("/{id:int}", [&](http::request& r) {
        store.remove(r.require_parameter<int>("id"));
        return http::response(204);
    });
    return routes;
}
// [/routes]

}  // namespace

// [main]
int main() {
    notes store;
    http::server server({.endpoint = io::loopback(0), .threads = 2}, routes(store));
    server.drain_on({SIGINT, SIGTERM});
    const rest_trial visitor(server.local());  // asks for notes, then sends a SIGTERM
    server.run();
    std::puts("drained");
}
// [/main]
