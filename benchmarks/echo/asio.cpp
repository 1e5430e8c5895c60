// Asio: a connection by callbacks, and by its awaitable; one thread, told so.
#include "rivals.hpp"

#include <array>
#include <memory>

#include <asio.hpp>

namespace bench_echo {

namespace {

using asio::ip::tcp;

struct callback_session : std::enable_shared_from_this<callback_session> {
    explicit callback_session(tcp::socket s) : socket(std::move(s)) {}
    void receive() {
        socket.async_read_some(asio::buffer(data),
                               [self = shared_from_this()](asio::error_code ec, std::size_t n) {
                                   if (!ec) self->send(n);
                               });
    }
    void send(std::size_t n) {
        asio::async_write(socket, asio::buffer(data.data(), n),
                          [self = shared_from_this()](asio::error_code ec, std::size_t) {
                              if (!ec) self->receive();
                          });
    }
    tcp::socket socket;
    std::array<char, 4096> data;
};

void accept(tcp::acceptor& acceptor) {
    acceptor.async_accept([&acceptor](asio::error_code ec, tcp::socket socket) {
        if (!ec) {
            socket.set_option(tcp::no_delay(true));
            std::make_shared<callback_session>(std::move(socket))->receive();
        }
        accept(acceptor);
    });
}

asio::awaitable<void> echo(tcp::socket socket) {
    std::array<char, 4096> data;
    try {
        for (;;) {
            const std::size_t n =
                co_await socket.async_read_some(asio::buffer(data), asio::use_awaitable);
            co_await asio::async_write(socket, asio::buffer(data.data(), n), asio::use_awaitable);
        }
    } catch (const std::system_error&) {
        co_return;  // the connection is over
    }
}
asio::awaitable<void> accept_awaiting(tcp::acceptor& acceptor) {
    for (;;) {
        tcp::socket socket = co_await acceptor.async_accept(asio::use_awaitable);
        socket.set_option(tcp::no_delay(true));
        asio::co_spawn(acceptor.get_executor(), echo(std::move(socket)), asio::detached);
    }
}

tcp::acceptor listen(asio::io_context& context) {
    tcp::acceptor acceptor(context, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
    announce(acceptor.local_endpoint().port());
    return acceptor;
}

}  // namespace

void serve_asio_callback() {
    asio::io_context context(1);
    tcp::acceptor acceptor = listen(context);
    accept(acceptor);
    context.run();
}

void serve_asio_awaitable() {
    asio::io_context context(1);
    tcp::acceptor acceptor = listen(context);
    asio::co_spawn(context, accept_awaiting(acceptor), asio::detached);
    context.run();
}

}  // namespace bench_echo
