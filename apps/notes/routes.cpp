// The handlers of coppice-notes. All suspend while the database works.
#include "routes.hpp"

#include "json.hpp"

#include <cstdio>
#include <exception>
#include <utility>

namespace notes {

namespace {

using namespace coppice;
using http::request;
using http::response;

constexpr std::size_t text_bytes_max = 64 * 1024;

void append_note(std::string& out, const note& n) {
    out.append("{\"id\":").append(std::to_string(n.id)).append(",\"text\":");
    append_string(out, n.text);
    out.push_back('}');
}

response problem(int status, std::string_view what) {
    std::string body = "{\"error\":";
    append_string(body, what);
    body += "}";
    return response::json(std::move(body), status);
}

// Returns the text of a note to keep, or the answer that says what is wrong with it.
std::optional<std::string> text_in(const request& r, std::optional<response>& refused) {
    std::optional<std::string> text = string_member(r.body(), "text");
    if (!text) {
        refused = problem(400, "the body must be {\"text\": \"...\"}");
    } else if (text->size() > text_bytes_max) {
        refused = problem(413, "a note has 65536 bytes at most");
        text.reset();
    }
    return text;
}

task<response> list(store& s, request& r) {
    const std::vector<note> all = co_await s.list(r.loop());
    std::string body = "[";
    for (const note& n : all) {
        if (body.size() != 1) body.push_back(',');
        append_note(body, n);
    }
    body.push_back(']');
    co_return response::json(std::move(body));
}

task<response> find(store& s, request& r) {
    const std::int64_t id = r.parameter<std::int64_t>("id").value_or(0);
    const std::optional<note> found = co_await s.find(r.loop(), id);
    if (!found) co_return problem(404, "there is no such note");
    std::string body;
    append_note(body, *found);
    co_return response::json(std::move(body));
}

task<response> add(store& s, request& r) {
    std::optional<response> refused;
    std::optional<std::string> text = text_in(r, refused);
    if (!text) co_return std::move(*refused);
    note made{0, *text};
    made.id = co_await s.add(r.loop(), std::move(*text));
    std::string body;
    append_note(body, made);
    co_return response::json(std::move(body), 201)
        .add("Location", "/notes/" + std::to_string(made.id));
}

task<response> replace(store& s, request& r) {
    std::optional<response> refused;
    std::optional<std::string> text = text_in(r, refused);
    if (!text) co_return std::move(*refused);
    const std::int64_t id = r.parameter<std::int64_t>("id").value_or(0);
    const bool done = co_await s.replace(r.loop(), id, std::move(*text));
    if (!done) co_return problem(404, "there is no such note");
    co_return response(204);
}

task<response> remove(store& s, request& r) {
    const std::int64_t id = r.parameter<std::int64_t>("id").value_or(0);
    const bool done = co_await s.remove(r.loop(), id);
    if (!done) co_return problem(404, "there is no such note");
    co_return response(204);
}

using answer_of = task<response> (*)(store&, request&);

// Returns what an operation answers, or 503 if the database cannot answer.
task<response> available(answer_of operation, store& s, request& r) {
    try {
        co_return co_await operation(s, r);
    } catch (const unavailable& e) {
        std::fprintf(stderr, "coppice-notes: %s\n", e.what());
    }
    co_return problem(503, "the database does not answer").add("Retry-After", "1");
}

}  // namespace

http::router make_routes(store& s) {
    const auto over = [&s](answer_of operation) {
        return [&s, operation](request& r) { return available(operation, s, r); };
    };
    http::router routes;
    routes.get("/notes", over(list))
        .post("/notes", over(add))
        .get("/notes/{id:int}", over(find))
        .put("/notes/{id:int}", over(replace))
        .del("/notes/{id:int}", over(remove))
        .get("/healthz", [](request&) { return response::text("ok\n"); });
    return routes;
}

}  // namespace notes
