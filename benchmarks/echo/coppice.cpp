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

// A coroutine that starts at once and destroys its frame at its end.
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

// Lives as long as its connection: each callback owns it and hands it to the next one.
struct callback_session {
    explicit callback_session(io::tcp::socket s) noexcept : socket(std::move(s)) {}
    static void receive(std::shared_ptr<callback_session> self) {
        io::tcp::socket& from = self->socket;
        from.receive_pooled(
            [self = std::move(self)](std::error_code ec, io::pooled_buffer received) mutable {
                if (!ec && !received.empty()) send(std::move(self), std::move(received));
            });
    }
    static void send(std::shared_ptr<callback_session> self, io::pooled_buffer received) {
        callback_session& to = *self;
        to.buffer = std::move(received);
        to.socket.send_all(to.buffer.bytes(), [self = std::move(self)](std::error_code ec) mutable {
            self->buffer.release();
            if (!ec) receive(std::move(self));
        });
    }
    io::tcp::socket socket;
    io::pooled_buffer buffer;
};

void accept_callback(io::tcp::acceptor& acceptor) {
    acceptor.accept([&acceptor](std::error_code ec, io::tcp::socket socket) {
        if (!ec) callback_session::receive(std::make_shared<callback_session>(std::move(socket)));
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
