// Mixed traffic: honest clients among slow, broken, and vanishing ones. Afterwards the server holds
// no descriptor and no block of memory that it did not hold before. COPPICE_SOAK_SECONDS=600 runs
// it that long; otherwise it ends after a fixed number of rounds.
#include <coppice/http/body.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>

#include "allocations.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <random>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;
using http::request;
using http::response;

std::size_t open_files() {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/self/fd")) {
        ++count;
    }
    return count;
}

// Returns the number of open files when it has fallen to `most`, or no longer falls. A loop may
// still be accepting a client that only connected, or closing a connection that it has counted as
// closed. Such files disappear; leaked ones do not.
std::size_t open_files_settled(std::size_t most) {
    std::size_t count = open_files();
    for (int look = 0; look != 20'000 && count > most; ++look) {
        std::this_thread::yield();
        count = open_files();
    }
    return count;
}

http::router routes() {
    http::router r;
    r.get("/plain", [](request&) { return response::text("plain"); })
        .post("/echo", [](request& q) { return response::text(std::string(q.body())); })
        .get("/pause",
             [](request& q) -> task<response> {
                 co_await http::pause(q, 1h);
                 co_return response::text("never");
             })
        .get("/wait",
             [](request& q) -> task<response> {
                 co_await http::pause(q, 1ms);
                 co_return response::text("waited");
             })
        .get("/compute", http::offload([](request& q) {
                 for (int i = 0; i != 50 && !q.stop_token().stop_requested(); ++i) {
                     std::this_thread::yield();
                 }
                 return response::text("computed");
             }))
        .get("/large",
             [](request&) {
                 const auto produce = [](http::body_writer& out) -> task<> {
                     const std::string piece(10'000, 'x');
                     for (int i = 0; i != 1000; ++i) co_await out.write(piece);
                 };
                 return response(200).body(http::stream(produce));
             })
        .post("/count", http::read_body([](request& q) -> task<response> {
                  std::size_t bytes = 0;
                  for (;;) {
                      const std::string_view piece = co_await q.incoming().read();
                      if (piece.empty()) break;
                      bytes += piece.size();
                  }
                  co_return response::text(std::to_string(bytes));
              }));
    return r;
}

std::string get(const char* path) {
    return std::string("GET ") + path + " HTTP/1.1\r\nHost: a\r\n\r\n";
}

// One connection of one kind of client.
class actor {
public:
    actor(std::uint16_t port, std::uint64_t seed) : port_(port), random_(seed) {}

    static inline atomic<std::uint64_t> answered{0};  // a count; nothing depends on its order

    void act() {
        switch (random_() % 9) {
            case 0:
            case 1:
                honest();
                break;
            case 2: {  // sends nothing, or a part of a head, and waits until the server closes
                client c(port_);
                c.send(get("/plain").substr(0, random_() % 20));
                EXPECT_TRUE(c.ended());
                break;
            }
            case 3: {  // not HTTP
                client c(port_);
                c.send("\x16\x03\x01 this is something else\r\n\r\n");
                const std::string answer = c.receive();
                EXPECT_TRUE(answer.empty() || has_status(answer, 400)) << answer;
                break;
            }
            case 4:  // leaves in the middle of a head or a body
                leave_after("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc",
                            10 + random_() % 50);
                leave_after("POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc",
                            60);
                break;
            case 5:  // leaves while a handler waits
                leave_after(get("/pause"), std::string::npos);
                leave_after(get("/compute"), std::string::npos);
                break;
            case 6: {  // leaves in the middle of an answer
                client c(port_);
                c.send(get("/large"));
                std::this_thread::yield();
                if (random_() % 2 == 0) c.reset();
                break;
            }
            case 7: {  // does not read for as long as an idle client may stay, and leaves
                client c(port_);
                const int little = 4096;
                ::setsockopt(c.fd(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
                c.send(get("/plain") + get("/large"));
                client idle(port_);
                EXPECT_TRUE(idle.ended());
                c.reset();
                break;
            }
            case 8: {  // only connects
                client c(port_);
                if (random_() % 2 == 0) c.reset();
                break;
            }
        }
    }

private:
    void honest() {
        client c(port_);
        for (std::uint64_t i = 1 + random_() % 20; i != 0; --i) {
            const std::string body(random_() % 5000, 'b');
            const std::string length = std::to_string(body.size());
            const std::string to = random_() % 2 == 0 ? "/echo" : "/count";
            if (!c.send("POST " + to + " HTTP/1.1\r\nHost: a\r\nContent-Length: " + length +
                        "\r\n\r\n" + body + get("/plain") + get("/wait") + get("/compute"))) {
                return;
            }
            for (const std::string& wanted : {to == "/echo" ? body : length, std::string("plain"),
                                              std::string("waited"), std::string("computed")}) {
                const std::string answer = c.receive();
                if (answer.empty()) return;  // this machine was slower than the server's patience
                EXPECT_EQ(body_of(answer), wanted);
                answered.fetch_add(1, relaxed);
            }
        }
    }
    void leave_after(const std::string& bytes, std::size_t size) {
        client c(port_);
        c.send(bytes.substr(0, size));
        if (random_() % 2 == 0) std::this_thread::yield();
        c.reset();
    }
    std::uint16_t port_;
    std::mt19937_64 random_;
};

class soak_on : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, soak_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(soak_on, memory_and_descriptors_stay_flat) {
    http::server_options o = options_of(GetParam());
    o.timeouts.header = o.timeouts.idle = 40ms;
    o.timeouts.body = o.timeouts.write = 60ms;
    o.timeouts.rate_min = 1'000'000'000;
    o.timeouts.handler = 20s;  // a handler whose client leaves is stopped at once, long before
    running_server server(std::move(o), routes());
    const char* const asked = std::getenv("COPPICE_SOAK_SECONDS");
    const auto end = std::chrono::steady_clock::now() +
                     std::chrono::seconds(asked != nullptr ? std::atoi(asked) : 0);
    constexpr int clients = 8;
    constexpr int rounds = 6;
    std::vector<std::size_t> files, memory;
    for (int round = 0; round < rounds || std::chrono::steady_clock::now() < end; ++round) {
        std::vector<std::thread> threads;
        for (int i = 0; i != clients; ++i) {
            threads.emplace_back([&, i] {
                actor a(server.port(), static_cast<std::uint64_t>(round * clients + i));
                for (int n = 0; n != 15; ++n) a.act();
            });
        }
        for (std::thread& t : threads) t.join();
        while (server->statistics().open != 0) std::this_thread::yield();
        ASSERT_EQ(server->statistics().by_status[503 - 100], 0u) << "a handler was left waiting";
        files.push_back(files.empty() ? open_files() : open_files_settled(files.front()));
        memory.push_back(live_allocations());
        if (round % 100 == 99) {
            std::printf("round %d: %zu files, %zu blocks, %llu connections\n", round + 1,
                        files.back(), memory.back(),
                        static_cast<unsigned long long>(server->statistics().accepted));
        }
    }
    // The first half fills pools and free lists. The second half must not need more than their
    // variation: frames move between threads, and each thread keeps some.
    const std::size_t half = memory.size() / 2;
    constexpr std::size_t dents = 3000;
    const auto most = [](auto from, auto to) { return *std::max_element(from, to); };
    EXPECT_LE(most(memory.begin() + static_cast<std::ptrdiff_t>(half), memory.end()),
              most(memory.begin(), memory.begin() + static_cast<std::ptrdiff_t>(half)) + dents);
    EXPECT_EQ(most(files.begin(), files.end()), files.front());
    EXPECT_GT(actor::answered.load(relaxed), 0u);
}

}  // namespace
