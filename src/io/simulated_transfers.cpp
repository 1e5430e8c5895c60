// The simulation's streams and datagrams: connections, and what is sent and received.
#include "simulated_world.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace coppice::io {

// ---- Streams ----------------------------------------------------------------------------------

simulation::world::object* simulation::world::listener_at(const endpoint& at, int type) noexcept {
    for (const auto& [id, o] : objects_) {
        const bool takes = type == SOCK_DGRAM || o->is == state::listening;
        if (o->type == type && takes && o->local == at) return o.get();
    }
    return nullptr;
}

// Called when a client's request to connect arrives: gives the listener a connection, and the
// client an answer.
void simulation::world::arrive_connection(event& e) {
    object* const client = find_id(e.from);
    if (client == nullptr || client->is != state::connecting) return;
    object* const at = find_id(e.to);
    const bool taken = at != nullptr && at->is == state::listening &&
                       at->backlog.size() < std::max<std::size_t>(at->backlog_max, 1);
    const auto answer = taken ? event::kind::connected : event::kind::refused;
    if (taken) {
        object& made = make(client->family, SOCK_STREAM);
        made.is = state::connected;
        made.local = at->local;
        made.remote = client->local;
        made.peer = client->id;
        client->peer = made.id;
        at->backlog.push_back(made.id);
        poke(*at);
    }
    later_in_order(*client, event{answer, client->id, 0, {}, {}, nullptr});
}

long simulation::world::connect(int fd, const endpoint& to) noexcept {
    if (const int failure = begin(system_call::connect)) return -failure;
    object& o = *find(fd);
    const object* const listener = listener_at(to, SOCK_STREAM);
    o.is = state::connecting;
    o.remote = to;
    if (!to.is_unix()) o.local = *endpoint::parse("127.0.0.1", ++last_port_);
    event e{event::kind::connection, listener == nullptr ? 0 : listener->id, o.id, {}, {}, nullptr};
    later(std::move(e), delayed());
    // An interrupted connect continues, too.
    const bool interrupted = dice_.chance(faults_.interrupted);
    return end(system_call::connect, fd, interrupted ? -EINTR : -EINPROGRESS);
}
long simulation::world::connect_outcome(int fd) noexcept {
    object& o = *find(fd);
    return end(system_call::connect, fd, -std::exchange(o.error, 0));
}

long simulation::world::accept(int fd) noexcept {
    if (const int failure = begin(system_call::accept)) return -failure;
    object& o = *find(fd);
    if (dice_.chance(faults_.interrupted)) return -EINTR;
    if (!o.backlog.empty() && dice_.chance(faults_.try_again)) {
        later(event{event::kind::poke, o.id, 0, {}, {}, nullptr}, delayed());
        return end(system_call::accept, fd, -EAGAIN);
    }
    if (o.backlog.empty()) return end(system_call::accept, fd, -EAGAIN);
    object& connection = *find_id(o.backlog.front());
    o.backlog.pop_front();
    return end(system_call::accept, fd, give_descriptor(connection));
}

std::size_t simulation::world::shortened(std::size_t size) noexcept {
    if (size < 2 || !dice_.chance(faults_.short_transfers)) return size;
    return 1 + dice_.below(size - 1);
}

long simulation::world::receive(int fd, std::span<std::byte> into) noexcept {
    if (const int failure = begin(system_call::receive)) {
        reset_both(*find(fd));
        find(fd)->error = 0;
        return end(system_call::receive, fd, -failure);
    }
    return end(system_call::receive, fd, transfer_in(*find(fd), into));
}
long simulation::world::transfer_in(object& o, std::span<std::byte> into) noexcept {
    if (dice_.chance(faults_.interrupted)) return -EINTR;
    if (o.is == state::reset) return -ECONNRESET;
    if (o.is != state::connected) return -ENOTCONN;
    if (o.inbox.empty()) return o.ended || o.receive_shut ? 0 : -EAGAIN;
    const bool again = dice_.chance(faults_.try_again);
    const std::size_t size = std::min(into.size(), o.inbox.size());
    const std::size_t moved = again ? 0 : shortened(size);
    // A short read means that nothing more is there now, so the rest gets an edge of its own.
    if (moved < size) later(event{event::kind::poke, o.id, 0, {}, {}, nullptr}, delayed());
    if (again) return -EAGAIN;
    const auto end = o.inbox.begin() + static_cast<std::ptrdiff_t>(moved);
    std::copy(o.inbox.begin(), end, into.begin());
    o.inbox.erase(o.inbox.begin(), end);
    if (std::exchange(o.sender_waits, false)) {
        later(event{event::kind::poke, o.peer, 0, {}, {}, nullptr}, delayed());
    }
    return static_cast<long>(moved);
}

