// What makes the engines of a client's connections.
#include "client_engine.hpp"

#include <stdexcept>
#include <string>

#include "fields.hpp"

namespace coppice::http2 {

namespace {

class for_clients final : public http::client_multiplexing {
public:
    explicit for_clients(const client_limits& limits) noexcept : limits_(limits) {}
    std::string_view protocol() const noexcept override { return "h2"; }
    std::unique_ptr<http::client_multiplexer> connect(bool secure,
                                                      const http::limits& limit) const override {
        return std::make_unique<client_engine>(limits_, secure, limit);
    }

private:
    const client_limits limits_;
};

}  // namespace

std::shared_ptr<const http::client_multiplexing> for_client(client_limits limits) {
    if (limits.streams_max < 1 || limits.streams_max > 10'000) {
        throw std::invalid_argument("http2::client_limits::streams_max must be 1 to 10000, got " +
                                    std::to_string(limits.streams_max));
    }
    if (limits.stream_window_bytes < 1 || limits.stream_window_bytes > NGHTTP2_MAX_WINDOW_SIZE) {
        throw std::invalid_argument(
            "http2::client_limits::stream_window_bytes must be 1 to 2147483647, got " +
            std::to_string(limits.stream_window_bytes));
    }
    check_idle_frames(limits.idle_frames_max, "client_limits");
    return std::make_shared<for_clients>(limits);
}

}  // namespace coppice::http2
