// What a WebSocket's client gets for what it sends, class by class of RFC 6455; and long messages.
#include <coppice/exec/timeout.hpp>
#include <coppice/http/websocket.hpp>

#include "running_server.hpp"
#include "websocket_client.hpp"

#include <gtest/gtest.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;
using namespace std::string_literals;
using http::websocket;

http::router echo_routes() {
    http::router r;
    r.get("/", http::websocket_handler([](websocket& socket) -> task<> {
              while (const auto message = co_await socket.receive()) {
                  if (co_await socket.send(*message)) co_return;
              }
          }));
    return r;
}

std::string closed(unsigned code) {
    return "8:" + close_payload(code);
}
// Returns the client's next frame; of a close frame only the code.
std::string next_of(websocket_client& client) {
    const std::string frame = client.next();
    return frame.starts_with("8:") ? frame.substr(0, 4) : frame;
}

// Returns bytes that differ from place to place.
std::string pattern(std::size_t size) {
    std::string out;
    while (out.size() < size) out += std::to_string(out.size()) + ",";
    out.resize(size);
    return out;
}

class websocket_conversation : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, websocket_conversation, testing::ValuesIn(every_way), name_of_way);

struct conversation {
    const char* what;
    std::string sent;
    std::vector<std::string> got;  // before the end of the connection
};

std::vector<conversation> conversations() {
    const std::string bye = close_frame(1000);
    const std::string long_ping(125, '\xfe');
    const std::string long_reason(123, 'r');
    std::vector<conversation> all = {
        // Frames and control frames.
        {"an empty text", text_frame("") + bye, {"1:", closed(1000)}},
        {"empty bytes", frame_of({0x82, ""}) + bye, {"2:", closed(1000)}},
        {"an empty ping", frame_of({0x89, ""}) + bye, {"a:", closed(1000)}},
        {"the longest ping", frame_of({0x89, long_ping}) + bye, {"a:" + long_ping, closed(1000)}},
        {"a pong that was not asked for", frame_of({0x8a, "x"}) + bye, {closed(1000)}},
        // Fragments.
        {"empty fragments",
         frame_of({0x01, ""}) + frame_of({0x00, ""}) + frame_of({0x80, ""}) + bye,
         {"1:", closed(1000)}},
        {"a ping between fragments",
         frame_of({0x01, "a"}) + frame_of({0x89, "p"}) + frame_of({0x00, "b"}) +
             frame_of({0x80, "c"}) + bye,
         {"a:p", "1:abc", closed(1000)}},
        {"a continuation after a whole message",
         text_frame("a") + frame_of({0x80, "b"}) + bye,
         {"1:a", closed(1002)}},
        {"a fragment of a pong", frame_of({0x0a, "p"}) + bye, {closed(1002)}},
        {"a message inside a message",
         frame_of({0x01, "a"}) + frame_of({0x82, "b"}) + bye,
         {closed(1002)}},
        {"an end inside a message", frame_of({0x01, "a"}) + bye, {closed(1000)}},
        // UTF-8.
        {"a character cut by fragments",
         frame_of({0x01, "\xf0\x9f"}) + frame_of({0x00, "\x8c"}) + frame_of({0x80, "\xb3"}) + bye,
         {"1:\xf0\x9f\x8c\xb3", closed(1000)}},
        {"a wrong byte in the second fragment",
         frame_of({0x01, "good"}) + frame_of({0x00, "\xed\xa0\x80"}),
         {closed(1007)}},
        {"a text that ends inside a character",
         frame_of({0x01, "\xe1"}) + frame_of({0x80, "\xbd"}) + bye,
         {closed(1007)}},
        {"bytes that are no text",
         frame_of({0x82, "\xff\xfe"}) + bye,
         {"2:\xff\xfe", closed(1000)}},
        // Closing.
        {"nothing after a close is answered",
         bye + text_frame("late") + frame_of({0x89, "late"}) + bye,
         {closed(1000)}},
        {"a close without a code", frame_of({0x88, ""}), {"8:"}},
        {"a close of one byte", frame_of({0x88, "x"}), {closed(1002)}},
        {"the longest reason", close_frame(1001, long_reason), {closed(1001)}},
        {"a reason too long",
         frame_of({0x88, close_payload(1000) + long_reason + "r"}),
         {closed(1002)}},
        {"a reason that is no text", close_frame(1000, "\xc0\xaf"), {closed(1007)}},
    };
    for (const unsigned bit : {0x10u, 0x20u, 0x30u, 0x40u, 0x50u, 0x60u, 0x70u}) {
        for (const unsigned opcode : {0x81u, 0x82u, 0x89u, 0x8au, 0x88u}) {
            all.push_back({"a reserved bit",
                           text_frame("a") + frame_of({opcode | bit, "x"}) + frame_of({0x89, ""}),
                           {"1:a", closed(1002)}});
        }
    }
    for (const unsigned opcode : {3u, 4u, 5u, 6u, 7u, 11u, 12u, 13u, 14u, 15u}) {
        all.push_back({"an unknown opcode",
                       text_frame("a") + frame_of({0x80 | opcode, "x"}) + frame_of({0x89, ""}),
                       {"1:a", closed(1002)}});
    }
    for (const unsigned code : {0u, 999u, 1004u, 1005u, 1006u, 1016u, 2999u, 5000u, 65535u}) {
        all.push_back({"a code that no frame may have", close_frame(code), {closed(1002)}});
    }
    for (const unsigned code : {1001u, 1002u, 1003u, 1007u, 1011u, 3000u, 3999u, 4000u, 4999u}) {
        all.push_back({"a code", close_frame(code), {closed(code)}});
    }
    return all;
}

