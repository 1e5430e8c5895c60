// A client in a simulation that sends bytes as they are given.
#pragma once

#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace coppice::test {

// One connection: sends in pieces of `piece` bytes, then waits for the end, or for `wanted`.
class raw_peer {
public:
    raw_peer(io::context& loop, io::endpoint to) : loop_(loop), socket_(loop), to_(to) {}
    task<> send(std::string text, std::size_t piece) {
        std::error_code ec;
        if (!socket_.is_open()) co_await socket_.connect(to_, use_await[ec]);
        for (std::string_view left = text; !left.empty() && !ec;) {
            const std::string_view now = left.substr(0, piece);
            co_await socket_.send_all(std::as_bytes(std::span(now)), use_await[ec]);
            left.remove_prefix(now.size());
            io::timer pause(loop_);
            co_await pause.wait_for(std::chrono::milliseconds(5),
                                    use_await[ec]);  // longer than a segment takes to arrive
        }
    }
    // Receives until the text contains `wanted`, or the connection ends.
    task<std::string> receive(std::string_view wanted) {
        std::string all;
        for (std::error_code ec; !ec && all.find(wanted) == all.npos;) {
            std::array<char, 512> some;
            const std::size_t n =
                co_await socket_.receive(std::as_writable_bytes(std::span(some)), use_await[ec]);
            if (n == 0) break;
            all.append(some.data(), n);
        }
        co_return all;
    }
    task<std::string> receive_all() { return receive("\x01 never sent"); }
    void finish_sending() { socket_.shutdown_send(); }

private:
    io::context& loop_;
    io::tcp::socket socket_;
    io::endpoint to_;
};

}  // namespace coppice::test
