// Routes whose producers are stopped in the middle of what they write, over each protocol.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/events.hpp>
#include <coppice/http/filters.hpp>
#include <coppice/http/router.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/stop/inplace.hpp>

#include "served_world.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::test {

using namespace internal;

// The lengths of what a producer writes, one after the other.
inline constexpr std::size_t written_lengths[] = {100,    5000, 16384, 1,     40960, 17,
                                                  70'000, 9000, 9000,  16383, 1,     300};
inline constexpr int writes = static_cast<int>(std::size(written_lengths));
inline constexpr int events_sent = 6;
inline constexpr std::size_t event_bytes = 40 * 1024;

// Returns text that hardly shrinks, and differs for each `seed`.
inline std::string noise(std::size_t size, int seed) {
    static const std::string all = [] {
        std::minstd_rand next(7);
        std::string text(std::size_t{1} << 18, ' ');
        for (char& c : text) c = static_cast<char>('0' + next() % 75);
        return text;
    }();
    return all.substr(static_cast<std::size_t>(seed) * 7919 % (all.size() - size), size);
}
inline std::string all_written() {
    std::string all;
    for (int i = 0; i != writes; ++i) all += noise(written_lengths[i], i);
    return all;
}
inline std::string event_text(int i) {
    return "id: " + std::to_string(i) + "\ndata: " + noise(event_bytes, i) + "\n\n";
}
inline std::string all_events() {
    std::string all;
    for (int i = 0; i != events_sent; ++i) all += event_text(i);
    return all;
}

// Returns more than a socket holds, also compressed.
inline const std::string& large_data() {
    static const std::string all = [] {
        std::string text;
        for (int i = 0; i != 40; ++i) text += noise(200'000, i);
        return text;
    }();
    return all;
}

// Gives true if the operation ended, false if it was stopped where it waited first.
inline task<bool> ends_at_once(task<> operation) {
    inplace_stop_source source;
    source.request_stop();
    const auto ended = co_await execution::stopped_as_optional(execution::then(
        execution::stop_when(std::move(operation), source.get_token()), [] { return true; }));
    co_return ended.has_value();
}

struct stop_counts {
    atomic<int> stopped{0};
    atomic<int> begun{0};  // /large
};

// Writes all, and stops the call of this number and the writes of its rest; also the flush after
// it, if it flushes.
inline task<> write_all(http::body_writer& out, stop_counts& counts, int stopped, bool flushes) {
    for (int i = 0; i != writes; ++i) {
        const std::string text = noise(written_lengths[i], i);
        std::string_view left = text;
        for (int tries = 0; i == stopped && tries != 3; ++tries) {
            const std::uint64_t before = out.written();
            if (!co_await ends_at_once(out.write(left))) counts.stopped.fetch_add(1, relaxed);
            left.remove_prefix(static_cast<std::size_t>(out.written() - before));
        }
        co_await out.write(left);
        if (!flushes) continue;
        for (int tries = 0; i == stopped && tries != 2; ++tries) {
            if (!co_await ends_at_once(out.flush())) counts.stopped.fetch_add(1, relaxed);
        }
        if (i % 2 == 0) co_await out.flush();
    }
}

// Sends bodies of a client whose writes are stopped, in a simulation.
inline void send_stopped(http::server_options o, const http::client_options& with) {
    stop_counts counts;
    http::router routes;
    routes.post("/", [](http::request& q) { return http::response::text(std::string(q.body())); });
    const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
        http::client c(loop, with);
        for (int k = 0; k != writes; ++k) {
            for (const bool flushes : {false, true}) {
                http::client_request r{.to = to, .method = "POST"};
                r.source = http::stream([&counts, k, flushes](http::body_writer& out) -> task<> {
                    co_await write_all(out, counts, k, flushes);
                    EXPECT_EQ(out.written(), all_written().size());
                });
                EXPECT_TRUE((co_await c.send(std::move(r))).body() == all_written()) << k;
            }
        }
    };
    io::simulation world(1);
    (void)serve_in(world, std::move(o), std::move(routes), client);
    EXPECT_GE(counts.stopped.load(relaxed), writes);
}

// /written/k and /flushed/k write all, and stop the k-th call. /events/k stops the k-th event.
// /large sends an event that no socket holds.
inline http::router stopping_routes(stop_counts& counts) {
    http::router r;
    for (const bool flushes : {false, true}) {
        r.get(flushes ? "/flushed/{k:int}" : "/written/{k:int}",
              [&counts, flushes](http::request& q) {
                  const int k = q.parameter<int>("k").value();
                  return http::response(200)
                      .content_type("text/plain")
                      .body(http::stream([&counts, k, flushes](http::body_writer& out) {
                          return write_all(out, counts, k, flushes);
                      }));
              });
    }
    r.get("/events/{k:int}", [&counts](http::request& q) {
        const int k = q.parameter<int>("k").value();
        return http::events(q, [&counts, k](http::event_writer& out) -> task<> {
            for (int i = 0; i != events_sent; ++i) {
                const std::string id = std::to_string(i), text = noise(event_bytes, i);
                const http::page_event event{.data = text, .id = id};
                if (i != k) {
                    co_await out.send(event);
                } else if (!co_await ends_at_once(out.send(event))) {
                    counts.stopped.fetch_add(1, relaxed);
                }
            }
        });
    });
    r.get("/large", [&counts](http::request& q) {
        return http::events(q, [&counts](http::event_writer& out) -> task<> {
            counts.begun.fetch_add(1, release);
            co_await out.send({.data = large_data()});
        });
    });
    r.use(http::compression());
    return r;
}

}  // namespace coppice::test
