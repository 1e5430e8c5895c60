// coppice: a coroutine per connection, and the same with callbacks.
#include "rivals.hpp"

#include <coppice/io.hpp>
#include <coppice/task.hpp>

#include <coroutine>
#include <exception>
#include <memory>

namespace bench_echo {

namespace {

using namespace coppice;

// Owns itself.
struct session {
    struct promise_type {
        session get_return_object() const noexcept { return {}; }
        std::suspend_never initial_suspend() const noexcept { return {}; }
        std::suspend_never final_suspend() const noexcept { return {}; }
        void return_void() const noexcept {}
        void unhandled_exception() const noexcept { std::terminate(); }
    };
};

session echo(io::tcp::socket socket) {
    std::error_code ec;
    for (;;) {
        const io::pooled_buffer buffer = co_await socket.receive_pooled(use_await[ec]);
        if (ec || buffer.empty()) break;
        co_await socket.send_all(buffer.bytes(), use_await[ec]);
        if (ec) break;
    }
}
session accept(io::tcp::acceptor& acceptor) {
    for (;;) echo(co_await acceptor.accept());
}

void serve(io::backend kind) {
    io::context loop(kind);
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    announce(acceptor.local().port());
    accept(acceptor);
    loop.run();
}

// Lives as long as its connection.
struct callback_session : std::enable_shared_from_this<callback_session> {
    explicit callback_session(io::tcp::socket s) noexcept : socket(std::move(s)) {}
    void receive() {
        socket.receive_pooled(
            [self = shared_from_this()](std::error_code ec, io::pooled_buffer buffer) {
                if (ec || buffer.empty()) return;
                self->buffer = std::move(buffer);
                self->socket.send_all(self->buffer.bytes(), [self](std::error_code failed) {
                    self->buffer.release();
                    if (!failed) self->receive();
                });
            });
    }
    io::tcp::socket socket;
    io::pooled_buffer buffer;
};

void accept_callback(io::tcp::acceptor& acceptor) {
    acceptor.accept([&acceptor](std::error_code ec, io::tcp::socket socket) {
        if (!ec) std::make_shared<callback_session>(std::move(socket))->receive();
        accept_callback(acceptor);
    });
}

void serve_callback(io::backend kind) {
    io::context loop(kind);
    io::tcp::acceptor acceptor(loop, io::loopback(0));
    announce(acceptor.local().port());
    accept_callback(acceptor);
    loop.run();
}

}  // namespace

void serve_coppice_epoll() {
    serve(io::backend::epoll);
}
void serve_coppice_uring() {
    serve(io::backend::uring);
}
void serve_coppice_epoll_callback() {
    serve_callback(io::backend::epoll);
}
void serve_coppice_uring_callback() {
    serve_callback(io::backend::uring);
}

}  // namespace bench_echo
