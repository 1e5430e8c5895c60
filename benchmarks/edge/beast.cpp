// Boost.Beast's WebSocket on one thread, with callbacks, in its best setting.
#include "rivals.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/websocket.hpp>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <utility>

namespace bench_edge {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using boost::system::error_code;

// The executor is named, so that no call goes through a type-erased one.
using loop_executor = asio::io_context::executor_type;
using socket = asio::basic_stream_socket<asio::ip::tcp, loop_executor>;
using stream = beast::basic_stream<asio::ip::tcp, loop_executor>;

class conversation : public std::enable_shared_from_this<conversation> {
public:
    explicit conversation(socket&& s) : peer_(std::move(s)) {}
    void begin() {
        peer_.next_layer().socket().set_option(asio::ip::tcp::no_delay(true));
        // Pings and a limit of silence, as coppice has.
        peer_.set_option(websocket::stream_base::timeout::suggested(beast::role_type::server));
        peer_.auto_fragment(false);  // one frame for each message
        peer_.async_accept([self = shared_from_this()](error_code error) {
            if (!error) self->read();
        });
    }

private:
    void read() {
        peer_.async_read(buffer_, [self = shared_from_this()](error_code error, std::size_t) {
            if (!error) self->write();
        });
    }
    void write() {
        peer_.text(peer_.got_text());
        peer_.async_write(buffer_.data(),
                          [self = shared_from_this()](error_code error, std::size_t size) {
                              if (error) return;
                              self->buffer_.consume(size);
                              self->read();
                          });
    }

    websocket::stream<stream> peer_;
    beast::flat_buffer buffer_;
};

using acceptor = asio::basic_socket_acceptor<asio::ip::tcp, loop_executor>;

void accept_all(acceptor& at) {
    at.async_accept([&at](error_code error, socket s) {
        if (!error) std::make_shared<conversation>(std::move(s))->begin();
        accept_all(at);
    });
}

}  // namespace

void serve_beast_echo() {
    asio::io_context loop(1);
    acceptor at(loop, {asio::ip::address_v4::loopback(), 0});
    accept_all(at);
    std::printf("listening on http://127.0.0.1:%d\n", at.local_endpoint().port());
    std::fflush(stdout);
    loop.run();
}

}  // namespace bench_edge