TEST_P(websocket_conversation, the_client_gets_what_the_protocol_says_however_it_sends) {
    running_server server(options_of(GetParam()), echo_routes());
    for (const conversation& c : conversations()) {
        for (const std::size_t step : {c.sent.size(), std::size_t{1}}) {
            websocket_client client(server.port());
            client.open();
            const int now = 1;  // each byte is a segment
            ::setsockopt(client.fd(), IPPROTO_TCP, TCP_NODELAY, &now, sizeof now);
            // The server may close before it has everything.
            std::string_view left = c.sent;
            while (!left.empty() && client.send(left.substr(0, step))) {
                left.remove_prefix(std::min(step, left.size()));
            }
            for (const std::string& frame : c.got) {
                ASSERT_EQ(next_of(client), frame) << c.what << ", " << step << " bytes at a time";
            }
            ASSERT_EQ(client.next(), "end") << c.what;
        }
    }
    EXPECT_EQ(server->statistics().exceptions, 0u);
}

TEST_P(websocket_conversation, long_and_short_messages_come_back_in_order_however_they_are_cut) {
    running_server server(options_of(GetParam()), echo_routes());
    std::string sent;
    std::vector<std::string> got;
    for (const std::size_t size :
         {5u, 4096u, 8192u, 8193u, 16'384u, 3u, 20'480u, 65'536u, 300'000u}) {
        const std::string text = pattern(size);
        const std::string_view all = text;
        const std::size_t half = size / 2;
        sent += text_frame(text) + frame_of({0x89, "p"}) + frame_of({0x02, all.substr(0, half)}) +
                frame_of({0x80, all.substr(half)});
        got.insert(got.end(), {"1:" + text, "a:p", "2:" + text});
    }
    for (const std::size_t step : {sent.size(), std::size_t{1009}, std::size_t{4110}}) {
        websocket_client client(server.port());
        client.open();
        std::thread sender([&] {
            for (std::string_view left = sent; !left.empty();) {
                const std::string_view piece = left.substr(0, step);
                EXPECT_TRUE(client.send(piece));
                left.remove_prefix(piece.size());
            }
        });
        for (const std::string& frame : got) EXPECT_TRUE(client.next() == frame) << frame.size();
        sender.join();
        EXPECT_EQ(client.say(close_frame(1000)), closed(1000));
    }
    EXPECT_EQ(server->statistics().exceptions, 0u);
}

