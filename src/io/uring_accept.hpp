// Connections that a multishot accept brings before the program asks; for uring_ring.hpp.
#pragma once
// A listener's first accept arms one request that brings every connection without a further
// submission. A connection that comes while no accept is pending waits here, in order, for the next
// accept. If too many wait (waiting_max), or an accept is canceled, the request is canceled too.
// Further connections then wait in the kernel's backlog, where other listeners of the port find
// them.
//
//   idle         not armed: the kernel brings nothing
//   armed        the kernel has the request; an accept may wait for it
//   `cancelling` the kernel has the request, and it will end; if an accept waits, it is then armed
//                again
//
// When its loop moves to another thread, a listener is polled instead, once for each accept. A
// request of the earlier ring may still stand in the listener's wait queue. The kernel wakes only
// the first accept in that queue, but it wakes all polls.
//
// Closing the listener closes the connections that were not accepted. A request is known by its
// listener's number, which is not used again. What the request brings after the close is closed on
// arrival.

#include <coppice/io/internal/operation.hpp>

#include <unistd.h>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace coppice::io {

class accept_stream : immovable {
public:
    static constexpr std::size_t waiting_max = 64;

    // Errors: std::bad_alloc.
    accept_stream(int listener, std::uint64_t number) : id(number), fd(listener) {
        taken_.reserve(waiting_max);
    }
    ~accept_stream() {
        while (!empty()) ::close(pop());
    }

    bool empty() const noexcept { return next_ == taken_.size(); }
    bool full() const noexcept { return taken_.size() - next_ >= waiting_max; }
    void push(int connection) noexcept {
        try {
            taken_.push_back(connection);
        } catch (const std::bad_alloc&) {
            ::close(connection);
        }
    }
    int pop() noexcept {
        const int connection = taken_[next_++];
        if (empty()) {
            taken_.clear();
            next_ = 0;
        }
        return connection;
    }

    const std::uint64_t id;
    const int fd;
    bool armed = false;
    bool cancelling = false;
    bool moved = false;  // its loop moved to another thread's ring: it is polled
    ring_operation* waiting = nullptr;

private:
    std::vector<int> taken_;  // in order of arrival; those before next_ have been taken
    std::size_t next_ = 0;
};

// The listeners of a ring: a few. Threads: the loop's.
class accept_streams {
public:
    accept_stream* find(int fd) noexcept {
        return find_if([fd](const accept_stream& s) { return s.fd == fd; });
    }
    accept_stream* find_id(std::uint64_t id) noexcept {
        return find_if([id](const accept_stream& s) { return s.id == id; });
    }
    // Returns nullptr if there is no memory.
    accept_stream* find_or_make(int fd) noexcept {
        if (accept_stream* const found = find(fd)) return found;
        try {
            return all_.emplace_back(std::make_unique<accept_stream>(fd, ++last_id_)).get();
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }
    // Called when its listener is closed. Returns true if the kernel still has its request.
    bool end(accept_stream& s) noexcept {
        const bool armed = s.armed;
        for (std::unique_ptr<accept_stream>& each : all_) {
            if (each.get() != &s) continue;
            std::swap(each, all_.back());
            all_.pop_back();
            break;
        }
        return armed;
    }
    // Called when the kernel's ring is gone: nothing is armed any longer.
    void disarm_all() noexcept {
        for (const auto& s : all_) {
            s->armed = s->cancelling = false;
            s->moved = true;
        }
    }

private:
    template <class Predicate>
    accept_stream* find_if(Predicate is_it) noexcept {
        for (const auto& s : all_) {
            if (is_it(*s)) return s.get();
        }
        return nullptr;
    }
    std::vector<std::unique_ptr<accept_stream>> all_;
    std::uint64_t last_id_ = 0;
};

}  // namespace coppice::io
