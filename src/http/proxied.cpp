// connection, at its beginning behind a proxy: the header of the PROXY protocol.
#include "connection.hpp"

#include <coppice/base/saturating.hpp>
#include <coppice/http/proxy_header.hpp>

#include <cstring>
#include <new>
#include <utility>

namespace coppice::http {

using namespace internal;

// Waits for the header, as in idle, but no longer than for a request's head. May end the
// connection.
void connection::await_proxy_header(const io::server_security* security) noexcept {
    proxied_client* const client = try_new<proxied_client>();
    if (client == nullptr) {
        run_out_of_memory();
        return;
    }
    client->security = security;
    from_.become(*client);
    idle_until_ = saturating_add(loop_.context.turn_time(), loop_.options.timeouts.header);
    loop_.add_handshake(*this);
    receive_proxy_header();
}

void connection::receive_proxy_header() noexcept {
    while (start_receiving(&proxy_header_received) && take_proxy_header()) {
    }
}

void connection::proxy_header_received(operation* op) noexcept {
    connection& c = receive_ended(op);
    if (c.take_proxy_header()) c.receive_proxy_header();
}

// Returns true if more of the header has to arrive. Otherwise the connection has gone on, or has
// ended.
bool connection::take_proxy_header() noexcept {
    proxied_client& client = *from_.proxied();
    std::string& before = client.header;
    const std::size_t earlier = before.size();
    proxy_header header;
    parse_result read{parse_status::error};
    if (result > 0 && socket_.is_open()) {
        std::string_view bytes(reinterpret_cast<const char*>(data),
                               static_cast<std::size_t>(result));
        try {
            if (earlier != 0) {
                before.append(bytes.substr(0, proxy_header_bytes_max - earlier));
                bytes = before;
            }
            read = parse_proxy_header(bytes, header);
            if (read.status == parse_status::partial && earlier == 0) before.assign(bytes);
            if (read.status == parse_status::error) loop_.counts.refused.add();
        } catch (const std::bad_alloc&) {
        }
    }
    if (read.status != parse_status::complete) {
        take_received().release();
        if (read.status == parse_status::partial) return true;
        end();
        return false;
    }
    std::string().swap(before);
    client.is_told = header.client.family() != AF_UNSPEC;
    client.client = header.client;
    client.is_read = true;
    begin_proxied(read.consumed - earlier);
    return false;
}

// Goes on as open() does. The last `header_bytes` bytes of the header are at the front of the
// buffer; what has arrived after them follows.
void connection::begin_proxied(std::size_t header_bytes) noexcept {
    io::buffer_pool& buffers = loop_.context.buffers();
    proxied_client& client = *from_.proxied();
    const io::server_security* const security = client.security;
    const std::size_t rest = static_cast<std::size_t>(result) - header_bytes;
    loop_.counts.bytes_received.add(header_bytes);
    std::memmove(data, data + header_bytes, rest);
    result = static_cast<int>(rest);
    const bool welcome = count_client(client);
    const bool good = welcome && (security == nullptr || secure_by(*security));
    if (rest == 0 || !good) buffers.give(data);
    if (!welcome) {
        loop_.counts.refused.add();
        if (security == nullptr) refuse_full(std::move(socket_));
    }
    if (!good) {
        end();
    } else if (security != nullptr) {
        // secure_by() has made the link.
        if (rest != 0) static_cast<secure_link&>(*link_).begin_with({buffers, data, rest});
        begin_handshake();
    } else {
        become_idle();
        if (rest == 0 || take_input()) serve();
    }
}

// Returns false if the address of the client has too many connections.
bool connection::count_client(proxied_client& client) noexcept {
    // Relaxed: a count. This connection is in it.
    const std::size_t open = loop_.shared.open_connections.load(relaxed);
    if (!loop_.shared.per_address.is_looked_at(open - 1)) return true;
    if (client.is_told) return loop_.count_address(client.client, client.counted);
    const auto proxy = loop_.context.system().remote(socket_.native());
    return loop_.count_address(proxy ? proxy.value() : io::endpoint(), client.counted);
}

}  // namespace coppice::http
