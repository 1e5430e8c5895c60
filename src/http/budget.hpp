// The budget of bytes that a server keeps for its clients, over all connections.
#pragma once
// Four things count: requests that have not arrived completely, with what it takes to serve them;
// what is read ahead; answers that clients have not read; and what compresses streamed bodies. What
// fits into a buffer lent by the loop does not count, so most requests never come here. An exchange
// notes what it has reserved, and gives it back when its batch is over.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>

namespace coppice::http {

using namespace internal;

// Threads: any.
class byte_budget : immovable {
public:
    explicit byte_budget(std::size_t most) noexcept : most_(most) {}

    // Returns true if `bytes` could be reserved at this moment.
    bool fits(std::size_t bytes) const noexcept {
        const std::size_t used = used_.load(relaxed);  // a count: nothing depends on its order
        return used <= most_ && bytes <= most_ - used;
    }
    // Returns false, and reserves nothing, if the bytes do not fit.
    [[nodiscard]] bool reserve(std::size_t bytes) noexcept {
        // Relaxed: a count. The excess that is added for a moment may make another reservation fail
        // early.
        const std::size_t before = used_.fetch_add(bytes, relaxed);
        if (before <= most_ && bytes <= most_ - before) {
            note(before + bytes);
            return true;
        }
        used_.fetch_sub(bytes, relaxed);
        return false;
    }
    // Reserves bytes that are in memory already. It succeeds unless the budget was exceeded before,
    // so the last reservation may exceed it. Returns false, and reserves nothing, otherwise.
    [[nodiscard]] bool reserve_last(std::size_t bytes) noexcept {
        const std::size_t before = used_.fetch_add(bytes, relaxed);  // relaxed: a count
        if (before <= most_) {
            note(before + bytes);
            return true;
        }
        used_.fetch_sub(bytes, relaxed);
        return false;
    }
    void add(std::size_t bytes) noexcept { used_.fetch_add(bytes, relaxed); }  // relaxed: a count
    // Gives bytes back; called after their memory is freed. If much was in use and little is left,
    // the allocator returns free pages to the system.
    void give(std::size_t bytes) noexcept {
        const std::size_t left = used_.fetch_sub(bytes, relaxed) - bytes;  // relaxed: a count
        const std::size_t most = highest_.load(relaxed);                   // relaxed: a count
        if (most >= trimmed_from && left <= most / 8) [[unlikely]]
            trim(left);
    }
    std::size_t used() const noexcept { return used_.load(relaxed); }  // relaxed: a count

private:
    static constexpr std::size_t trimmed_from = 16 * 1024 * 1024;
    // Relaxed: a count. A maximum that is lost between two threads makes a trim late.
    void note(std::size_t used) noexcept {
        if (used > highest_.load(relaxed)) highest_.store(used, relaxed);
    }
    [[gnu::cold, gnu::noinline]] void trim(std::size_t left) noexcept;

    const std::size_t most_;
    atomic<std::size_t> used_{0};     // what all exchanges have reserved
    atomic<std::size_t> highest_{0};  // the maximum of used_ since the last trim
};

// Returns a quarter of the memory that this process may use, and at least 4 MiB.
std::size_t default_buffered_bytes() noexcept;

}  // namespace coppice::http
