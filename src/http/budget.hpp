// The bytes that a server keeps for its clients, over all its connections; for serving.hpp.
#pragma once
// What counts: requests that have not come whole, with what serving them takes, what is read ahead,
// and answers that wait for their client to read. What fits into a loop's lent buffer does not, so
// that most requests never come here. An exchange notes what it has reserved, and gives it back
// when its batch is over.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>

namespace coppice::http {

using namespace internal;

// Threads: any.
class byte_budget : immovable {
public:
    explicit byte_budget(std::size_t most) noexcept : most_(most) {}

    // Whether `bytes` could be reserved at this moment.
    bool fits(std::size_t bytes) const noexcept {
        const std::size_t used = used_.load(relaxed);  // a count: nothing rides on it
        return used <= most_ && bytes <= most_ - used;
    }
    // False: they do not fit, and nothing is reserved.
    [[nodiscard]] bool reserve(std::size_t bytes) noexcept {
        // Relaxed: a count. What is added for a moment too much may make another fail early.
        const std::size_t before = used_.fetch_add(bytes, relaxed);
        if (before <= most_ && bytes <= most_ - before) {
            note(before + bytes);
            return true;
        }
        used_.fetch_sub(bytes, relaxed);
        return false;
    }
    // For bytes that are there already: the last that exceeds the budget is let through.
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
    // Call it when the memory is free: if much was in use and little is left, the allocator gives
    // free pages back to the system.
    void give(std::size_t bytes) noexcept {
        const std::size_t left = used_.fetch_sub(bytes, relaxed) - bytes;  // relaxed: a count
        const std::size_t most = highest_.load(relaxed);                   // relaxed: a count
        if (most >= trimmed_from && left <= most / 8) [[unlikely]]
            trim(left);
    }
    std::size_t used() const noexcept { return used_.load(relaxed); }  // relaxed: a count

private:
    static constexpr std::size_t trimmed_from = 16 * 1024 * 1024;
    // Relaxed: a count. One that is lost between two threads makes a trim late.
    void note(std::size_t used) noexcept {
        if (used > highest_.load(relaxed)) highest_.store(used, relaxed);
    }
    [[gnu::cold, gnu::noinline]] void trim(std::size_t left) noexcept;

    const std::size_t most_;
    atomic<std::size_t> used_{0};     // what all exchanges have reserved
    atomic<std::size_t> highest_{0};  // of it, since the last trim
};

// A quarter of the memory that this process may use, and at least 4 MiB.
std::size_t default_buffered_bytes() noexcept;

}  // namespace coppice::http