// The server receives long messages in another way than short ones, and has to change the way.
TEST_P(websocket_conversation, rows_of_short_messages_between_long_ones_come_back_in_order) {
    running_server server(options_of(GetParam()), echo_routes());
    std::string sent;
    std::vector<std::string> got;
    const std::string text = pattern(50'000);
    for (const int row : {0, 1, 15, 16, 17, 40, 0, 16}) {
        for (int i = 0; i <= row; ++i) {
            const std::string next = i == row ? text : std::to_string(i);
            sent += text_frame(next);
            got.push_back("1:" + next);
        }
    }
    for (const std::size_t step : {sent.size(), std::size_t{9001}, std::size_t{517}}) {
        websocket_client client(server.port());
        client.open();
        std::thread sender([&] {
            for (std::string_view left = sent; !left.empty();) {
                const std::string_view piece = left.substr(0, step);
                EXPECT_TRUE(client.send(piece));
                left.remove_prefix(piece.size());
            }
        });
        for (const std::string& frame : got) EXPECT_TRUE(client.next() == frame) << frame.size();
        sender.join();
        EXPECT_EQ(client.say(close_frame(1000)), closed(1000));
    }
    // One at a time: nothing that comes later hides a receive that is not started.
    websocket_client client(server.port());
    client.open();
    for (const std::string& frame : got) {
        EXPECT_TRUE(client.say(text_frame(std::string_view(frame).substr(2))) == frame);
    }
    EXPECT_TRUE(client.send(text_frame(text).substr(0, 30'000)));
    client.reset();
    while (server->statistics().open != 0) std::this_thread::yield();
    EXPECT_EQ(server->statistics().exceptions, 0u);
}

TEST_P(websocket_conversation, a_wrong_byte_late_in_a_long_text_is_refused) {
    running_server server(options_of(GetParam()), echo_routes());
    std::string text = pattern(100'000);
    text[90'000] = '\xff';
    websocket_client client(server.port());
    client.open();
    EXPECT_TRUE(client.send(text_frame(text)));
    EXPECT_EQ(next_of(client), closed(1007));
    EXPECT_EQ(client.next(), "end");
}

TEST_P(websocket_conversation,
       a_client_that_leaves_inside_a_long_message_has_ended_without_a_close) {
    for (const bool resets : {false, true}) {
        std::promise<unsigned> code;
        http::router r;
        r.get("/", http::websocket_handler([&code](websocket& socket) -> task<> {
                  EXPECT_FALSE(co_await socket.receive());
                  code.set_value(socket.close_code());
              }));
        running_server server(options_of(GetParam()), std::move(r));
        websocket_client client(server.port());
        client.open();
        EXPECT_TRUE(client.send(text_frame(pattern(100'000)).substr(0, 50'000)));
        if (resets) {
            client.reset();
        } else {
            client.finish_sending();
        }
        EXPECT_EQ(code.get_future().get(), 1006u);
    }
}

TEST_P(websocket_conversation, a_stop_inside_a_long_message_leaves_it_to_the_next_receive) {
    const std::string text = pattern(100'000);
    http::router r;
    r.get("/", http::websocket_handler([](websocket& socket) -> task<> {
              // The client sends the rest when it has the first answer.
              bool late = false;
              try {
                  (void)co_await execution::timeout(socket.receive(), 1ms);
              } catch (const std::system_error& e) {
                  late = e.code() == std::errc::timed_out;
              }
              co_await socket.send(late ? "late" : "too early");
              const auto message = co_await socket.receive();
              co_await socket.send(*message);
          }));
    running_server server(options_of(GetParam()), std::move(r));
    websocket_client client(server.port());
    const std::string frame = text_frame(text);
    client.open("/", {}, std::string_view(frame).substr(0, 30'000));
    EXPECT_EQ(client.next(), "1:late");
    EXPECT_TRUE(client.say(std::string_view(frame).substr(30'000)) == "1:" + text);
    EXPECT_EQ(client.next(), closed(1000));
}

TEST_P(websocket_conversation, long_messages_to_a_slow_reader_arrive_whole_and_in_order) {
    constexpr int count = 100;
    http::router r;
    r.get("/", http::websocket_handler([](websocket& socket) -> task<> {
              for (int i = 0; i != count; ++i) {
                  const std::string text = std::to_string(i) + pattern(100'000);
                  if (co_await socket.send_binary(text)) co_return;
                  if (co_await socket.send(std::to_string(i))) co_return;
              }
          }));
    running_server server(options_of(GetParam()), std::move(r));
    websocket_client client(server.port());
    client.open();
    const std::string text = pattern(100'000);
    for (int i = 0; i != count; ++i) {
        ASSERT_TRUE(client.next() == "2:" + std::to_string(i) + text) << i;
        ASSERT_EQ(client.next(), "1:" + std::to_string(i));
    }
    EXPECT_EQ(client.next(), closed(1000));
    EXPECT_EQ(server->statistics().exceptions, 0u);
}

TEST_P(websocket_conversation, what_has_come_of_a_message_counts_as_kept) {
    http::server_options o = options_of(GetParam());
    o.buffered_bytes_max = 1'000'000;
    running_server server(std::move(o), echo_routes());
    const std::string part = frame_of({0x02, pattern(300'000)}) + frame_of({0x89, "p"});
    std::vector<std::unique_ptr<websocket_client>> clients;
    int kept = 0;
    for (int i = 0; i != 8; ++i) {
        clients.push_back(std::make_unique<websocket_client>(server.port()));
        ASSERT_TRUE(has_status(clients.back()->open(), 101));
        clients.back()->send(part);
        const std::string got = next_of(*clients.back());
        if (got == "a:p") {
            ++kept;
        } else {
            EXPECT_EQ(got, closed(1013));
        }
    }
    EXPECT_GE(kept, 1);
    EXPECT_LE(kept, 3);
    clients.clear();
    while (server->statistics().open != 0) std::this_thread::yield();
    websocket_client client(server.port());
    ASSERT_TRUE(has_status(client.open(), 101));
    client.send(frame_of({0x82, pattern(400'000)}));
    EXPECT_EQ(client.next(), "2:" + pattern(400'000));
}

}  // namespace
