// The bytes that a server keeps for its clients, and what happens when they, or memory, run out.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/json.hpp>
#include <coppice/http/multipart.hpp>
#include <coppice/http/pause.hpp>

#include "allocations.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

// Stands for a type that a JSON library reads: text without an 'e'.
struct document {
    std::string text;
};

}  // namespace

template <>
struct coppice::http::json_codec<document> {
    static std::optional<document> parse(std::string_view text) {
        if (text.find('e') != text.npos) return std::nullopt;
        return document{std::string(text)};
    }
};

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

constexpr std::size_t kibibyte = 1024;
constexpr std::size_t budget = 1024 * kibibyte;

// Handlers at /held/... wait for this after the body.
atomic<bool> go_on{true};
atomic<int> held{0};

task<> hold(request& q) {
    if (!q.path().starts_with("/held/")) co_return;
    held.fetch_add(1, release);
    while (!go_on.load(acquire)) {
        co_await execution::unstoppable(q.loop().get_scheduler().schedule());
    }
}
task<response> read_document(request& q) {
    const document d = co_await http::read_json<document>(q);
    co_await hold(q);
    co_return response::text(std::to_string(d.text.size()));
}
task<response> read_form(request& q) {
    const http::multipart_form form = co_await http::read_multipart(q);
    co_await hold(q);
    co_return response::text(std::to_string(form.text("a").value_or("").size()));
}
// Reads in pieces, as handlers do that collect a body in their own way.
task<response> read_and_keep(request& q) {
    std::string text;
    for (;;) {
        const std::string_view piece = co_await q.incoming().read();
        if (piece.empty()) break;
        q.incoming().keep(piece.size());
        text.append(piece);
    }
    co_await hold(q);
    co_return response::text(std::to_string(text.size()));
}

http::router routes() {
    http::router r;
    const auto size_of_body = [](request& q) {
        return response::text(std::to_string(q.body().size()));
    };
    const auto read_all = [](request& q) -> task<response> {
        std::size_t size = 0;
        for (;;) {
            const std::string_view piece = co_await q.incoming().read();
            if (piece.empty()) break;
            size += piece.size();
        }
        co_return response::text(std::to_string(size));
    };
    r.get("/plain", [](request&) { return response::text("plain"); })
        .get("/large", [](request&) { return response::text(std::string(16u << 20, 'x')); })
        .get("/soon",
             [](request& q) -> task<response> {
                 co_await http::pause(q, 1ms);
                 co_return response::text("soon");
             })
        .get("/stream",
             [](request&) {
                 return response().body(http::stream([](http::body_writer& out) -> task<> {
                     for (int i = 0; i != 100; ++i) co_await out.write(std::string(1000, 'x'));
                 }));
             })
        .post("/size", size_of_body)
        .post("/read", http::read_body(read_all));
    for (const char* const prefix : {"", "/held"}) {
        r.group(prefix)
            .post("/json", http::read_body(read_document))
            .post("/form", http::read_body(read_form))
            .post("/keep", http::read_body(read_and_keep));
    }
    r.with([](request& q, http::next_handler next) -> task<response> {
         q.set(std::string(100, 'x'));
         co_await http::pause(q, 1ms);
         co_return co_await next();
     })
        .post("/filtered", http::read_body(read_all))
        .get("/refused",
             [](request& q) { return response::text(std::to_string(q.require_query<int>("n"))); });
    return r;
}
std::string post(std::string_view path, std::size_t length) {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
}
std::string post_chunked(std::string_view path) {
    return "POST " + std::string(path) +
           " HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
}
std::string chunk(std::size_t size) {
    char head[24];
    std::snprintf(head, sizeof head, "%zx\r\n", size);
    return head + std::string(size, 'x') + "\r\n";
}
constexpr std::string_view get_plain = "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n";
bool is_served(client& c) {
    return c.send(get_plain) && body_of(c.receive()) == "plain";
}
// The test's timeout bounds this wait.
template <class F>
void wait_until(F done) {
    while (!done()) std::this_thread::yield();
}

