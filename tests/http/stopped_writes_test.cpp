// Writes that are stopped: what the client gets afterwards is whole, compressed or not.
#include "stopped_writes.hpp"
#include "inflated.hpp"
#include "running_server.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;

class stopped_writes_on : public testing::TestWithParam<way> {
protected:
    // Asks for the path with and without compression, and expects the text.
    void expect(std::uint16_t port, const std::string& path, const std::string& text) {
        for (const bool packed : {false, true}) {
            SCOPED_TRACE(path + (packed ? ", compressed" : ""));
            client c(port);
            ASSERT_TRUE(c.send(question(path, packed)));
            const std::string answer = c.receive();
            EXPECT_TRUE((packed ? inflated(body_of(answer)) : body_of(answer)) == text);
        }
    }
    static std::string question(const std::string& path, bool packed) {
        return "GET " + path + " HTTP/1.1\r\nHost: a\r\n" +
               (packed ? "Accept-Encoding: gzip\r\n\r\n" : "\r\n");
    }
    stop_counts counts;
};
INSTANTIATE_TEST_SUITE_P(ways, stopped_writes_on, testing::ValuesIn(every_way), name_of_way);

TEST_P(stopped_writes_on, a_body_is_whole_whichever_write_or_flush_is_stopped) {
    running_server server(options_of(GetParam()), stopping_routes(counts));
    for (int k = 0; k != writes; ++k) {
        expect(server.port(), "/written/" + std::to_string(k), all_written());
        expect(server.port(), "/flushed/" + std::to_string(k), all_written());
    }
    EXPECT_GE(counts.stopped.load(relaxed), writes);
}

TEST_P(stopped_writes_on, events_are_whole_whichever_send_is_stopped) {
    running_server server(options_of(GetParam()), stopping_routes(counts));
    for (int k = 0; k != events_sent; ++k) {
        expect(server.port(), "/events/" + std::to_string(k), all_events());
    }
    EXPECT_EQ(counts.stopped.load(relaxed), 2 * events_sent);
}

TEST_P(stopped_writes_on, a_drain_in_the_middle_of_an_event_leaves_it_whole) {
    for (const bool packed : {false, true}) {
        counts.begun.store(0, relaxed);
        running_server server(options_of(GetParam()), stopping_routes(counts));
        client c(server.port());
        const int small = 64 * 1024;
        ::setsockopt(c.fd(), SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        ASSERT_TRUE(c.send(question("/large", packed)));
        while (counts.begun.load(acquire) == 0) std::this_thread::yield();
        server->drain(std::chrono::seconds(20));
        std::string text(body_of(c.receive()));
        if (packed) text = inflated(text, std::size_t{1} << 24);
        EXPECT_TRUE(text == "data: " + large_data() + "\n\n");
        EXPECT_TRUE(c.ended());
    }
}

TEST(stopped_writes, a_body_of_a_client_is_whole_whichever_write_or_flush_is_stopped) {
    send_stopped({}, {});
}

}  // namespace
