// UDP: whole datagrams, each with its sender; here with callbacks and a blocking call.
#include <coppice/coppice.hpp>

#include <array>
#include <cstdio>
#include <string_view>

using namespace coppice;

int main() {
    // [datagrams]
    io::context loop;
    io::udp::socket server(loop, io::loopback(0));
    io::udp::socket client(loop, io::loopback(0));

    std::array<std::byte, 512> question;
    server.receive_from(question, [&](std::error_code ec, io::received_datagram got) {
        if (ec) return;
        std::printf("the server received %zu bytes\n", got.size);
        server.send_to(std::span(question).first(got.size), got.from,
                       [](std::error_code, std::size_t) {});
    });

    constexpr std::string_view text = "is anybody there?";
    client.send_to(std::as_bytes(std::span(text)), server.local(), block);  // runs the loop
    std::array<char, 512> answer;
    const io::received_datagram got =
        client.receive_from(std::as_writable_bytes(std::span(answer)), block);
    std::printf("%.*s\n", static_cast<int>(got.size), answer.data());
    // [/datagrams]
}
