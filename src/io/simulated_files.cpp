// The simulation's files, signals, and hosts.
#include "simulated_world.hpp"

#include <coppice/base/saturating.hpp>

#include <fcntl.h>
#include <netdb.h>
#include <algorithm>
#include <bit>
#include <cerrno>
#include <memory>
#include <new>
#include <span>
#include <utility>

namespace coppice::io {

using namespace internal;

// ---- Files ------------------------------------------------------------------------------------

result<int> simulation::world::open(const char* path, int flags, unsigned) noexcept {
    if (const int failure = begin(system_call::open)) return system_error(failure);
    if ((flags & O_DIRECTORY) != 0) {
        object& folder = make(AF_UNSPEC, 0);
        folder.is = state::file;
        folder.content = &folder_;
        return static_cast<int>(end(system_call::open, 0, give_descriptor(folder)));
    }
    auto found = files_.find(path);
    if (found == files_.end()) {
        if ((flags & O_CREAT) == 0) return system_error(ENOENT);
        found = files_.emplace(path, bytes()).first;
    } else if ((flags & O_EXCL) != 0) {
        return system_error(EEXIST);
    }
    if ((flags & O_TRUNC) != 0) found->second.clear();
    object& o = make(AF_UNSPEC, 0);
    o.is = state::file;
    o.content = &found->second;
    return static_cast<int>(end(system_call::open, 0, give_descriptor(o)));
}
result<std::uint64_t> simulation::world::file_size(int fd) noexcept {
    const object* const o = find(fd);
    if (o == nullptr || o->content == nullptr) return system_error(EBADF);
    return std::uint64_t{o->content->size()};
}
std::error_code simulation::world::resize(int fd, std::uint64_t size) noexcept {
    object* const o = find(fd);
    if (o == nullptr || o->content == nullptr) return system_error(EBADF);
    if (const int failure = resize_content(*o->content, size)) return system_error(failure);
    return {};
}
std::error_code simulation::world::replace(const char* from, const char* to) noexcept {
    if (const int failure = begin(system_call::file)) return system_error(failure);
    auto moved = files_.extract(from);
    if (moved.empty()) return system_error(ENOENT);
    remove(to);
    moved.key() = to;
    files_.insert(std::move(moved));
    return {};
}
void simulation::world::remove(const char* path) noexcept {
    if (auto gone = files_.extract(path)) removed_.push_back(std::move(gone));
}
// Returns 0, or an errno; the file is then as it was.
int simulation::world::resize_content(bytes& content, std::uint64_t size) noexcept {
    if (size > file_size_max) return EFBIG;
    try {
        content.resize(static_cast<std::size_t>(size));
    } catch (const std::bad_alloc&) {
        return ENOMEM;
    }
    return 0;
}

int simulation::world::start_file_operation(ring_operation& op) noexcept {
    later(event{event::kind::file, 0, 0, {}, {}, &op}, delayed());
    return 0;
}
void simulation::world::cancel_file_operation(ring_operation& op) noexcept {
    for (auto at = events_.begin(); at != events_.end(); ++at) {
        if (at->second.op != &op) continue;
        at->second.begun = dice_.chance(faults_.late_cancels);
        if (at->second.begun) return;  // the operation is waited for
        event e = std::move(at->second);
        events_.erase(at);
        later(std::move(e), now_);  // not begun: it ends now, without having done anything
        return;
    }
}
void simulation::world::run_file_operation(ring_operation& op, bool begun) noexcept {
    const int failure = begin(system_call::file);
    const int fd = op.on->fd;
    bytes& content = *find(fd)->content;
    if (op.cancelled && !begun) {
        op.result = -ECANCELED;
    } else if (failure != 0) {
        op.result = -failure;
    } else if (op.code == opcode::sync) {
        op.result = 0;
    } else if (op.code == opcode::read_at) {
        const std::size_t from = std::min<std::size_t>(op.offset, content.size());
        const std::size_t size = shortened(std::min(op.size, content.size() - from));
        std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(from), size, op.data);
        op.result = static_cast<int>(size);
    } else {
        op.result = write_file(content, op.offset, {op.data, shortened(op.size)});
    }
    end(system_call::file, fd, op.result);
    op.on->owner->finish(op);
}

