// Counters that one thread writes and any thread reads; used by pools, loops, and the server.
#pragma once

#include <coppice/base/internal/atomic.hpp>

#include <cstdint>

namespace coppice::trace {

// Counts events of a single writer. A reader sees a recent value, and the exact one once the writer
// has stopped.
// Threads: add() and subtract() by the owner only; read() by any.
// Cost: a plain load and store, no locked operation.
class counter {
public:
    // Adds `n`, modulo 2^64.
    void add(std::uint64_t n = 1) noexcept {
        // Relaxed: there is one writer, and no other data is read on the strength of the count.
        value_.store(value_.load(internal::relaxed) + n, internal::relaxed);
    }
    // Subtracts `n`, modulo 2^64; for counts of what exists now.
    void subtract(std::uint64_t n = 1) noexcept { add(std::uint64_t{0} - n); }
    // Returns the count.
    std::uint64_t read() const noexcept { return value_.load(internal::relaxed); }

private:
    internal::atomic<std::uint64_t> value_{0};  // written by the owner; read by any thread
};

}  // namespace coppice::trace
