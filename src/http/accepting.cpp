// Accepting: what happens when descriptors or places run short, closing idle connections, refusing
// with 503.
#include <coppice/base/saturating.hpp>
#include <coppice/io/timer.hpp>

#include "connection.hpp"

#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

constexpr duration accept_pause = std::chrono::milliseconds(50);
// for another loop to close an idle one
constexpr duration shed_pause = std::chrono::milliseconds(1);
constexpr int shed_pauses = 8;                   // for one client
constexpr int refused_reads_max = 16;            // of a client that is refused
constexpr std::size_t descriptors_besides = 64;  // connections: files, rings, logs
constexpr std::size_t descriptors_of_loop = 8;
constexpr std::size_t per_address_least = 8;

constexpr std::string_view refusal_text =
    "HTTP/1.1 503 Service Unavailable\r\n"
    "Content-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 18\r\n"
    "Retry-After: 1\r\n"
    "Connection: close\r\n"
    "\r\n"
    "the server is full";

// Exists while a loop waits until another one has closed an idle connection. Relaxed: see shed().
class waiting_for_others : immovable {
public:
    explicit waiting_for_others(atomic<unsigned>& count) noexcept : count_(count) {
        count_.fetch_add(1, relaxed);
    }
    ~waiting_for_others() { count_.fetch_sub(1, relaxed); }

private:
    atomic<unsigned>& count_;
};

bool out_of_resources(std::error_code ec) noexcept {
    return ec == std::errc::too_many_files_open || ec == std::errc::too_many_files_open_in_system ||
           ec == std::errc::no_buffer_space || ec == std::errc::not_enough_memory;
}

}  // namespace

session refuse_full(io::tcp::socket s) {
    std::error_code ec;
    co_await s.send_all(std::as_bytes(std::span(refusal_text)), use_await[ec]);
    s.shutdown_send();
    // Unread bytes would turn the close into a reset, which may overtake the answer.
    std::array<std::byte, 4096> request;
    for (int i = 0; i != refused_reads_max && !s.is_quiet(); ++i) {
        if (co_await s.receive(request, use_await[ec]) == 0 || ec) break;
    }
}

// Accepts until the acceptor is closed. When descriptors or memory run short, it closes idle
// connections.
session accept_connections(serving_loop& l, served_port& port, bool& began) {
    began = true;
    while (!l.draining) {
        std::error_code ec;
        io::tcp::socket s = co_await port.acceptor.accept(use_await[ec]);
        // The acceptor was closed, or its context ends. A connection that arrived last is served
        // only if it has time for its first request.
        const bool late = l.draining && !ec;
        if (late && l.options.timeouts.drain_first_request != duration::zero()) {
            l.let_in(std::move(s), port);
        }
        if (l.draining || ec == std::errc::operation_canceled) co_return;
        if (!ec) {
            if (!l.has_room()) {
                const waiting_for_others here(l.shared.loops_that_wait);
                for (int i = 0; i != shed_pauses && !l.has_room() && l.ask_others_to_shed(); ++i) {
                    std::error_code ended;
                    co_await io::timer(l.context).wait_for(shed_pause, use_await[ended]);
                    if (ended || l.draining) co_return;
                }
            }
            l.let_in(std::move(s), port);
            continue;
        }
        if (!out_of_resources(ec)) continue;  // that connection is gone; the next may be fine
        if (l.reserve.give_up()) continue;
        // one turn of the loop, in which the closed file goes away
        duration time = duration::zero();
        const waiting_for_others here(l.shared.loops_that_wait);
        if (!l.shed_idle()) {
            const bool asked = l.ask_others_to_shed();
            if (!asked) l.counts.refused.add();
            time = asked ? shed_pause : accept_pause;
        }
        io::timer pause(l.context);
        std::error_code ended;
        co_await pause.wait_for(time, use_await[ended]);
        if (ended) co_return;
    }
}

bool serving_loop::has_room() noexcept {
    if (options.connections_max == 0) return true;  // no connection can make room
    const bool is_full = shared.open_connections.load(relaxed) >= options.connections_max;
    return (!is_full && (simulated || reserve.take())) || longest_idle() != nullptr;
}

bool serving_loop::count_address(const io::endpoint& client, address_counts::slot*& from) noexcept {
    if (shared.per_address.strangers_only && address_counts::is_local(client)) return true;
    from = shared.addresses.enter(address_counts::of(client), shared.per_address.most);
    return from != nullptr;
}

