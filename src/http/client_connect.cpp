// The state connecting of a client's request.
#include <coppice/exec/just.hpp>
#include <coppice/http/internal/client_call.hpp>
#include <coppice/token/use_await.hpp>

#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "client_connection.hpp"
#include "client_origins.hpp"

namespace coppice::http::internal {

// Connects a new connection. Errors: those of connecting; lost_ says if a retry may help.
task<> client_call::connect() {
    state_ = state::connecting;
    limit(client_.options.connect);
    ++client_.made;
    std::error_code ec;
    if (name_.empty()) {
        co_await connection_->socket.connect(*to_, use_await[ec]);
    } else {
        co_await connect_by_name(ec);
    }
    if (!ec && !proven_.empty()) co_await shake_hands(ec);
    if (ec) {
        const secure_link* const link = connection_->link.get();
        lost_ = !stopped() && (link == nullptr || !link->failure());
        if (deciding_ != nullptr && !stopped()) {
            const auto error = late_ ? std::make_error_code(std::errc::timed_out) : ec;
            std::exchange(deciding_, nullptr)->fail(error, lost_);
        }
        fail(ec, "connect");
    }
    if (multiplexes()) agree();
}

// The server has to prove its name. An empty send ends when it has.
task<> client_call::shake_hands(std::error_code& ec) {
    client_connection& c = *connection_;
    if (!c.socket.is_open()) {
        ec = std::make_error_code(std::errc::operation_canceled);
        co_return;
    }
    try {
        c.link = secure_link::make(
            loop_, *c.socket.slot(), client_.options.security->connect(proven_),
            multiplexes() ? client_.options.http2->protocol() : std::string_view());
    } catch (const std::invalid_argument&) {
        ec = std::make_error_code(std::errc::invalid_argument);
    }
    if (ec) co_return;
    if (const auto earlier = client_.take_session(proven_, port_)) c.link->resume(*earlier);
    co_await c.link->send({}, use_await[ec]);
    if (!ec && c.link->has_resumed()) ++client_.resumed;
}

// While the name is looked up and its addresses are raced there is no socket to close.
task<> client_call::connect_by_name(std::error_code& ec) {
    const auto connecting = [](io::tcp::socket& s, std::string_view name, std::uint16_t port,
                               std::error_code& error) -> task<> {
        co_await s.connect(name, port, use_await[error]);
    };
    const bool ended =
        co_await until_interrupted(connecting(connection_->socket, name_, port_, ec));
    if (ended) co_return;
    if (!late_ && !stopped_) co_await execution::just_stopped();
    ec = std::make_error_code(std::errc::operation_canceled);
}

}  // namespace coppice::http::internal
