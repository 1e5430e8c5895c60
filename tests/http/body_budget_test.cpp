// Memory for the bodies of answers counts: pieces of files that are not read, and compressors.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/files.hpp>
#include <coppice/http/filters.hpp>
#include <coppice/http/pause.hpp>

#include "file_root.hpp"
#include "inflated.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using namespace std::chrono_literals;
using http::request;
using http::response;

// The test's timeout bounds this wait.
template <class F>
void wait_until(F done) {
    while (!done()) std::this_thread::yield();
}

class body_budgets : public testing::TestWithParam<way> {
protected:
    static http::server_options options(std::size_t budget) {
        http::server_options o = options_of(GetParam());
        o.buffered_bytes_max = budget;
        return o;
    }
};
INSTANTIATE_TEST_SUITE_P(ways, body_budgets, testing::ValuesIn(every_way), name_of_way);

// One piece has 64 KiB, and the one that exceeds the budget is let through.
TEST_P(body_budgets, pieces_of_files_that_are_not_read_count) {
    const file_root root;
    constexpr std::size_t size = 16u << 20;
    root.write("large", std::string(size, 'x'));
    http::router r;
    r.get("/{path...}", http::files(root.path.string()));
    running_server server(options(100'000), std::move(r));
    const auto ask = [&](client& c) {
        return c.send("GET /large HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    };
    std::vector<std::unique_ptr<client>> clients;
    for (int i = 0; i != 8; ++i) {
        clients.push_back(std::make_unique<client>(server.port()));
        ASSERT_TRUE(ask(*clients.back()));
    }
    wait_until([&] { return server->statistics().open <= 2; });
    for (const auto& c : clients) {
        bool reset = false;
        const bool whole = c->receive_all(&reset).size() > size;
        EXPECT_EQ(whole, !reset);
    }
    for (int i = 0; i != 3; ++i) {
        client next(server.port());
        ASSERT_TRUE(ask(next));
        EXPECT_GT(next.receive_all().size(), size);
    }
}

// A compressor has 264 KiB. Without room for it, the body is not compressed.
TEST_P(body_budgets, a_stream_is_compressed_only_if_there_is_room_for_it) {
    atomic<bool> go_on{false};
    atomic<int> begun{0};
    http::router r;
    for (const bool waits : {false, true}) {
        r.get(waits ? "/waits" : "/lines", [&go_on, &begun, waits](request& q) {
            const auto produce = [&go_on, &begun, waits,
                                  loop = &q.loop()](http::body_writer& out) -> task<> {
                for (int i = 0; i != 100; ++i) co_await out.write("a line of text\n");
                begun.fetch_add(1, release);
                while (waits && !go_on.load(acquire)) co_await loop->get_scheduler().schedule();
            };
            return response(200).content_type("text/plain").body(http::stream(produce));
        });
    }
    r.use(http::compression());
    std::string lines;
    for (int i = 0; i != 100; ++i) lines += "a line of text\n";
    const auto question = [](std::string_view path) {
        return "GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
    };
    const auto is_packed = [](const std::string& answer) {
        EXPECT_NE(answer.find("\r\nVary: Accept-Encoding\r\n"), answer.npos);
        return answer.find("\r\nContent-Encoding: gzip\r\n") != answer.npos;
    };
    running_server server(options(400'000), std::move(r));
    client first(server.port());
    // Each gives its memory back, also if the next one is in the same batch.
    for (int i = 0; i != 3; ++i) ASSERT_TRUE(first.send(question("/lines") + question("/lines")));
    for (int i = 0; i != 6; ++i) {
        const std::string answer = first.receive();
        EXPECT_TRUE(is_packed(answer));
        EXPECT_EQ(inflated(body_of(answer)), lines);
    }
    begun.store(0, relaxed);
    ASSERT_TRUE(first.send(question("/waits")));
    wait_until([&] { return begun.load(acquire) != 0; });
    client second(server.port());
    ASSERT_TRUE(second.send(question("/lines")));
    const std::string plain = second.receive();
    EXPECT_FALSE(is_packed(plain));
    EXPECT_EQ(body_of(plain), lines);
    go_on.store(true, release);
    EXPECT_EQ(inflated(body_of(first.receive())), lines);
}

}  // namespace