// Returns the number of bytes written, or a negative errno. As with write(2), writing nothing does
// not extend the file.
int simulation::world::write_file(bytes& content, std::uint64_t offset,
                                  std::span<const std::byte> from) noexcept {
    if (from.empty()) return 0;
    const std::uint64_t end = saturating_add(offset, std::uint64_t{from.size()});
    if (end > content.size()) {
        if (const int failure = resize_content(content, end)) return -failure;
    }
    std::copy_n(from.data(), from.size(), content.begin() + static_cast<std::ptrdiff_t>(offset));
    return static_cast<int>(from.size());
}

// ---- Signals and names ------------------------------------------------------------------------

class simulation::world::signal_source final : public received_signals {
public:
    signal_source(world& w, identity of, int fd) noexcept : world_(w), of_(of), fd_(fd) {}
    result<int> descriptor() noexcept override { return fd_; }
    // Receives the lowest number first, as the kernel does.
    int take() noexcept override {
        object* const o = world_.find_id(of_);
        if (o == nullptr || o->come == 0) return 0;
        const int signal = std::countr_zero(o->come) + 1;
        o->come &= ~bit_of(signal);
        if (o->come != 0) world_.poke(*o);
        return signal;
    }
    void keep() noexcept override {
        object* const o = world_.find_id(of_);
        if (o != nullptr && o->come != 0) world_.poke(*o);
    }
    void end() noexcept override {}

private:
    world& world_;
    const identity of_;
    const int fd_;
};

simulation::world::world(std::uint64_t seed, const simulated_faults& faults)
    : dice_(seed), faults_(faults) {}
simulation::world::~world() = default;

result<received_signals*> simulation::world::receive_signals(
    std::span<const int> signals) noexcept {
    if (const int failure = begin(system_call::signals)) return system_error(failure);
    const auto is_one = [](int s) { return s >= 1 && s <= 64; };
    if (!std::all_of(signals.begin(), signals.end(), is_one)) return system_error(EINVAL);
    object& o = make(AF_UNSPEC, 0);
    o.is = state::signals;
    for (const int s : signals) o.signals |= bit_of(s);
    o.come = signals_ & o.signals;
    signals_ &= ~o.come;
    const int fd = give_descriptor(o);
    end(system_call::signals, 0, fd);
    signal_sources_.push_back(std::make_unique<signal_source>(*this, o.id, fd));
    return signal_sources_.back().get();
}

void simulation::world::arrive_signal(int signal) {
    end(system_call::signals, 0, signal);
    bool heard = false;
    for (const auto& [id, o] : objects_) {
        if ((o->signals & bit_of(signal)) == 0) continue;
        heard = true;
        o->come |= bit_of(signal);
        poke(*o);
    }
    if (!heard) signals_ |= bit_of(signal);
}

// Behaves as an eventfd(2): 8 bytes can be read while there is a signal to take.
long simulation::world::read_signal(int fd, std::span<std::byte> into) noexcept {
    if (const int failure = begin(system_call::read)) return -failure;
    const object& o = *find(fd);
    if (dice_.chance(faults_.interrupted)) return -EINTR;
    if (o.come == 0) return end(system_call::read, fd, -EAGAIN);
    if (dice_.chance(faults_.try_again)) {
        later(event{event::kind::poke, o.id, 0, {}, {}, nullptr}, delayed());
        return end(system_call::read, fd, -EAGAIN);
    }
    return end(system_call::read, fd, static_cast<long>(into.size()));
}

std::optional<duration> simulation::world::look_up_delay(const std::string& host) noexcept {
    const auto found = hosts_.find(host);
    const duration time = found == hosts_.end() ? duration::zero() : found->second.time;
    return saturating_add(saturating_sub(delayed(), now_), time);
}

int simulation::world::look_up(const std::string& host, std::uint16_t port,
                               std::vector<endpoint>& found) noexcept {
    int failure = begin(system_call::look_up);
    const auto known = hosts_.find(host);
    if (failure == 0 && known == hosts_.end()) failure = EAI_NONAME;
    if (failure == 0) failure = known->second.failure;
    if (failure == 0) {
        for (const endpoint& e : known->second.addresses) found.push_back(e.with_port(port));
    }
    end(system_call::look_up, 0, failure);
    return failure;
}

}  // namespace coppice::io
