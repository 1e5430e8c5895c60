// gate: rejects calls on an object that was told to end, and knows when the last call has left.
#pragma once
// Pools and contract groups admit submitters until they are told to end. From then on the gate
// rejects a caller, which then does its work itself. The thread that ends the object waits until no
// call is inside. By then everything that was submitted is queued, and nothing more can be
// submitted.
//
//   word_    the number of calls inside; the highest bit is set once the gate is closed
//   closed_  the same bit, on a line that is rarely written. Late callers read only that, so
//            that they do not keep the word from becoming quiet
//
// Either-or. Entering adds to the word, and closing sets a bit of it. Either the addition comes
// first; then the caller is admitted, and the ending thread sees the call, and all that it did,
// until it has left. Or the addition comes after; then the caller sees the bit and is rejected.
// Model: tests/model/gate_model.cpp. Source: ours.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::internal {

// Threads: all functions from any thread. Lifetime: the gate must outlive every call that is inside
// or being rejected. wait() is for the thread that ends the object, when only the object's own work
// can still begin calls.
class gate : immovable {
public:
    // Admits a call. Returns true if the caller is inside until it calls leave(), false if the gate
    // is closed. Cost: an addition, and a load of a line that is rarely written.
    [[nodiscard]] bool enter() noexcept {
        if (is_closed()) return false;
        // Relaxed: the call's work is published later with release, so a thread that sees the work
        // sees this too. What the call did is released when it leaves.
        if ((word_.fetch_add(1, relaxed) & closed) == 0 || planted("gate.let_in")) return true;
        leave();
        return false;
    }
    void leave() noexcept {
        // edge gate.left (release): what the call did; it touches nothing afterwards
        word_.fetch_sub(1, release);
    }

    // Rejects every call from now on. Blocks: never.
    void close() noexcept {
        word_.fetch_or(closed, relaxed);  // relaxed: the word's order decides, see above
        closed_.store(true, relaxed);     // relaxed: a hint for callers, see is_closed()
    }
    // Returns true if the gate is closed. May lag behind close(). A caller that must not miss it
    // fences first, as for work.
    bool is_closed() const noexcept { return closed_.load(relaxed); }
    // Returns true if the gate is closed and no call is inside. That is final, and the calls'
    // effects are visible.
    bool is_quiet() const noexcept {
        // edge gate.left (acquire): what the calls did
        return word_.load(acquire) == closed;
    }
    // Blocks: until no call is inside, which takes as long as the rest of a call.
    void wait() const noexcept {
        // edge gate.left (acquire): what the calls did
        while ((word_.load(acquire) & ~closed) != 0) thread_yield();
    }

private:
    static constexpr std::uint32_t closed = std::uint32_t{1} << 31;

    alignas(64) atomic<std::uint32_t> word_{0};  // changed by callers and by the closing thread
    alignas(64) atomic<bool> closed_{false};     // set once
};

}  // namespace coppice::internal
