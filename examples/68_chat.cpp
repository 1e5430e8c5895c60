// A chat: each page has a WebSocket, and gets what the others say. Started with a port, it serves
// browsers; without one, two pages of its own talk, and it prints what they see.
#include "68_chat_trial.hpp"

// [top]
#include <coppice/channel.hpp>
#include <coppice/coppice.hpp>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

using namespace coppice;
namespace ex = coppice::execution;
// [/top]

namespace {

// [page]
constexpr char page[] = R"(<!doctype html><title>Chat</title>
<form id=f><input id=t autofocus></form><pre id=all></pre>
<script>
const socket = new WebSocket(location.href.replace(/^http/, 'ws') + 'chat');
socket.onmessage = e => all.append(e.data + '\n');
f.onsubmit = e => { e.preventDefault(); socket.send(t.value); t.value = ''; };
</script>)";
// [/page]

// [chat]
using room = broadcast_channel<std::string>;  // every receiver gets every line

task<> listen_to(http::websocket& socket, room& lines) {
    while (const auto line = co_await socket.receive()) lines.send(std::string(line->data));
}

task<> tell(http::websocket& socket, room::receiver lines) {
    while (const auto line = co_await lines.receive()) {
        if (co_await socket.send(*line)) co_return;  // the connection is closing
    }
}

// Ends when the page leaves, or its connection does.
task<> chat(http::websocket& socket, room& lines) {
    co_await ex::when_any(listen_to(socket, lines), tell(socket, lines.subscribe()));
}

http::router routes(room& lines) {
    http::router r;
    r.get("/", [](http::request&) { return http::response::html(page); });
    r.get("/chat", http::websocket_handler(
                       [&lines](http::websocket& socket) { return chat(socket, lines); }));
    return r;
}
// [/chat]

}  // namespace

int main(int argc, char** argv) {
    room lines(100);  // a page that is further behind misses lines
    http::server_options options;
    options.endpoint = io::loopback(static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0));
    http::server server(options, routes(lines));
    if (argc > 1) {
        server.drain_on({SIGINT, SIGTERM});
        server.run();
        return 0;
    }
    std::thread serving([&server] { server.run(); });
    talk(server.port());
    server.drain();
    serving.join();
}
