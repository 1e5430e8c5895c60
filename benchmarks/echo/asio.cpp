// Asio: a connection by callbacks, and by its awaitable; a concurrency hint of one thread.
#include "rivals.hpp"

#include <array>
#include <memory>

#include <asio.hpp>

namespace bench_echo {

namespace {

using asio::ip::tcp;

struct callback_session {
    explicit callback_session(tcp::socket s) : socket(std::move(s)) {}
    static void receive(std::shared_ptr<callback_session> self) {
        callback_session& s = *self;
        s.socket.async_read_some(
            asio::buffer(s.data),
            [self = std::move(self)](asio::error_code ec, std::size_t n) mutable {
                if (!ec) send(std::move(self), n);
            });
    }
    static void send(std::shared_ptr<callback_session> self, std::size_t n) {
        callback_session& s = *self;
        asio::async_write(s.socket, asio::buffer(s.data.data(), n),
                          [self = std::move(self)](asio::error_code ec, std::size_t) mutable {
                              if (!ec) receive(std::move(self));
                          });
    }
    tcp::socket socket;
    std::array<char, 4096> data;
};

void accept(tcp::acceptor& acceptor) {
    acceptor.async_accept([&acceptor](asio::error_code ec, tcp::socket socket) {
        if (!ec) {
            socket.set_option(tcp::no_delay(true));
            callback_session::receive(std::make_shared<callback_session>(std::move(socket)));
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
        co_return;  // the connection has ended
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
