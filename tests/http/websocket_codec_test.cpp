// The frames of WebSocket: what a decoder accepts and refuses, however the bytes are cut.
#include <coppice/http/internal/websocket_codec.hpp>

#include <gtest/gtest.h>

#include "websocket_client.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::http::internal;
using namespace coppice::test;
using namespace std::string_literals;
using found = websocket_decoder::found;

constexpr websocket_limits small_limits{64, 4};

struct decoding {
    websocket_decoder::sender from = websocket_decoder::sender::client;
    websocket_limits limits = {};
    bool deflated = false;
    bool directly = false;  // long payloads are written into the decoder's room
};

// Returns what a decoder finds in bytes that come in pieces of `step` bytes, as text.
std::string decoded(std::string_view bytes, std::size_t step, const decoding& how = {}) {
    websocket_decoder d(how.from, how.limits,
                        how.deflated ? std::make_unique<message_inflater>(15, true) : nullptr);
    std::string out;
    std::size_t total = 0;
    std::string behind;
    while (!bytes.empty()) {
        std::string_view piece = bytes.substr(0, step);
        const std::span<char> room = how.directly ? d.room() : std::span<char>();
        bool into_room = !room.empty();
        if (into_room) piece = bytes.substr(0, std::min(step, room.size()));
        bytes.remove_prefix(piece.size());
        while (!piece.empty()) {
            websocket_decoder::result r;
            behind.clear();
            if (std::exchange(into_room, false)) {
                piece.copy(room.data(), piece.size());
                r.what = d.filled(piece.size(), behind);
                r.consumed = piece.size() - behind.size();
                EXPECT_EQ(behind, piece.substr(r.consumed));
            } else {
                r = d.decode(piece);
            }
            piece.remove_prefix(r.consumed);
            total += r.consumed;
            switch (r.what) {
                case found::nothing:
                    EXPECT_EQ(piece, behind);  // of a fragment whose end is in the room
                    break;
                case found::message:
                    out.append(d.is_text() ? "text:" : "binary:").append(d.message()).append(" ");
                    break;
                case found::ping:
                    out.append("ping:").append(d.control()).append(" ");
                    break;
                case found::pong:
                    out.append("pong:").append(d.control()).append(" ");
                    break;
                case found::close:
                    return out + "close:" + std::to_string(d.code()) + std::string(d.control());
                case found::error:
                    // The byte that is wrong is the same in every case.
                    EXPECT_EQ(d.decode("x").consumed, 0u);
                    return out + "error " + std::to_string(d.code()) + " at " +
                           std::to_string(total);
            }
        }
    }
    return out;
}

// Returns what is found; every cut must find the same.
std::string decoded_in_all_ways(std::string_view bytes, const decoding& how = {}) {
    const std::string bytewise = decoded(bytes, 1, how);
    for (const std::size_t step : {std::size_t{2}, std::size_t{3}, std::size_t{7}, bytes.size()}) {
        std::string other = decoded(bytes, std::max<std::size_t>(step, 1), how);
        // A longer piece of payload is consumed before its wrong byte is found.
        const std::size_t at = bytewise.find(" at ");
        if (at != bytewise.npos) {
            EXPECT_EQ(other.substr(0, other.find(" at ")), bytewise.substr(0, at));
        } else {
            EXPECT_EQ(other, bytewise);
        }
    }
    return bytewise;
}

std::string refused(std::string_view bytes, const decoding& how = {}) {
    const std::string all = decoded_in_all_ways(bytes, how);
    return all.substr(0, all.find(" at "));
}