long simulation::world::send(int fd, std::span<const std::byte> from) noexcept {
    if (const int failure = begin(system_call::send)) {
        reset_both(*find(fd));
        return end(system_call::send, fd, -failure);
    }
    return end(system_call::send, fd, transfer_out(*find(fd), from));
}
long simulation::world::transfer_out(object& o, std::span<const std::byte> from) {
    if (dice_.chance(faults_.interrupted)) return -EINTR;
    if (o.is == state::reset || o.send_shut) return -EPIPE;
    if (o.is != state::connected) return -ENOTCONN;
    object* const peer = find_id(o.peer);
    if (peer == nullptr) {  // bytes for a peer that is gone come back as a reset
        later_in_order(o, event{event::kind::reset, o.id, 0, {}, {}, nullptr});
        return static_cast<long>(from.size());
    }
    const std::size_t used = peer->inbox.size() + peer->in_flight;
    if (used >= peer->capacity) {
        peer->sender_waits = true;
        return -EAGAIN;
    }
    if (dice_.chance(faults_.try_again)) {
        later(event{event::kind::poke, o.id, 0, {}, {}, nullptr}, delayed());
        return -EAGAIN;
    }
    const std::size_t moved = shortened(std::min(from.size(), peer->capacity - used));
    if (dice_.chance(faults_.resets)) {
        reset_both(o);
        return static_cast<long>(moved);
    }
    event e{event::kind::segment, peer->id, o.id, {}, {}, nullptr};
    e.content.assign(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(moved));
    peer->in_flight += moved;
    later_in_order(*peer, std::move(e));
    return static_cast<long>(moved);
}

// ---- Messages: pieces of a stream, and datagrams ----------------------------------------------

long simulation::world::receive_message(int fd, msghdr& message) noexcept {
    object& o = *find(fd);
    const std::span<iovec> pieces(message.msg_iov, message.msg_iovlen);
    std::size_t room = 0;
    for (const iovec& piece : pieces) room += piece.iov_len;
    bytes whole(room);
    long got = 0;
    message.msg_flags = 0;
    if (o.type == SOCK_STREAM) {
        got = receive(fd, whole);
    } else {
        if (const int failure = begin(system_call::receive)) return -failure;
        if (dice_.chance(faults_.interrupted)) return -EINTR;
        if (o.datagrams.empty()) return end(system_call::receive, fd, -EAGAIN);
        const datagram d = std::move(o.datagrams.front());
        o.datagrams.pop_front();
        if (d.content.size() > room) message.msg_flags = MSG_TRUNC;
        got = static_cast<long>(std::min(d.content.size(), room));
        std::copy_n(d.content.begin(), got, whole.begin());  // got is not negative
        std::memcpy(message.msg_name, d.from.data(), d.from.size());
        message.msg_namelen = d.from.size();
        end(system_call::receive, fd, got);
    }
    std::size_t copied = 0;
    for (const iovec& piece : pieces) {
        if (got <= 0 || copied == static_cast<std::size_t>(got)) break;
        const std::size_t size = std::min(piece.iov_len, static_cast<std::size_t>(got) - copied);
        if (size == 0) continue;
        std::memcpy(piece.iov_base, whole.data() + copied, size);
        copied += size;
    }
    return got;
}

long simulation::world::send_message(int fd, const msghdr& message) noexcept {
    object& o = *find(fd);
    bytes whole;
    for (const iovec& piece : std::span<iovec>(message.msg_iov, message.msg_iovlen)) {
        const auto* const first = static_cast<const std::byte*>(piece.iov_base);
        whole.insert(whole.end(), first, first + piece.iov_len);
    }
    if (o.type == SOCK_STREAM) return send(fd, whole);
    if (const int failure = begin(system_call::send)) return -failure;
    if (dice_.chance(faults_.interrupted)) return -EINTR;
    if (whole.size() > 65'507) return end(system_call::send, fd, -EMSGSIZE);
    const long size = static_cast<long>(whole.size());
    const endpoint to =
        endpoint::from(static_cast<const sockaddr*>(message.msg_name), message.msg_namelen);
    const object* const receiver = listener_at(to, SOCK_DGRAM);
    int copies = dice_.chance(faults_.lost_datagrams) ? 0 : 1;
    if (copies == 1 && dice_.chance(faults_.doubled_datagrams)) copies = 2;
    for (; copies != 0 && receiver != nullptr; --copies) {
        later(event{event::kind::datagram, receiver->id, o.id, whole, o.local, nullptr}, delayed());
    }
    return end(system_call::send, fd, size);
}

}  // namespace coppice::io