class budgets : public testing::TestWithParam<way> {
protected:
    static http::server_options options() {
        http::server_options o = options_of(GetParam());
        o.buffered_bytes_max = budget;
        return o;
    }
};
INSTANTIATE_TEST_SUITE_P(ways, budgets, testing::ValuesIn(every_way), name_of_way);

// Waits until the server keeps that many bytes for all its clients.
void wait_for_bytes(http::server& s, std::uint64_t bytes) {
    wait_until([&] { return s.statistics().bytes_received >= bytes; });
}

TEST_P(budgets, a_request_beyond_the_budget_gets_503_and_others_are_served) {
    for (const bool chunked : {false, true}) {
        SCOPED_TRACE(chunked);
        running_server server(options(), routes());
        client first(server.port()), second(server.port()), third(server.port());
        const std::string head = chunked ? post_chunked("/size") : post("/size", 300 * kibibyte);
        const std::string half = chunked ? chunk(200 * kibibyte) : std::string(200 * kibibyte, 'x');
        ASSERT_TRUE(first.send(head + half));
        wait_for_bytes(*server, head.size() + half.size());
        // For the second request, a declared length is refused at once, and chunks when they
        // arrive.
        ASSERT_TRUE(second.send(chunked ? head : post("/size", 900 * kibibyte)));
        for (int i = 0; chunked && i != 16; ++i) (void)second.send(chunk(64 * kibibyte));
        const std::string answer = second.receive();
        EXPECT_TRUE(has_status(answer, 503)) << answer;
        EXPECT_NE(answer.find("\r\nRetry-After: 1\r\n"), answer.npos) << answer;
        EXPECT_NE(answer.find("\r\nConnection: close\r\n"), answer.npos) << answer;
        EXPECT_TRUE(is_served(third));
        // The first request has its room, and gives it back.
        const std::string rest =
            chunked ? chunk(100 * kibibyte) + "0\r\n\r\n" : std::string(100 * kibibyte, 'x');
        ASSERT_TRUE(first.send(rest));
        EXPECT_EQ(body_of(first.receive()), std::to_string(300 * kibibyte));
        // Another loop may see the room a little later than the first client gets its answer.
        for (std::string again; again != std::to_string(300 * kibibyte);) {
            client next(server.port());
            ASSERT_TRUE(next.send(head + half + rest));
            again = next.receive();
            if (!has_status(again, 503)) {
                ASSERT_TRUE(has_status(again, 200)) << again;
                again = body_of(again);
            }
        }
    }
}

TEST_P(budgets, memory_of_clients_that_leave_is_given_back) {
    running_server server(options(), routes());
    const std::string half = post("/size", 700 * kibibyte) + std::string(500 * kibibyte, 'x');
    std::uint64_t bytes = 0;
    for (int i = 0; i != 10; ++i) {
        client c(server.port());
        ASSERT_TRUE(c.send(half));
        wait_for_bytes(*server, bytes += half.size());
        c.reset();
        wait_until([&] { return server->statistics().open == 0; });
    }
    client last(server.port());
    ASSERT_TRUE(last.send(half + std::string(200 * kibibyte, 'x')));
    EXPECT_EQ(body_of(last.receive()), std::to_string(700 * kibibyte));
}