TEST(websocket_codec, the_examples_of_rfc_6455_decode) {
    const decoding server{websocket_decoder::sender::server};
    EXPECT_EQ(decoded_in_all_ways("\x81\x05Hello", server), "text:Hello ");
    EXPECT_EQ(decoded_in_all_ways("\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "text:Hello ");
    EXPECT_EQ(decoded_in_all_ways("\x01\x03Hel\x80\x02lo", server), "text:Hello ");
    EXPECT_EQ(decoded_in_all_ways("\x89\x05Hello", server), "ping:Hello ");
    EXPECT_EQ(decoded_in_all_ways("\x8a\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"), "pong:Hello ");
    const std::string middle(256, 'm');
    const std::string large(65536, 'l');
    EXPECT_EQ(decoded_in_all_ways("\x82\x7e\x01\x00"s + middle, server), "binary:" + middle + " ");
    EXPECT_EQ(decoded("\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00"s + large, 1000, server),
              "binary:" + large + " ");
}

TEST(websocket_codec, a_frame_that_is_appended_decodes_again_at_every_length) {
    for (const std::size_t size : {0u, 1u, 125u, 126u, 127u, 65535u, 65536u, 70000u}) {
        std::string bytes;
        append_frame(bytes, websocket_opcode::binary, std::string(size, 'x'));
        const decoding how{websocket_decoder::sender::server};
        EXPECT_EQ(decoded(bytes, 4096, how), "binary:" + std::string(size, 'x') + " ");
        EXPECT_EQ(decoded(frame_of({0x82, std::string(size, 'x')}), 4096),
                  "binary:" + std::string(size, 'x') + " ");
    }
}

TEST(websocket_codec, a_mask_applies_at_every_offset_and_length) {
    const std::array<unsigned char, 4> key = {1, 2, 3, 200};
    for (std::size_t offset = 0; offset != 9; ++offset) {
        for (std::size_t size = 0; size != 40; ++size) {
            std::string text(size, 'a');
            apply_mask(text.data(), size, key, offset);
            for (std::size_t i = 0; i != size; ++i) {
                ASSERT_EQ(static_cast<unsigned char>(text[i]), 'a' ^ key[(offset + i) % 4]);
            }
        }
    }
}

TEST(websocket_codec, control_frames_come_between_fragments) {
    const std::string bytes = frame_of({0x01, "a"}) + frame_of({0x89, "p"}) + frame_of({0x00, ""}) +
                              frame_of({0x8a, ""}) + frame_of({0x80, "b"}) + text_frame("") +
                              close_frame(1000, "bye");
    EXPECT_EQ(decoded_in_all_ways(bytes), "ping:p pong: text:ab text: close:1000bye");
}

TEST(websocket_codec, malformed_frames_are_refused_at_the_first_wrong_byte) {
    const std::string long_ping(126, 'p');
    const std::string short_text = "x";
    struct wrong {
        const char* what;
        std::string bytes;
        std::string found;
    };
    const std::vector<wrong> all = {
        {"RSV1", frame_of({0xc1, "x"}), "error 1002 at 1"},
        {"RSV2", frame_of({0xa1, "x"}), "error 1002 at 1"},
        {"RSV3", frame_of({0x91, "x"}), "error 1002 at 1"},
        {"an opcode of data", frame_of({0x83, "x"}), "error 1002 at 1"},
        {"an opcode of control", frame_of({0x8b, "x"}), "error 1002 at 1"},
        {"a fragment of a ping", frame_of({0x09, "x"}), "error 1002 at 1"},
        {"a long ping", frame_of({0x89, long_ping}), "error 1002 at 2"},
        {"no mask", frame_of({0x81, "x", false}), "error 1002 at 2"},
        {"16 bits for 125", frame_of({0x81, short_text, true, 2}), "error 1002 at 4"},
        {"64 bits for 125", frame_of({0x81, short_text, true, 8}), "error 1002 at 10"},
        {"64 bits for 65535", "\x81\xff\0\0\0\0\0\0\xff\xff"s, "error 1002 at 10"},
        {"a negative length", "\x81\xff\x80\0\0\0\0\0\0\0"s, "error 1002 at 10"},
        {"a first continuation", frame_of({0x80, "x"}), "error 1002 at 1"},
        {"a text in a text", frame_of({0x01, "x"}) + frame_of({0x81, "x"}), "error 1002 at 8"},
        {"a close of one byte", frame_of({0x88, "x"}), "error 1002 at 7"},
    };
    for (const wrong& w : all) EXPECT_EQ(decoded_in_all_ways(w.bytes), w.found) << w.what;
    EXPECT_EQ(refused(text_frame("x"), {websocket_decoder::sender::server}), "error 1002");
    for (const unsigned code : {0u, 999u, 1004u, 1005u, 1006u, 1015u, 1016u, 2999u, 5000u, 65535u})
        EXPECT_EQ(refused(close_frame(code)), "error 1002") << code;
    for (const unsigned code : {1000u, 1001u, 1003u, 1007u, 1011u, 1014u, 3000u, 4999u})
        EXPECT_EQ(refused(close_frame(code)), "close:" + std::to_string(code));
    EXPECT_EQ(refused(frame_of({0x88, ""})), "close:1005");
    EXPECT_EQ(refused(close_frame(1000, "\xff")), "error 1007");
}

TEST(websocket_codec, text_that_is_not_utf8_is_refused_at_the_byte_that_shows_it) {
    const std::string good = "\xce\xba\xe1\xbd\xb9\xf0\x9f\x8c\xb3\xf4\x8f\xbf\xbf\xed\x9f\xbf";
    EXPECT_EQ(decoded_in_all_ways(text_frame(good)), "text:" + good + " ");
    // A character may be cut by fragments.
    EXPECT_EQ(decoded_in_all_ways(frame_of({0x01, "\xf0\x9f"}) + frame_of({0x80, "\x8c\xb3"})),
              "text:\xf0\x9f\x8c\xb3 ");
    for (const std::string_view bad :
         {"\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
          "\xf4\x90\x80\x80", "\xf5\x80", "\xff"}) {
        const std::string payload = "12345678" + std::string(bad) + "and so on";
        EXPECT_EQ(refused(text_frame(payload)), "error 1007");
        EXPECT_FALSE(is_utf8(payload));
    }
    // Fails before the end of the frame has arrived.
    EXPECT_EQ(decoded(text_frame("\xff and 100 bytes more").substr(0, 7), 1), "error 1007 at 7");
    EXPECT_EQ(refused(text_frame("\xe1\xbd")), "error 1007");  // ends inside a character
    EXPECT_EQ(decoded_in_all_ways(frame_of({0x82, "\xff"})), "binary:\xff ");
}

TEST(websocket_codec, limits_hold_for_messages_and_fragments) {
    const decoding how{websocket_decoder::sender::client, small_limits};
    const std::string most(64, 'm');
    EXPECT_EQ(decoded_in_all_ways(text_frame(most), how), "text:" + most + " ");
    // Refused by its declared length, before the payload comes.
    EXPECT_EQ(decoded(text_frame(most + "x").substr(0, 2), 1, how), "error 1009 at 2");
    EXPECT_EQ(refused(frame_of({0x01, most}) + frame_of({0x80, "x"}), how), "error 1009");
    std::string fragments = frame_of({0x01, ""});
    for (int i = 0; i != 3; ++i) fragments += frame_of({0x00, ""});
    EXPECT_EQ(refused(fragments + frame_of({0x80, ""}), how), "error 1009");
}

TEST(websocket_codec, a_long_payload_that_is_written_into_the_room_decodes_to_the_same) {
    std::string text;
    while (text.size() < 100'000) text += std::to_string(text.size()) + "\xe1\xbd\xb9";
    const std::string_view all = text;
    std::string bytes;
    for (const std::size_t size : {0u, 125u, 4096u, 4097u, 8192u, 20'000u, 20'479u, 100'000u}) {
        bytes += frame_of({0x82, all.substr(0, size)}) + text_frame("short");
        // A character is cut by the fragments.
        bytes += frame_of({0x01, all.substr(0, size)}) + frame_of({0x89, "p"}) +
                 frame_of({0x80, all.substr(size)}) + text_frame("");
    }
    bytes += close_frame(1000);
    const std::string whole = decoded(bytes, bytes.size());
    for (const std::size_t step : {1u, 13u, 1000u, 4096u, 4110u, 16'384u, 1'000'000u}) {
        const decoding how{websocket_decoder::sender::client, {}, false, true};
        EXPECT_TRUE(decoded(bytes, step, how) == whole) << step;
    }
}

TEST(websocket_codec, only_the_long_rest_of_a_frame_that_is_not_compressed_has_room) {
    const std::string payload(10'000, 'x');
    const auto room_after = [&](std::string_view bytes, bool deflated = false) {
        websocket_decoder d(websocket_decoder::sender::client, {},
                            deflated ? std::make_unique<message_inflater>(15, true) : nullptr);
        (void)d.decode(bytes);
        return d.room().size();
    };
    const std::string frame = frame_of({0x82, payload});
    const std::size_t head = frame.size() - payload.size();
    EXPECT_EQ(room_after(""), 0u);
    EXPECT_EQ(room_after(frame.substr(0, head - 1)), 0u);
    EXPECT_EQ(room_after(frame.substr(0, head)), 10'000 + websocket_decoder::behind_max);
    EXPECT_EQ(room_after(frame.substr(0, head + 5904)), 4096 + websocket_decoder::behind_max);
    EXPECT_EQ(room_after(frame.substr(0, head + 5905)), 0u);
    EXPECT_EQ(room_after(frame), 0u);
    EXPECT_EQ(room_after(frame_of({0xc2, payload}).substr(0, 1000), true), 0u);
    EXPECT_EQ(room_after(frame_of({0x81, "\xff" + payload}).substr(0, 1000)), 0u);  // refused
    // A client that announces much and sends little makes the server allocate little.
    EXPECT_EQ(room_after("\x82\xff\0\0\0\0\0\x0f\0\0keys"s), 16'384u);
}

TEST(websocket_codec, a_wrong_byte_in_the_room_is_refused_as_elsewhere) {
    std::string text(20'000, 'x');
    text[15'000] = '\xff';
    const decoding how{websocket_decoder::sender::client, {}, false, true};
    for (const std::size_t step : {100u, 4096u, 100'000u}) {
        EXPECT_EQ(decoded(text_frame(text), step, how).substr(0, 10), "error 1007");
    }
    text = std::string(20'000, 'x') + "\xe1\xbd";  // ends inside a character
    EXPECT_EQ(decoded(text_frame(text), 4096, how).substr(0, 10), "error 1007");
}

TEST(websocket_codec, text_is_checked_at_every_offset) {
    for (std::size_t size = 1; size != 200; ++size) {
        for (std::size_t at = 0; at != size; ++at) {
            std::string text(size, 'x');
            ASSERT_TRUE(is_utf8(text));
            text[at] = '\x80';
            ASSERT_FALSE(is_utf8(text)) << size << " " << at;
        }
    }
}

TEST(websocket_codec, compressed_messages_inflate) {
    const decoding how{websocket_decoder::sender::server, {}, true};
    // RFC 7692 section 7.2.3.
    const std::string hello = "\xc1\x07\xf2\x48\xcd\xc9\xc9\x07\x00"s;
    EXPECT_EQ(decoded_in_all_ways(hello, how), "text:Hello ");
    EXPECT_EQ(decoded_in_all_ways("\x41\x03\xf2\x48\xcd\x80\x04\xc9\xc9\x07\x00"s, how),
              "text:Hello ");
    EXPECT_EQ(decoded_in_all_ways(hello + "\xc1\x05\xf2\x00\x11\x00\x00"s, how),
              "text:Hello text:Hello ");  // refers to the message before
    EXPECT_EQ(decoded_in_all_ways("\xc1\x0b\x00\x05\x00\xfa\xff\x48\x65\x6c\x6c\x6f\x00"s, how),
              "text:Hello ");  // a block without compression
    EXPECT_EQ(decoded_in_all_ways("\xc1\x08\xf3\x48\xcd\xc9\xc9\x07\x00\x00"s, how),
              "text:Hello ");  // a block that says it is the last one
    EXPECT_EQ(
        decoded_in_all_ways("\xc1\x0d\xf2\x48\x05\x00\x00\x00\xff\xff\xca\xc9\xc9\x07\x00"s, how),
        "text:Hello ");  // two blocks
    EXPECT_EQ(decoded_in_all_ways("\x81\x02hi", how), "text:hi ");
    EXPECT_EQ(refused("\xc1\x02\xff\xff", how), "error 1007");
    EXPECT_EQ(refused("\xc9\x00"s, how), "error 1002");  // control frames are not compressed
    EXPECT_EQ(refused("\x01\x00\xc0\x00"s, how), "error 1002");
}

TEST(websocket_codec, deflated_messages_inflate_again_with_and_without_takeover) {
    for (const bool takes_over : {false, true}) {
        for (const int bits : {9, 12, 15}) {
            message_deflater out(bits, takes_over, 1);
            message_inflater in(bits, takes_over);
            for (const std::size_t size : {0u, 1u, 5u, 100u, 5000u, 100'000u, 3u}) {
                std::string text;
                for (std::size_t i = 0; text.size() < size; ++i) text += std::to_string(i * i);
                text.resize(size);
                std::string packed;
                out.deflate(text, packed);
                std::string plain;
                ASSERT_EQ(in.add(packed, plain, 200'000), message_inflater::outcome::good);
                ASSERT_EQ(in.finish(plain, 200'000), message_inflater::outcome::good);
                ASSERT_EQ(plain, text) << bits << " " << takes_over;
            }
        }
    }
}

TEST(websocket_codec, a_deflate_bomb_stops_at_the_limit) {
    message_deflater out(15, false, 9);
    std::string bomb;
    out.deflate(std::string(10'000'000, '\0'), bomb);
    ASSERT_LT(bomb.size(), 20'000u);
    message_inflater in(15, false);
    std::string plain;
    EXPECT_EQ(in.add(bomb, plain, 1000), message_inflater::outcome::too_large);
    EXPECT_EQ(plain.size(), 1001u);
    std::string frame;
    append_frame(frame, websocket_opcode::binary, bomb, true);
    const decoding how{websocket_decoder::sender::server, {100'000, 4}, true};
    EXPECT_EQ(decoded(frame, 500, how).substr(0, 10), "error 1009");
}

}  // namespace
