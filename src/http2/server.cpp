// What makes the engines of a server's connections.
#include "engine.hpp"

#include <stdexcept>
#include <string>

#include "fields.hpp"

namespace coppice::http2 {

namespace {

class for_servers final : public http::multiplexing {
public:
    explicit for_servers(const server_limits& limits) noexcept : limits_(limits) {}
    std::string_view preface() const noexcept override {
        return {NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN};
    }
    std::string_view protocol() const noexcept override { return "h2"; }
    std::unique_ptr<http::multiplexer> accept(http::multiplexed_streams& streams, bool secure,
                                              const http::limits& limit) const override {
        return std::make_unique<engine>(limits_, streams, secure, limit);
    }

private:
    const server_limits limits_;
};

}  // namespace

std::shared_ptr<const http::multiplexing> for_server(server_limits limits) {
    if (limits.streams_max < 1 || limits.streams_max > 10'000) {
        throw std::invalid_argument("http2::server_limits::streams_max must be 1 to 10000, got " +
                                    std::to_string(limits.streams_max));
    }
    if (limits.stream_window_bytes < 1 || limits.stream_window_bytes > NGHTTP2_MAX_WINDOW_SIZE) {
        throw std::invalid_argument(
            "http2::server_limits::stream_window_bytes must be 1 to 2147483647, got " +
            std::to_string(limits.stream_window_bytes));
    }
    check_idle_frames(limits.idle_frames_max, "server_limits");
    return std::make_shared<for_servers>(limits);
}

}  // namespace coppice::http2
