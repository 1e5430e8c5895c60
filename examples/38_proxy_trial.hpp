// The trial that 38_proxy runs without arguments: an echo server as the target, and two clients.
#pragma once

#include <coppice/io.hpp>

#include <array>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include <unistd.h>

class proxy_trial {
public:
    proxy_trial() : echo_([this] { echo(); }) {}
    ~proxy_trial() {
        if (clients_.joinable()) clients_.join();
        echo_.join();
    }
    std::string target() const { return target_; }
    // Starts the clients. The second one sends this process a SIGTERM while it is connected.
    void begin(const std::string& proxy) {
        clients_ = std::thread([proxy] {
            namespace io = coppice::io;
            io::context loop;
            say(io::tcp::connect(loop, proxy, coppice::block), "hello through the proxy", true);
            io::tcp::socket second = io::tcp::connect(loop, proxy, coppice::block);
            say(second, "and again", false);
            ::kill(::getpid(), SIGTERM);
            std::array<std::byte, 16> rest;
            std::error_code ec;  // the proxy closes, or resets
            second.receive(rest, coppice::block[ec]);
        });
    }

private:
    static void say(coppice::io::tcp::socket&& socket, std::string_view words, bool last) {
        say(socket, words, last);
    }
    // If `last`, shuts down sending after `words` and reads until the echo ends.
    static void say(coppice::io::tcp::socket& socket, std::string_view words, bool last) {
        socket.send_all(std::as_bytes(std::span(words)), coppice::block);
        if (last) socket.shutdown_send();
        std::string heard;
        std::array<char, 64> some;
        while (last || heard.size() != words.size()) {
            const std::size_t n =
                socket.receive(std::as_writable_bytes(std::span(some)), coppice::block);
            if (n == 0) break;
            heard.append(some.data(), n);
        }
        std::printf("%s\n", heard.c_str());
    }
    void echo() {
        for (int i = 0; i != 2; ++i) {
            coppice::io::tcp::socket client = acceptor_.accept(coppice::block);
            std::error_code ec;
            coppice::io::copy(client, client, coppice::block[ec]);
        }
    }

    coppice::io::context loop_;
    coppice::io::tcp::acceptor acceptor_ = coppice::io::tcp::listen(loop_, "127.0.0.1:0");
    const std::string target_ = "localhost:" + std::to_string(acceptor_.local().port());
    std::thread clients_;
    std::thread echo_;
};
