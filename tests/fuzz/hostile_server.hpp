// A server of a simulated world that answers whatever it is asked with the same bytes, and tasks.
#pragma once

#include <coppice/io/context.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task/task.hpp>

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "detached.hpp"

namespace coppice::test {

// Runs a task on its own.
inline detached run(task<> t) {
    co_await std::move(t);
}

// Answers one connection with pieces of `bytes`, then shuts down sending.
inline detached serve(io::tcp::acceptor& acceptor, io::context& loop, std::string_view bytes,
                      std::size_t first, std::size_t others) {
    std::error_code ec;
    io::tcp::socket s = co_await acceptor.accept(use_await[ec]);
    acceptor.close();
    if (ec) co_return;
    std::byte request[1024];
    (void)co_await s.receive(request, use_await[ec]);
    for (std::size_t piece = first; !bytes.empty() && !ec; piece = others) {
        const std::string_view now = bytes.substr(0, piece);
        bytes.remove_prefix(now.size());
        co_await s.send_all(std::as_bytes(std::span(now)), use_await[ec]);
        std::error_code ignored;
        io::timer pause(loop);
        co_await pause.wait_for(std::chrono::milliseconds(1), use_await[ignored]);
    }
    s.shutdown_send();
    while (!ec) {  // until the client is gone
        const std::size_t n = co_await s.receive(request, use_await[ec]);
        if (n == 0) break;
    }
}

}  // namespace coppice::test
