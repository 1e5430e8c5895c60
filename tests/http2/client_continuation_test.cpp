// A head of an answer in many frames, which come one byte at a time.
#include <coppice/http.hpp>
#include <coppice/http/multiplexer.hpp>
#include <coppice/http2.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "frames.hpp"

namespace coppice::test {
namespace {

// A request that notes the status of its answer.
class asked final : public http::requesting_stream {
public:
    bool input(std::string_view) noexcept override { return true; }
    bool end_input(std::string_view) noexcept override { return true; }
    void closed(bool) noexcept override {}
    taken take(std::span<std::byte>) noexcept override { return {0, true}; }
    std::string_view trailers() noexcept override { return {}; }
    bool head(int s, std::string_view, bool) noexcept override {
        status = s;
        return true;
    }
    void lost(http::answer_loss) noexcept override {}
    int status = 0;
};

// nghttp2 1.52 counts a CONTINUATION for each piece of its head.
TEST(http2_client_continuation, a_head_in_many_frames_may_come_one_byte_at_a_time) {
    asked request;
    const auto engine = http2::for_client()->connect(false, http::limits());
    ASSERT_GT(engine->request(request, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", true), 0);
    std::string sent;
    while (engine->write(sent)) {
    }
    const std::string bytes =
        frame(NGHTTP2_SETTINGS, 0, 0, "") + frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM, 1, "") +
        frame(NGHTTP2_CONTINUATION, 0, 1, literal(":status", "200")) +
        frame(NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, literal("x-a", "b"));
    for (const char& byte : bytes) {
        ASSERT_TRUE(engine->receive(std::as_bytes(std::span(&byte, 1)))) << &byte - bytes.data();
    }
    EXPECT_EQ(request.status, 200);
}

}  // namespace
}  // namespace coppice::test
