// The world of io/simulation.hpp: calls, events, and the passage of time.
#include "simulated_world.hpp"

#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/futex.hpp>
#include <coppice/base/internal/options.hpp>
#include <coppice/base/saturating.hpp>

#include <netdb.h>
#include <algorithm>
#include <cerrno>
#include <cstring>

namespace coppice::io {

using namespace internal;

namespace {

// The time of day at which a world is 0 s old. A world starts at the age of one second.
constexpr auto first_day = std::chrono::year(2000) / std::chrono::January / 1;
constexpr int first_descriptor = 1 << 20;  // no real file has such a number

// Returns the error that suits a call which is made to fail.
int suitable_error(system_call call) noexcept {
    switch (call) {
        case system_call::socket:
        case system_call::accept:
            return EMFILE;
        case system_call::bind:
        case system_call::listen:
            return EADDRINUSE;
        case system_call::connect:
            return ENETUNREACH;
        case system_call::receive:
        case system_call::send:
            return ECONNRESET;
        case system_call::set_option:
            return ENOPROTOOPT;
        case system_call::watch:
            return ENOSPC;
        case system_call::shutdown:
            return ENOTCONN;
        case system_call::open:
            return EACCES;
        case system_call::file:
        case system_call::read:
            return EIO;
        case system_call::signals:
            return EMFILE;
        case system_call::look_up:
            return EAI_AGAIN;
    }
    return EIO;
}

}  // namespace

simulated_faults simulated_faults::none() noexcept {
    simulated_faults f;
    f.short_transfers = f.interrupted = f.try_again = f.reordered = f.late_cancels = 0;
    f.delay_max = duration::zero();
    return f;
}

simulation::simulation(std::uint64_t seed, const simulated_faults& faults)
    : world_(std::make_unique<world>(seed, faults)) {
    check_option("simulated_faults::delay_max", faults.delay_max);
    plant_host("localhost", {*endpoint::parse("127.0.0.1", 0), *endpoint::parse("::1", 0)});
}
simulation::~simulation() = default;
void simulation::fail_call(std::uint64_t n) noexcept {
    world_->fail_at_ = n == 0 ? 0 : world_->calls_ + n;
    world_->failed_.reset();
}
std::optional<system_call> simulation::failed() const noexcept {
    return world_->failed_;
}
std::uint64_t simulation::calls() const noexcept {
    return world_->calls_;
}
std::uint64_t simulation::trace() const noexcept {
    return world_->trace_;
}
void simulation::pass(duration time) noexcept {
    world_->pass_until(saturating_add(world_->now_, std::max(time, duration::zero())));
}
const clock& simulation::time() const noexcept {
    return *world_;
}
std::size_t simulation::open_descriptors() const noexcept {
    const auto& all = world_->descriptors_;
    return all.size() - static_cast<std::size_t>(std::count(all.begin(), all.end(), 0u));
}
void simulation::plant_host(std::string_view name, std::vector<endpoint> addresses, duration time) {
    world_->hosts_.insert_or_assign(std::string(name),
                                    world::known_host{std::move(addresses), 0, time});
}
void simulation::plant_host_failure(std::string_view name, int error, duration time) {
    world_->hosts_.insert_or_assign(std::string(name), world::known_host{{}, error, time});
}
void simulation::raise(int signal, duration after) {
    COPPICE_CHECK(signal >= 1 && signal <= 64, "a signal's number is 1 to 64");
    world::event e{world::event::kind::signal, 0, 0, {}, {}, nullptr, signal};
    world_->later(std::move(e), saturating_add(world_->delayed(), after));
}
std::string_view simulation::content(std::string_view path) const {
    const auto found = world_->files_.find(path);
    if (found == world_->files_.end()) return {};
    return {reinterpret_cast<const char*>(found->second.data()), found->second.size()};
}

// ---- Calls and objects ------------------------------------------------------------------------

int simulation::world::begin(system_call call) noexcept {
    pass_until(saturating_add(now_, duration(100 + dice_.below(900))));
    if (++calls_ != fail_at_) return 0;
    failed_ = call;
    return suitable_error(call);
}
long simulation::world::end(system_call call, int fd, long outcome) noexcept {
    note(static_cast<std::uint64_t>(call));
    note(static_cast<std::uint64_t>(fd));
    note(static_cast<std::uint64_t>(outcome));
    note(static_cast<std::uint64_t>(now_.time_since_epoch().count()));
    return outcome;
}

simulation::world::object* simulation::world::find_id(identity id) noexcept {
    const auto found = objects_.find(id);
    return found == objects_.end() ? nullptr : found->second.get();
}
simulation::world::object* simulation::world::find(int fd) noexcept {
    const auto index = static_cast<std::size_t>(fd - first_descriptor);
    return fd < first_descriptor || index >= descriptors_.size() ? nullptr
                                                                 : find_id(descriptors_[index]);
}
simulation::world::object& simulation::world::make(int family, int type) {
    auto made = std::make_unique<object>();
    made->id = ++last_identity_;
    made->family = family;
    made->type = type;
    made->capacity = 4096 + dice_.below(64 * 1024);
    return *(objects_[made->id] = std::move(made));
}
// Returns the lowest free number, as a kernel does.
int simulation::world::give_descriptor(object& o) {
    auto place = std::find(descriptors_.begin(), descriptors_.end(), 0u);
    if (place == descriptors_.end()) place = descriptors_.insert(place, 0);
    *place = o.id;
    return first_descriptor + static_cast<int>(place - descriptors_.begin());
}

result<int> simulation::world::socket(int family, int type, int) noexcept {
    const int failure = begin(system_call::socket);
    if (failure != 0) return system_error(failure);
    return static_cast<int>(end(system_call::socket, 0, give_descriptor(make(family, type))));
}

bool simulation::world::bound(const endpoint& at, int type) noexcept {
    return std::any_of(objects_.begin(), objects_.end(), [&](const auto& each) {
        const object& o = *each.second;
        const bool holds = o.is == state::fresh || o.is == state::listening;
        return holds && o.type == type && o.local == at;
    });
}

std::error_code simulation::world::bind(int fd, const endpoint& at) noexcept {
    if (const int failure = begin(system_call::bind)) return system_error(failure);
    object& o = *find(fd);
    endpoint chosen = at;
    if (!at.is_unix() && at.port() == 0) {
        const std::string text = at.to_string();  // ends with ":0"
        chosen = *endpoint::parse(text.substr(0, text.size() - 1) + std::to_string(++last_port_));
    }
    if (bound(chosen, o.type)) return system_error(EADDRINUSE);
    o.local = chosen;
    end(system_call::bind, fd, chosen.port());
    return {};
}

std::error_code simulation::world::listen(int fd, int backlog) noexcept {
    if (const int failure = begin(system_call::listen)) return system_error(failure);
    object& o = *find(fd);
    o.is = state::listening;
    o.backlog_max = static_cast<std::size_t>(backlog);
    end(system_call::listen, fd, 0);
    return {};
}

result<endpoint> simulation::world::local(int fd) noexcept {
    const object* const o = find(fd);
    if (o == nullptr) return system_error(EBADF);
    return o->local;
}
result<endpoint> simulation::world::remote(int fd) noexcept {
    const object* const o = find(fd);
    if (o == nullptr) return system_error(EBADF);
    if (o->is != state::connected) return system_error(ENOTCONN);
    return o->remote;
}

std::error_code simulation::world::set_option(int fd, int level, int name, const void* value,
                                              socklen_t size) noexcept {
    if (const int failure = begin(system_call::set_option)) return system_error(failure);
    object* const o = find(fd);
    if (o == nullptr) return system_error(EBADF);
    const auto* const first = static_cast<const std::byte*>(value);
    o->options[{level, name}] = bytes(first, first + size);
    end(system_call::set_option, fd, name);
    return {};
}
std::error_code simulation::world::get_option(int fd, int level, int name, void* value,
                                              socklen_t size) noexcept {
    object* const o = find(fd);
    if (o == nullptr) return system_error(EBADF);
    const bytes& known = o->options[{level, name}];
    std::memset(value, 0, size);  // what was never set is off
    const std::size_t have = std::min<std::size_t>(size, known.size());
    std::copy_n(known.begin(), have, static_cast<std::byte*>(value));
    return {};
}

std::error_code simulation::world::shutdown(int fd, shutdown_direction how) noexcept {
    if (const int failure = begin(system_call::shutdown)) return system_error(failure);
    object* const o = find(fd);
    if (o == nullptr) return system_error(EBADF);
    if (o->is != state::connected) return system_error(ENOTCONN);
    if (how != shutdown_direction::receive && !std::exchange(o->send_shut, true)) {
        if (object* const peer = find_id(o->peer)) {
            event e{event::kind::end, peer->id, o->id, {}, {}, nullptr};
            later_in_order(*peer, std::move(e));
        }
    }
    if (how != shutdown_direction::send) o->receive_shut = true;
    poke(*o);
    end(system_call::shutdown, fd, 0);
    return {};
}

bool simulation::world::is_quiet(int fd) noexcept {
    const object* const o = find(fd);
    return o != nullptr && o->is == state::connected && o->inbox.empty() && !o->ended &&
           !o->receive_shut && o->error == 0;
}
std::chrono::sys_seconds simulation::world::wall_time() noexcept {
    const auto passed = std::chrono::floor<std::chrono::seconds>(now().time_since_epoch());
    return std::chrono::sys_days(first_day) + passed;
}

void simulation::world::close(int fd) noexcept {
    object* const o = find(fd);
    COPPICE_CHECK(o != nullptr, "a simulated descriptor was closed that is not open");
    descriptors_[static_cast<std::size_t>(fd - first_descriptor)] = 0;
    drop(*o);
    end(system_call::shutdown, fd, -1);
}
// Called when the object is gone: tells its peer.
void simulation::world::drop(object& o) noexcept {
    for (const identity waiting : o.backlog) {
        if (object* const connection = find_id(waiting)) drop(*connection);
    }
    // The peer may still be connecting although its connection has been taken in.
    if (object* const peer = find_id(o.peer)) {
        // If bytes remain unread, the end becomes a reset.
        const bool unread = !o.inbox.empty() || o.in_flight != 0;
        const auto what = unread ? event::kind::reset : event::kind::end;
        if (unread || !o.send_shut) {
            later_in_order(*peer, event{what, peer->id, o.id, {}, {}, nullptr});
        }
        peer->peer = 0;
    }
    objects_.erase(o.id);
}
void simulation::world::reset_both(object& o) {
    if (object* const peer = find_id(o.peer)) {
        later_in_order(*peer, event{event::kind::reset, peer->id, o.id, {}, {}, nullptr});
        peer->peer = 0;
    }
    o.peer = 0;
    o.is = state::reset;
    o.inbox.clear();
    poke(o);
}

// ---- Readiness and time -----------------------------------------------------------------------

int simulation::world::watch(descriptor& d) noexcept {
    if (const int failure = begin(system_call::watch)) return failure;
    object* const o = find(d.fd);
    if (o == nullptr) return EBADF;
    o->watched_by = &d;
    poke(*o);
    return 0;
}

void simulation::world::poke(object& o) {
    if (o.watched_by == nullptr || std::exchange(o.poked, true)) return;
    poked_.push_back(o.id);
}

std::uint32_t simulation::world::readiness(const object& o) const noexcept {
    std::uint32_t events = 0;
    if (o.type == SOCK_DGRAM) return o.datagrams.empty() ? EPOLLOUT : EPOLLOUT | EPOLLIN;
    switch (o.is) {
        case state::fresh:
            return EPOLLOUT | EPOLLHUP;
        case state::listening:
            return o.backlog.empty() ? 0u : unsigned{EPOLLIN};
        case state::signals:
            return o.come == 0 ? 0u : unsigned{EPOLLIN};
        case state::connecting:
        case state::file:
            return 0;
        case state::reset:
            return EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLHUP | EPOLLERR;
        case state::connected:
            break;
    }
    if (!o.inbox.empty() || o.ended || o.receive_shut) events |= EPOLLIN;
    if (o.ended || o.receive_shut) events |= EPOLLRDHUP;
    if (o.ended && o.send_shut) events |= EPOLLHUP;
    const auto peer = objects_.find(o.peer);
    const bool full =
        peer != objects_.end() &&
        peer->second->inbox.size() + peer->second->in_flight >= peer->second->capacity;
    if (!full) events |= EPOLLOUT;
    return events;
}

time_point simulation::world::delayed() noexcept {
    return saturating_add(
        now_, duration(dice_.below(static_cast<std::uint64_t>(faults_.delay_max.count()) + 1)));
}
void simulation::world::later(event e, time_point when) {
    events_.emplace(std::pair(when, ++last_event_), std::move(e));
}
void simulation::world::later_in_order(object& to, event e) {
    to.last_arrival = std::max(to.last_arrival, delayed());
    later(std::move(e), to.last_arrival);
}

int simulation::world::wait(ready_event* ready, int most,
                            std::optional<time_point> until) noexcept {
    pass_until(saturating_add(now_, duration(100 + dice_.below(900))));
    if (dice_.chance(faults_.interrupted)) return -1;
    for (bool finished = false;;) {
        while (!events_.empty() && events_.begin()->first.first <= now_) {
            event e = std::move(events_.extract(events_.begin()).mapped());
            finished = finished || e.what == event::kind::file;  // the operation ends right here
            happen(e);
        }
        const int count = report(ready, most);
        if (count != 0 || finished) return count;
        // relaxed: the loop finds what it was woken for by its own means
        if (woken_.exchange(0, relaxed) != 0 || !until) return 0;
        if (!events_.empty() && events_.begin()->first.first <= *until) {
            pass_until(events_.begin()->first.first);
        } else if (*until != ring::forever) {
            pass_until(std::max(now_, *until));
            return 0;
        } else {
            futex_wait(woken_, std::uint32_t{0});  // from here on, only another thread can act
        }
    }
}

void simulation::world::wake() noexcept {
    woken_.store(1, relaxed);
    futex_wake_one(woken_);
}

// Reports some of the poked sockets, in any order; at least one of them is ready.
int simulation::world::report(ready_event* ready, int most) noexcept {
    for (std::size_t i = poked_.size(); i > 1; --i) {
        if (faults_.reordered != 0) std::swap(poked_[i - 1], poked_[dice_.below(i)]);
    }
    int count = 0;
    std::vector<identity> passed;
    for (const identity id : poked_) {
        object* const o = find_id(id);
        if (o == nullptr && id != mark_identity) continue;
        if (count == most || (count != 0 && dice_.chance(faults_.reordered))) {
            passed.push_back(id);
            continue;
        }
        if (o == nullptr) {
            ready[count++] = {};
            continue;
        }
        o->poked = false;
        const std::uint32_t events = readiness(*o);
        if (events == 0) continue;
        ready[count].events = events;
        ready[count++].data.ptr = o->watched_by;
        end(system_call::watch, o->watched_by->fd, events);
    }
    poked_ = std::move(passed);
    return count;
}

void simulation::world::happen(event& e) noexcept {
    object* const to = find_id(e.to);
    if (e.what == event::kind::file) return run_file_operation(*e.op, e.begun);
    if (e.what == event::kind::connection) return arrive_connection(e);
    if (e.what == event::kind::signal) return arrive_signal(e.signal);
    if (to == nullptr) return;
    switch (e.what) {
        case event::kind::connected:
            if (to->is != state::connecting) return;
            to->is = state::connected;
            break;
        case event::kind::refused:
            to->error = ECONNREFUSED;
            to->is = state::reset;
            break;
        case event::kind::segment:
            if (to->is != state::connected) return;
            to->in_flight -= e.content.size();
            to->inbox.insert(to->inbox.end(), e.content.begin(), e.content.end());
            break;
        case event::kind::end:
            to->ended = true;
            break;
        case event::kind::reset:
            if (to->is == state::connected) reset_both(*to);
            break;
        case event::kind::datagram:
            to->datagrams.push_back({e.sender, std::move(e.content)});
            break;
        default:
            break;
    }
    poke(*to);
}

}  // namespace coppice::io