void serving_loop::let_in(io::tcp::socket&& s, const served_port& port) noexcept {
    // Relaxed: a count. It exceeds the limit until a connection that is being shed has closed,
    // which may last as long as a handshake waits for a pool.
    const std::size_t open = shared.open_connections.fetch_add(1, relaxed);
    bool welcome = true;
    if (open >= options.connections_max || !(simulated || reserve.take())) [[unlikely]] {
        welcome = options.connections_max != 0 && open / 2 < options.connections_max && shed_idle();
    }
    address_counts::slot* from = nullptr;
    bool proxied = false;  // the address that counts is in the header
    if (welcome && (!port.proxies.empty() || shared.per_address.is_looked_at(open))) [[unlikely]] {
        const auto client = context.system().remote(s.native());
        const io::endpoint at = client ? client.value() : io::endpoint();
        proxied = port.proxies.contains(at);
        if (!proxied && shared.per_address.is_looked_at(open)) welcome = count_address(at, from);
    }
    if (welcome && connection::open(*this, std::move(s), from, port.security, proxied)) return;
    if (from != nullptr) shared.addresses.leave(*from);
    shared.open_connections.fetch_sub(1, relaxed);
    counts.refused.add();
    // A client of TLS would have to shake hands first; it finds its connection closed.
    if (s.is_open() && port.security == nullptr) refuse_full(std::move(s));
    if (!simulated) (void)reserve.take();
}

connection* serving_loop::longest_idle() noexcept {
    for (list* const from : {&idle, &handshakes}) {
        while (connection* const c = from->front()) {
            if (c->is_waiting()) return c;
            list::erase(*c);  // its answers are being sent
            connections.push_back(*c);
        }
    }
    return nullptr;
}

bool serving_loop::shed_idle() noexcept {
    connection* const longest = longest_idle();
    if (longest == nullptr) return false;
    idle.erase(*longest);
    connections.push_back(*longest);
    counts.shed.add();
    longest->end_wait();
    return true;
}

bool serving_loop::ask_others_to_shed() noexcept {
    bool may = false;
    for (serving_loop* const l : shared.loops) {
        if (l == this) continue;
        const shed_request::answer last = l->shed_for_others.send();
        if (last != shed_request::answer::barren) may = true;
        if (last == shed_request::answer::some) break;
    }
    return may;
}

shed_request::answer shed_request::send() noexcept {
    const std::lock_guard lock(mutex_);
    if (std::exchange(sent_, true)) return answer::none;
    loop_.context.post(*this);
    return barren_ ? answer::barren : answer::some;
}

void shed_request::shed(operation* op) noexcept {
    shed_request& request = *static_cast<shed_request*>(op);
    serving_loop& l = request.loop_;
    // Relaxed: a loop that begins or ends to wait meanwhile may be missed. If the one that asked
    // has refused its client by now, a connection that came since then stays.
    const bool is_wanted = l.shared.loops_that_wait.load(relaxed) != 0;
    const bool has_one = !l.context.ending() && l.longest_idle() != nullptr;
    if (has_one && is_wanted) l.shed_idle();
    const std::lock_guard lock(request.mutex_);
    request.sent_ = false;
    request.barren_ = !has_one;
}

// The addresses of 64:ff9b::/96 are IPv4 addresses that a translator has rewritten (RFC 6052).
constexpr std::array<unsigned char, 12> translated{0x00, 0x64, 0xff, 0x9b};

address_counts::address address_counts::of(const io::endpoint& client) noexcept {
    address key{};
    if (client.is_v4()) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(*client.data());
        key[10] = key[11] = 0xff;  // as in an IPv4-mapped address
        std::memcpy(key.data() + 12, &v4.sin_addr, 4);
    } else if (client.is_v6()) {
        const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(*client.data()).sin6_addr;
        if (IN6_IS_ADDR_V4MAPPED(&v6) ||
            std::memcmp(&v6, translated.data(), translated.size()) == 0) {
            key[10] = key[11] = 0xff;
            std::memcpy(key.data() + 12, v6.s6_addr + 12, 4);
        } else {
            std::memcpy(key.data(), &v6, 8);
        }
    }
    return key;
}

bool address_counts::is_local(const io::endpoint& client) noexcept {
    if (client.is_unix()) return true;
    const address key = of(client);
    if (client.is_v6()) {
        const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(*client.data()).sin6_addr;
        if (IN6_IS_ADDR_LOOPBACK(&v6)) return true;
        return IN6_IS_ADDR_V4MAPPED(&v6) && key[12] == 127;
    }
    return client.is_v4() && key[12] == 127;
}

address_counts::slot* address_counts::enter(const address& from, std::size_t most) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        const auto found = open_.find(from);
        if (found == open_.end() && most == 0) return nullptr;
        slot& s = found != open_.end() ? *found : *open_.emplace(from, 0).first;
        if (s.second == most) return nullptr;
        ++s.second;
        return &s;
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void address_counts::leave(slot& s) noexcept {
    const std::lock_guard lock(mutex_);
    if (--s.second == 0) open_.erase(s.first);
}

