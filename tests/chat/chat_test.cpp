// coppice-chat as its users run it: rooms, names, limits, slow readers, and the drain.
#include "../http/websocket_client.hpp"
#include "served.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace {

using coppice::test::frame_of;
using coppice::test::served;
using coppice::test::text_frame;
using coppice::test::websocket_client;

std::vector<std::string> arguments(std::vector<std::string> more = {}) {
    std::vector<std::string> all{"--port", "0", "--threads", "2"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

// A page of the chat.
class page : public websocket_client {
public:
    page(served& s, const std::string& query) : websocket_client(s.port()) {
        answer = open("/chat?" + query);
    }
    bool say(std::string_view text) { return send(text_frame(text)); }
    std::string answer;
};

TEST(chat, a_message_reaches_all_visitors_of_its_room_and_none_of_another) {
    served s(COPPICE_CHAT, arguments());
    page ada(s, "room=blue&name=ada");
    EXPECT_TRUE(ada.answer.starts_with("HTTP/1.1 101 ")) << ada.answer;
    EXPECT_EQ(ada.next(), "1:here ada");
    EXPECT_EQ(ada.next(), "1:joined ada");
    page eve(s, "room=red&name=ada");  // a name is for one room
    EXPECT_EQ(eve.next(), "1:here ada");
    EXPECT_EQ(eve.next(), "1:joined ada");
    {
        page bob(s, "room=blue&name=bob");
        EXPECT_EQ(bob.next(), "1:here ada bob");
        EXPECT_EQ(bob.next(), "1:joined bob");
        EXPECT_EQ(ada.next(), "1:joined bob");
        EXPECT_TRUE(ada.say("two  words\nand \u00e4 line"));
        for (page* const p : {&ada, &bob}) {
            EXPECT_EQ(p->next(), "1:said ada two  words\nand \u00e4 line");
        }
        EXPECT_TRUE(eve.say("only red"));
        EXPECT_EQ(eve.next(), "1:said ada only red");
    }
    EXPECT_EQ(ada.next(), "1:left bob");
    page again(s, "room=blue&name=bob");  // the name is free once it has left
    EXPECT_EQ(again.next(), "1:here ada bob");
}

TEST(chat, serves_its_page_and_refuses_visits_with_a_reason) {
    served s(COPPICE_CHAT, arguments({"--rooms", "2", "--visitors", "1"}));
    EXPECT_NE(s.get("/").find("new WebSocket("), std::string::npos);
    const auto refusal = [&](const std::string& query) {
        const std::string answer = s.get("/chat?" + query);
        return answer.substr(9, 4) + answer.substr(answer.find("\r\n\r\n") + 4);
    };
    const std::string rule = " must be 1 to 32 letters, digits, and any of - _ .\n";
    EXPECT_EQ(refusal("room=a"), "400 name" + rule);
    EXPECT_EQ(refusal("room=a&name=" + std::string(33, 'x')), "400 name" + rule);
    EXPECT_EQ(refusal("room=%20&name=ada"), "400 room" + rule);
    EXPECT_TRUE(s.get("/chat?name=ada").starts_with("HTTP/1.1 426 "));  // it is no WebSocket
    page ada(s, "name=ada");
    page bob(s, "room=b&name=bob");
    EXPECT_EQ(refusal("room=lobby&name=ada"), "409 somebody in this room has that name\n");
    EXPECT_EQ(refusal("name=bob"), "503 the room is full\n");
    EXPECT_EQ(refusal("room=c&name=eve"), "503 there are too many rooms\n");
}

TEST(chat, a_message_that_breaks_a_rule_is_not_passed_on) {
    served s(COPPICE_CHAT, arguments({"--message-bytes", "10", "--rate", "1"}));
    page ada(s, "name=ada");
    EXPECT_EQ(ada.next(), "1:here ada");
    EXPECT_EQ(ada.next(), "1:joined ada");
    struct rule {
        std::string sent, close_code;
    };
    const rule rules[] = {{text_frame("more than 10"), "\x03\xf1"},  // 1009
                          {text_frame("\xff"), "\x03\xef"},          // 1007
                          {frame_of({0x82, "bytes"}), "\x03\xeb"}};  // 1003
    for (const rule& r : rules) {
        page bob(s, "name=bob");
        EXPECT_EQ(bob.next(), "1:here ada bob");
        EXPECT_EQ(bob.next(), "1:joined bob");
        EXPECT_TRUE(bob.send(r.sent));
        EXPECT_TRUE(bob.next().starts_with("8:" + r.close_code)) << r.close_code;
        EXPECT_EQ(ada.next(), "1:joined bob");
        EXPECT_EQ(ada.next(), "1:left bob");
    }
    // However slow the machine is, one of a thousand messages is too early.
    for (int i = 0; i != 1000; ++i) EXPECT_TRUE(ada.say("x"));
    std::string next;
    while ((next = ada.next()) == "1:said ada x") {
    }
    EXPECT_EQ(next, "1:refused more than 1 messages per second");
}

TEST(chat, a_slow_reader_is_told_how_many_messages_it_has_lost) {
    served s(COPPICE_CHAT,
             arguments({"--message-bytes", "65536", "--rate", "1000000", "--backlog", "4"}));
    page slow(s, "name=slow");
    EXPECT_EQ(slow.next(), "1:here slow");  // its visit has begun
    page quick(s, "name=quick");
    EXPECT_EQ(quick.next(), "1:here quick slow");
    page ada(s, "name=ada");
    const std::string text(65'536, 'x');  // so many that no socket keeps all of them
    const std::string frame = text_frame(text);
    constexpr int sent = 400;
    for (int i = 0; i != sent; ++i) ASSERT_TRUE(ada.send(frame));
    EXPECT_TRUE(ada.say("end"));
    // The last message is never lost. When one reader has it, the room has got all before.
    for (std::string next; next != "1:said ada end";) {
        next = quick.next();
        ASSERT_NE(next, "end");
    }
    std::uint64_t received = 0;
    std::uint64_t missed = 0;
    for (std::string next; next != "1:said ada end"; ++received) {
        next = slow.next();
        ASSERT_NE(next, "end");
        if (next.starts_with("1:missed ")) missed += std::stoull(next.substr(9)), --received;
    }
    EXPECT_GT(missed, 0u);
    EXPECT_EQ(received + missed, sent + 4u);  // three have joined
}

TEST(chat, a_drain_delivers_what_was_said_and_closes_with_1001) {
    served s(COPPICE_CHAT, arguments());
    {
        page ada(s, "room=blue&name=ada");
        page eve(s, "room=red&name=eve");
        EXPECT_TRUE(ada.say("last words"));
        for (const char* const line : {"1:here ada", "1:joined ada", "1:said ada last words"}) {
            EXPECT_EQ(ada.next(), line);
        }
        s.signal(SIGTERM);
        for (page* const p : {&ada, &eve}) {
            std::string next;
            while ((next = p->next()) != "1:closing") ASSERT_NE(next, "end");
            EXPECT_EQ(p->next(), "8:\x03\xe9the server ends");  // 1001
            p->send(coppice::test::close_frame(1001));
            EXPECT_EQ(p->next(), "end");
        }
    }
    EXPECT_EQ(s.exit_status(), 0);
    EXPECT_EQ(s.err(), "coppice-chat: draining\n");
}

TEST(chat, a_visitor_who_does_not_read_does_not_keep_it_from_ending) {
    served s(COPPICE_CHAT, arguments({"--message-bytes", "65536", "--rate", "1000000",
                                      "--drain-timeout", "100ms"}));
    page stuck(s, "name=stuck");
    const std::string frame = text_frame(std::string(65'536, 'x'));
    for (int i = 0; i != 300; ++i) ASSERT_TRUE(stuck.send(frame));
    s.signal(SIGTERM);
    EXPECT_EQ(s.exit_status(), 0);
}

TEST(chat, bad_options_end_it_with_status_2_and_a_reason) {
    const std::vector<std::string> bad[] = {{"--port", "65536"},        {"--rate", "0"},
                                            {"--drain-timeout", "5"},   {"--address", "here"},
                                            {"--tls-key", "/dev/null"}, {"--wrong"}};
    for (const std::vector<std::string>& arguments : bad) {
        served s(COPPICE_CHAT, arguments);
        EXPECT_NE(s.err().find(arguments.front()), std::string::npos) << arguments.front();
        EXPECT_EQ(s.exit_status(), 2) << arguments.front();
    }
    served version(COPPICE_CHAT, {"--version"});
    EXPECT_TRUE(version.out().starts_with("coppice-chat "));
    EXPECT_EQ(version.exit_status(), 0);
}

}  // namespace
