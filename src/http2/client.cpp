// What makes the engines of a client's connections.
#include "client_engine.hpp"

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
    check_limits(limits, "client_limits");
    return std::make_shared<for_clients>(limits);
}

}  // namespace coppice::http2
