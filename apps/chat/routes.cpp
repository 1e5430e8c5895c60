// A request for /chat is looked at before it becomes a WebSocket: a refusal is an HTTP answer.
#include "routes.hpp"

#include "page.hpp"
#include "visit.hpp"

#include <coppice/http/response.hpp>
#include <coppice/http/websocket.hpp>

#include <memory>
#include <string>
#include <utility>

namespace chat {

using namespace coppice;

http::router make_routes(hall& in, const options& o) {
    const auto how = std::make_shared<http::websocket_options>();
    how->message_bytes_max = o.message_bytes_max;
    how->ping_interval = o.ping_interval;
    how->deflate = false;  // what is said is short, and compressing costs memory per visitor
    http::router routes;
    routes.get("/", [](http::request&) { return http::response::html(page); });
    routes.get("/healthz", [](http::request&) { return http::response::text("ok\n"); });
    // GET /chat?name=NAME&room=ROOM
    routes.get("/chat", [&in, how, rate = o.messages_per_second](http::request& r) {
        const std::string room = r.query<std::string>("room").value_or("lobby");
        const std::string name = r.query<std::string>("name").value_or("");
        return http::accept_websocket(
            r,
            [mine = in.enter(room, name), rate](http::websocket& socket) mutable {
                return visit(socket, std::move(mine), rate);  // called once
            },
            how);
    });
    return routes;
}

}  // namespace chat
