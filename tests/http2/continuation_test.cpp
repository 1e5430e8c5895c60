// A head of a request in many frames, which come one byte at a time.
#include <coppice/http.hpp>
#include <coppice/http/multiplexer.hpp>
#include <coppice/http2.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "frames.hpp"

namespace coppice::test {
namespace {

// Notes the head of a request, and serves none.
class noted_heads final : public http::multiplexed_streams {
public:
    http::multiplexed_stream* begin(std::int32_t, std::string_view head, bool) noexcept override {
        text = head;
        return nullptr;
    }
    std::string text;
};

// nghttp2 1.52 counts a CONTINUATION for each piece of its head.
TEST(http2_continuation, a_head_in_many_frames_may_come_one_byte_at_a_time) {
    std::string bytes = preface() + frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, "");
    std::string block = get_block();
    while (block.size() > 20) {
        bytes += frame(NGHTTP2_CONTINUATION, 0, 1, block.substr(0, 20));
        block.erase(0, 20);
    }
    bytes += frame(NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, block);
    for (std::size_t piece = 1; piece != 12; ++piece) {
        noted_heads heads;
        const auto engine = http2::for_server()->accept(heads, false, http::limits());
        for (std::string_view left = bytes; !left.empty();) {
            const std::string_view now = left.substr(0, piece);
            left.remove_prefix(now.size());
            ASSERT_TRUE(engine->receive(std::as_bytes(std::span(now)))) << piece;
        }
        EXPECT_EQ(heads.text, "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    }
}

}  // namespace
}  // namespace coppice::test
