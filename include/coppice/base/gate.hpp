// gate: what has been told to end takes no more calls, and knows when the last one has left.
#pragma once
// Pools and groups of contracts let in who submits work, until they are told to end. From then on
// a caller is turned away, and does itself what it wanted done. Who ends the object waits until
// nobody is inside: what was submitted is queued by then, and nobody can submit more.
//
//   word_    calls under way; the highest bit is set once the gate is closed
//   closed_  the same bit, on a line that is seldom written: callers who come late read that alone,
//            so that they do not keep the word from being quiet
//
// Either-or. Entering is one addition to the word, and closing sets a bit of it. Either the
// addition comes first: then the caller is let in, and who ends the object sees the call until it
// has left, with all it did. Or it comes after: then the caller sees the bit and is turned away.
// Model: tests/model/gate_model.cpp. Source: ours.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::internal {

// Threads: all functions by any. Lifetime: until a call has left, or was turned away; wait() is for
// who ends the object, when nobody can begin a call that the object's own work did not cause.
class gate : immovable {
public:
    // True: the caller is inside until it calls leave(). False: the gate is closed.
    // Cost: an addition, and a load of a line that is seldom written.
    [[nodiscard]] bool enter() noexcept {
        if (is_closed()) return false;
        // Relaxed: who sees the call's work, which is published later with release, sees this too;
        // and what the call did is released when it leaves.
        if ((word_.fetch_add(1, relaxed) & closed) == 0 || planted("gate.let_in")) return true;
        leave();
        return false;
    }
    void leave() noexcept {
        // edge gate.left (release): what the call did; it touches nothing any more
        word_.fetch_sub(1, release);
    }

    // From now on nobody enters. Blocks: never.
    void close() noexcept {
        word_.fetch_or(closed, relaxed);  // relaxed: the word's order decides, see above
        closed_.store(true, relaxed);     // relaxed: a hint for callers; see is_closed()
    }
    // May say no for a moment after close(). Who must not miss it fences first, as for work.
    bool is_closed() const noexcept { return closed_.load(relaxed); }
    // Whether the gate is closed and nobody is inside. It stays so; and what the calls did is seen.
    bool is_quiet() const noexcept {
        // edge gate.left (acquire): what the calls did
        return word_.load(acquire) == closed;
    }
    // Blocks: until nobody is inside, which takes as long as the rest of a call.
    void wait() const noexcept {
        // edge gate.left (acquire): what the calls did
        while ((word_.load(acquire) & ~closed) != 0) thread_yield();
    }

private:
    static constexpr std::uint32_t closed = std::uint32_t{1} << 31;

    alignas(64) atomic<std::uint32_t> word_{0};  // changed by callers, and by who closes
    alignas(64) atomic<bool> closed_{false};     // set once
};

}  // namespace coppice::internal