address_limit address_limit::of(const server_options& o) noexcept {
    constexpr std::size_t never = std::numeric_limits<std::size_t>::max();
    if (o.connections_per_address_max) {
        const std::size_t most = *o.connections_per_address_max;
        return {most, most < o.connections_max ? 0 : never, false};
    }
    const std::size_t most = std::max(o.connections_max / 8, per_address_least);
    return {most, most < o.connections_max ? o.connections_max / 16 : never, true};
}

bool reserve_descriptor::take() noexcept {
    if (file_ < 0) file_ = ::eventfd(0, EFD_CLOEXEC);
    return file_ >= 0;
}

bool reserve_descriptor::give_up() noexcept {
    if (file_ < 0) return false;
    ::close(std::exchange(file_, -1));
    return true;
}

namespace {

// Returns true if the path is a socket on which no process listens, and sets `found` to its status.
bool is_abandoned(const std::string& path, struct stat& found) noexcept {
    if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return false;
    const result<io::endpoint> at = io::endpoint::unix_path(path);
    const int s = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s < 0) return false;
    const bool refused =
        at && ::connect(s, at.value().data(), at.value().size()) != 0 && errno == ECONNREFUSED;
    ::close(s);
    return refused;
}

}  // namespace

socket_path::socket_path(const io::endpoint& at) : path_(at.is_unix() ? at.path() : "") {
    if (path_.starts_with('@')) path_.clear();
    struct stat found;
    if (!path_.empty() && is_abandoned(path_, found)) ::unlink(path_.c_str());
}

void socket_path::adopt() noexcept {
    struct stat found;
    if (path_.empty() || ::lstat(path_.c_str(), &found) != 0) return;
    device_ = found.st_dev;
    inode_ = found.st_ino;
}

void socket_path::remove() noexcept {
    struct stat found;
    if (inode_ == 0 || !is_abandoned(path_, found)) return;
    if (found.st_dev == device_ && found.st_ino == inode_) ::unlink(path_.c_str());
    inode_ = 0;
}

void provide_descriptors(const server_options& o, std::size_t loops) {
    const std::size_t besides = descriptors_besides + descriptors_of_loop * loops;
    const rlim_t needed = saturating_add<rlim_t>(o.connections_max, besides);
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
    if (o.raise_descriptor_limit) {
        const rlimit raised{std::min(needed, limit.rlim_max), limit.rlim_max};
        if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
        if (limit.rlim_cur >= needed) return;
    }
    const std::string warning =
        "the limit of descriptors is " + std::to_string(limit.rlim_cur) + ", but " +
        std::to_string(o.connections_max) + " connections need " + std::to_string(needed) +
        ": idle ones will be closed earlier; raise RLIMIT_NOFILE or lower connections_max";
    if (o.on_warning) {
        o.on_warning(warning);
    } else {
        std::fprintf(stderr, "coppice: %s\n", warning.c_str());
    }
}

io::endpoint peer_address::get() noexcept {
    const io::endpoint* const told = of_.owner->told_client();
    if (told != nullptr) return *told;
    const std::lock_guard lock(mutex_);
    if (!known_) {
        const request_origin& origin = of_.origin;
        const link* const through = of_.owner->through();
        if (through != nullptr && through->peer() != nullptr) {
            address_ = *through->peer();
        } else {
            const auto client = origin.loop->system().remote(origin.connection);
            address_ = client ? client.value() : io::endpoint();
        }
        known_ = true;
        if (!of_.more) of_.more = true;  // on the pool it is set already
    }
    return address_;
}

bool peer_address::is_secure() const noexcept {
    return of_.owner->is_secure();
}

const io::agreed_security* peer_address::security() const noexcept {
    return of_.owner->security();
}

const forwarding& peer_address::trusted() const noexcept {
    return of_.owner->trusted();
}

// Called for requests that came from a server.
forwarded_client request::client() const noexcept {
    peer_address& peer = *origin_->peer;
    return forwarded_from(*head_, peer.trusted(), {peer.get(), peer.is_secure()});
}

bool request::is_secure() const noexcept {
    if (origin_ == nullptr || origin_->peer == nullptr) return false;
    const bool trusts = !origin_->peer->trusted().from.empty();
    return trusts ? client().is_secure : origin_->peer->is_secure();
}

const io::agreed_security* request::security() const noexcept {
    return origin_ == nullptr || origin_->peer == nullptr ? nullptr : origin_->peer->security();
}

io::endpoint request::peer() const noexcept {
    if (origin_ == nullptr || origin_->peer == nullptr) return {};
    const bool trusts = !origin_->peer->trusted().from.empty();
    return trusts ? client().address : origin_->peer->get();
}

}  // namespace coppice::http