TEST_P(budgets, heads_that_do_not_end_are_counted_too) {
    http::server_options o = options();
    o.buffered_bytes_max = 64 * kibibyte;
    running_server server(std::move(o), routes());
    std::vector<std::unique_ptr<client>> clients;
    int refused = 0;
    for (int i = 0; i != 40; ++i) {
        clients.push_back(std::make_unique<client>(server.port()));
        ASSERT_TRUE(clients.back()->send("GET /plain HTTP/1.1\r\nHost: a\r\nX: y"));
    }
    // Requests that were let in wait; the others are answered.
    for (const auto& c : clients) {
        wait_until([&] { return server->statistics().accepted == 40; });
        (void)c->send("z");
        char byte;
        timeval soon{0, 20'000};
        ::setsockopt(c->fd(), SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
        refused += ::recv(c->fd(), &byte, 1, MSG_PEEK) > 0;
    }
    EXPECT_GT(refused, 0);
    EXPECT_LT(refused, 40);
    clients.clear();
    wait_until([&] { return server->statistics().open == 0; });
    client after(server.port());
    ASSERT_TRUE(after.send("GET /plain HTTP/1.1\r\nHo"));
    ASSERT_TRUE(after.send("st: a\r\n\r\n"));
    EXPECT_EQ(body_of(after.receive()), "plain");
}

TEST_P(budgets, unread_answers_beyond_the_budget_end_with_a_reset) {
    running_server server(options(), routes());
    std::vector<std::unique_ptr<client>> clients;
    for (int i = 0; i != 8; ++i) {
        clients.push_back(std::make_unique<client>(server.port()));
        ASSERT_TRUE(
            clients.back()->send("GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    }
    // The last request that exceeds the budget is let through, so a client that reads is always
    // served.
    wait_until([&] { return server->statistics().open < 8; });
    client other(server.port());
    EXPECT_TRUE(is_served(other));
    int whole = 0;
    for (const auto& c : clients) {
        bool reset = false;
        const std::string answer = c->receive_all(&reset);
        whole += answer.size() > (16u << 20);
        if (answer.size() <= (16u << 20)) {
            EXPECT_TRUE(reset);
        }
    }
    EXPECT_LT(whole, 8);
    client after(server.port());
    ASSERT_TRUE(after.send("GET /large HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_EQ(body_of(after.receive()).size(), 16u << 20);
}

TEST_P(budgets, without_a_budget_only_requests_that_arrive_whole_are_served) {
    http::server_options o = options();
    o.buffered_bytes_max = 0;
    running_server server(std::move(o), routes());
    client c(server.port());
    for (int i = 0; i != 3; ++i) EXPECT_TRUE(is_served(c));
    ASSERT_TRUE(c.send(post("/size", 10)));
    EXPECT_TRUE(has_status(c.receive(), 503));
}

// A body of `size` bytes and its framing, as the handler at the path reads it.
struct whole_body {
    std::string head, begin, content, end;
    std::string all() const { return head + begin + content + end; }
};
whole_body body_for(std::string_view path, std::size_t size) {
    whole_body b;
    std::string type = "application/json";
    if (path.ends_with("/form")) {
        type = "multipart/form-data; boundary=B";
        b.begin = "--B\r\nContent-Disposition: form-data; name=a\r\n\r\n";
        b.end = "\r\n--B--";
    }
    b.content.assign(size, 'x');
    b.head = post(path, b.begin.size() + size + b.end.size());
    b.head.insert(b.head.size() - 2, "Content-Type: " + type + "\r\n");
    return b;
}

TEST_P(budgets, bytes_that_handlers_keep_count_while_the_handlers_run) {
    for (const std::string path : {"/json", "/form", "/keep"}) {
        SCOPED_TRACE(path);
        go_on.store(false, relaxed);
        held.store(0, relaxed);
        running_server server(options(), routes());
        client first(server.port()), second(server.port()), third(server.port());
        ASSERT_TRUE(first.send(body_for("/held" + path, 400 * kibibyte).all()));
        while (held.load(acquire) == 0) std::this_thread::yield();
        // It would fit by itself.
        (void)second.send(body_for(path, 700 * kibibyte).all());
        const std::string answer = second.receive();
        EXPECT_TRUE(has_status(answer, 503)) << answer;
        EXPECT_NE(answer.find("\r\nRetry-After: 1\r\n"), answer.npos) << answer;
        EXPECT_NE(answer.find("\r\nConnection: close\r\n"), answer.npos) << answer;
        EXPECT_TRUE(is_served(third));
        go_on.store(true, release);
        EXPECT_EQ(body_of(first.receive()), std::to_string(400 * kibibyte));
        // The room is free again; another loop may see it a little later.
        const std::size_t size = (path == "/form" ? 400 : 700) * kibibyte;
        for (std::string again; again != std::to_string(size);) {
            client next(server.port());
            (void)next.send(body_for(path, size).all());
            again = next.receive();
            if (!has_status(again, 503)) {
                ASSERT_TRUE(has_status(again, 200)) << again;
                again = body_of(again);
            }
        }
    }
}

TEST_P(budgets, bytes_that_handlers_kept_are_given_back_however_they_end) {
    running_server server(options(), routes());
    for (const std::string path : {"/json", "/form", "/keep"}) {
        SCOPED_TRACE(path);
        whole_body malformed = body_for(path, 300 * kibibyte);
        malformed.content.back() = 'e';
        if (path == "/form") malformed.end = "\r\n--B-x";
        for (int i = 0; i != 8; ++i) {
            client c(server.port());
            ASSERT_TRUE(c.send(malformed.all()));
            EXPECT_TRUE(has_status(c.receive(), path == "/keep" ? 200 : 400));
            // The client leaves in the middle of the body.
            const whole_body half = body_for(path, 400 * kibibyte);
            const std::uint64_t before = server->statistics().bytes_received;
            const std::string sent = half.head + half.begin + half.content.substr(0, 300'000);
            client gone(server.port());
            ASSERT_TRUE(gone.send(sent));
            wait_for_bytes(*server, before + sent.size());
            gone.reset();
            c.reset();
            wait_until([&] { return server->statistics().open == 0; });
        }
        client last(server.port());
        ASSERT_TRUE(last.send(body_for(path, 400 * kibibyte).all()));
        EXPECT_EQ(body_of(last.receive()), std::to_string(400 * kibibyte));
    }
}

const std::string trailer = "0\r\nA: " + std::string(100, 'b') + "\r\n\r\n";

// What one client requests in a row, each time on a new connection.
const std::vector<std::string> questions = {
    std::string(get_plain),
    std::string(get_plain) + std::string(get_plain) + std::string(get_plain),
    "GET /soon HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /none HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /none?" + std::string(3000, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n",
    post("/size", 100'000) + std::string(100'000, 'x'),
    post_chunked("/size") + chunk(50'000) + chunk(50'000) + trailer,
    post("/read", 100'000) + std::string(100'000, 'x'),
    post_chunked("/read") + chunk(100'000) + trailer,
    post("/filtered", 100'000) + std::string(100'000, 'x'),
    "GET /refused?n=1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /refused?n=x HTTP/1.1\r\nHost: a\r\n\r\n",
    post("/none", 10'000) + std::string(10'000, 'x'),
    body_for("/json", 50'000).all(),
    body_for("/form", 50'000).all(),
};

// What the server may send when it has no memory: a whole answer, an error, or nothing.
void ask(const std::string& question, std::uint16_t port) {
    client c(port);
    if (!c.send(question)) return;
    c.finish_sending();
    const std::string all = c.receive_all();
    if (all.empty() || has_status(all, 400) || has_status(all, 404) || has_status(all, 500) ||
        has_status(all, 503))
        return;
    EXPECT_TRUE(has_status(all, 200)) << all.substr(0, 200);
}

TEST_P(budgets, each_failed_allocation_ends_at_most_one_connection) {
    if (!fail_allocation(0)) GTEST_SKIP() << "operator new is the sanitizer's";
    for (const std::string& question : questions) {
        SCOPED_TRACE(question.substr(0, 40));
        for (std::size_t n = 1;; ++n) {
            ASSERT_LT(n, 500u);
            http::server_options o = options();
            o.buffered_bytes_max.reset();
            o.timeouts.handler = 5s;
            o.on_exception = [](std::exception_ptr) {};
            atomic<std::size_t> loops{0};
            o.on_loop = [&](io::context&) { loops.fetch_add(1, relaxed); };
            running_server server(std::move(o), routes());
            client kept(server.port());
            ASSERT_TRUE(is_served(kept));
            wait_until([&] { return loops.load(relaxed) == loops_of(GetParam()); });
            fail_allocation(n);
            ask(question, server.port());
            const bool failed = allocation_has_failed();
            ASSERT_TRUE(is_served(kept)) << n;
            client after(server.port());
            ASSERT_TRUE(is_served(after)) << n;
            if (!failed) break;
        }
    }
}

}  // namespace
