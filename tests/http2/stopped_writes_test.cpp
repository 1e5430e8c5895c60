// Writes that are stopped, over HTTP/2: what the client gets afterwards is whole.
#include <coppice/http2.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <utility>

#include "../http/inflated.hpp"
#include "../http/running_server.hpp"
#include "../http/stopped_writes.hpp"
#include "client.hpp"
#include "scripted_frames.hpp"

namespace coppice::test {

namespace {

class Http2StoppedWrites : public testing::TestWithParam<way> {
protected:
    http::server_options options() const {
        http::server_options o = options_of(GetParam());
        o.http2 = http2::for_server();
        return o;
    }
    static std::int32_t ask(h2_client& c, const std::string& path, bool packed) {
        return c.ask("GET", path,
                     packed ? h2_client::fields{{"accept-encoding", "gzip"}} : h2_client::fields{});
    }
    void expect(std::uint16_t port, const std::string& path, const std::string& text) {
        for (const bool packed : {false, true}) {
            SCOPED_TRACE(path + (packed ? ", compressed" : ""));
            h2_client c(port);
            const h2_client::answer& answer = c.finish(ask(c, path, packed));
            EXPECT_TRUE(answer.ended);
            EXPECT_TRUE((packed ? inflated(answer.body) : answer.body) == text);
        }
    }
    stop_counts counts;
};
INSTANTIATE_TEST_SUITE_P(Ways, Http2StoppedWrites, testing::ValuesIn(every_way), name_of_way);

TEST_P(Http2StoppedWrites, a_body_is_whole_whichever_write_or_flush_is_stopped) {
    running_server server(options(), stopping_routes(counts));
    for (int k = 0; k != writes; ++k) {
        expect(server.port(), "/written/" + std::to_string(k), all_written());
        expect(server.port(), "/flushed/" + std::to_string(k), all_written());
    }
    EXPECT_GE(counts.stopped.load(relaxed), writes);
}

TEST_P(Http2StoppedWrites, events_are_whole_whichever_send_is_stopped) {
    running_server server(options(), stopping_routes(counts));
    for (int k = 0; k != events_sent; ++k) {
        expect(server.port(), "/events/" + std::to_string(k), all_events());
    }
    EXPECT_EQ(counts.stopped.load(relaxed), 2 * events_sent);
}

// The client opens its windows only when the server drains.
TEST_P(Http2StoppedWrites, a_drain_in_the_middle_of_an_event_leaves_it_whole) {
    for (const bool packed : {false, true}) {
        counts.begun.store(0, relaxed);
        running_server server(options(), stopping_routes(counts));
        h2_client c(server.port());
        const std::int32_t stream = ask(c, "/large", packed);
        c.flush();
        while (counts.begun.load(acquire) == 0) std::this_thread::yield();
        server->drain(std::chrono::seconds(20));
        const h2_client::answer& answer = c.finish(stream);
        EXPECT_TRUE(answer.ended);
        const std::string text = packed ? inflated(answer.body, std::size_t{1} << 24) : answer.body;
        EXPECT_TRUE(text == "data: " + large_data() + "\n\n");
    }
}

TEST(http2_stopped_writes, a_body_of_a_client_is_whole_whichever_write_or_flush_is_stopped) {
    http::server_options o;
    o.http2 = http2::for_server();
    send_stopped(std::move(o), by_prior_knowledge());
}

}  // namespace

}  // namespace coppice::test
