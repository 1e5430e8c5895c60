// What makes the engines of a server's connections.
#include "engine.hpp"

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
    check_limits(limits, "server_limits");
    return std::make_shared<for_servers>(limits);
}

}  // namespace coppice::http2
