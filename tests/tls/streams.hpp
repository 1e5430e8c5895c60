// Two streams of TLS that are joined over sockets of one loop.
#pragma once

#include "pair.hpp"

#include <coppice/execution.hpp>
#include <coppice/io.hpp>
#include <coppice/task.hpp>
#include <coppice/tls.hpp>

#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace coppice::test {

namespace ex = coppice::execution;

struct joined_sockets {
    explicit joined_sockets(io::context& loop) : near(loop), far(loop) {
        io::tcp::acceptor acceptor(loop, io::loopback(0));
        near.connect(acceptor.local(), [](std::error_code error) { EXPECT_FALSE(error); });
        far = acceptor.accept(block);
        loop.run();
        loop.restart();
    }
    io::tcp::socket near, far;
};

// The two sides, before their handshake.
struct joined_streams {
    joined_streams(io::context& loop, const usual& u, std::string_view host = "server.example")
        : joined_streams(joined_sockets(loop), u, host) {}
    joined_streams(joined_sockets sockets, const usual& u, std::string_view host)
        : client(std::move(sockets.near), tls::client_context(u.client), host),
          server(std::move(sockets.far), tls::server_context(u.server)) {}
    // Shakes hands on both sides.
    task<> shake() { co_await ex::when_all(client.handshake(), server.handshake()); }
    tls::stream<> client, server;
};

// Runs the work on the loop until it has ended, and rethrows what it throws. Returns false if it
// was stopped.
template <class Work>
bool run_on(io::context& loop, Work work) {
    std::exception_ptr failure;
    bool ended = false;
    ex::counting_scope scope;
    ex::spawn(ex::starts_on(loop.get_scheduler(), std::move(work)) |
                  ex::then([&](auto&&...) noexcept { ended = true; }),
              scope.get_token(), [&](auto error) noexcept {
                  if constexpr (std::is_same_v<decltype(error), std::exception_ptr>) {
                      failure = error;
                  } else {
                      failure = std::make_exception_ptr(std::system_error(error));
                  }
              });
    loop.run();
    loop.restart();
    this_thread::sync_wait(scope.join());
    if (failure) std::rethrow_exception(failure);
    return ended;
}

inline task<> send_text(tls::stream<>& to, std::string_view text) {
    co_await to.send_all(bytes_in(text));
}
// Receives to the end of the stream.
inline task<std::string> receive_to_end(tls::stream<>& from) {
    std::string text;
    char some[5000];
    for (;;) {
        const std::size_t n = co_await from.receive(std::as_writable_bytes(std::span(some)));
        if (n == 0) co_return text;
        text.append(some, n);
    }
}
inline task<std::string> receive_some(tls::stream<>& from) {
    char some[5000];
    const std::size_t n = co_await from.receive(std::as_writable_bytes(std::span(some)));
    co_return std::string(some, n);
}

}  // namespace coppice::test
