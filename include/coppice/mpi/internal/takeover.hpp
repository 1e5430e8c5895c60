// takeover: how the watch becomes the owner of MPI, if the owner does not come back from a call.
#pragma once
// A call of MPI that waits for a process that has failed may never return. The owner marks such
// calls. Once a process has failed, the watch looks again and again, until it finds one of these:
//
//   outside, and known   the owner has heard of the failure, and ends everything itself
//   inside               the owner is in a call: the watch is the owner from now on
//
// The thread that was the owner finds that it is not when its call returns, and touches nothing
// else. The thread that destroys the environment sleeps until an owner has ended. If it was the
// watch, the environment may be gone before the call returns, but this object must stay.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/futex.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/mpi/internal/namespaces.hpp>

#include <cstdint>

namespace coppice::mpi::internal {

class takeover : immovable {
public:
    // These two are called by the owner.
    // Says that a call begins that may wait for another process.
    void enter() noexcept {
        // edge takeover.place (release): what the owner has done
        place_.store(inside, release);
    }
    // Says that it has returned. Returns false if the caller is not the owner any longer.
    [[nodiscard]] bool leave() noexcept {
        std::uint32_t expected = inside;
        // relaxed: success takes back what this thread has written
        const bool is_owner = place_.compare_exchange_strong(expected, outside, relaxed, relaxed);
        return is_owner || planted("takeover.leave_taken");
    }
    // Says that the owner, outside, has heard of the failure.
    void set_known() noexcept {
        known_.store(1, relaxed);  // publishes nothing
        futex_wake_one(known_);
    }

    enum class [[nodiscard]] look { again, known, taken };
    // Looks once, for the watch, which is the owner if this returns `taken`.
    look watch_looks() noexcept {
        if (known_.load(relaxed) != 0) return look::known;  // sees nothing else
        std::uint32_t expected = inside;
        // edge takeover.place (acquire): sees what the owner has done
        const bool is_taken = place_.compare_exchange_strong(expected, taken, acquire, relaxed);
        return is_taken ? look::taken : look::again;
    }
    // Waits until the owner has heard of the failure, or until the monotonic time `nanoseconds`.
    void wait_for_known(std::int64_t nanoseconds) noexcept {
        futex_wait_until(known_, 0U, nanoseconds);
    }

    // How the owner has ended. It says `finalizes` before the last call, which may not return.
    enum class ending : std::uint32_t { works, finalizes, done, done_by_watch, timed_out };
    // Threads: the owner.
    void set_ending(ending e) noexcept {
        // edge takeover.ending (release): what the owner has done
        ending_.store(static_cast<std::uint32_t>(e), release);
        if (!planted("takeover.end_quietly")) futex_wake_all(ending_);
    }
    // The rest is called by the thread that destroys the environment.
    ending how_ended() const noexcept {
        // edge takeover.ending (acquire): sees what the owner has done
        return static_cast<ending>(ending_.load(acquire));
    }
    // Sleep while the owner has ended like this, at most until the monotonic time `nanoseconds`.
    void sleep_while(ending e) const noexcept {
        futex_wait(ending_, static_cast<std::uint32_t>(e));
    }
    void sleep_while(ending e, std::int64_t nanoseconds) const noexcept {
        futex_wait_until(ending_, static_cast<std::uint32_t>(e), nanoseconds);
    }

private:
    static constexpr std::uint32_t outside = 0, inside = 1, taken = 2;

    atomic<std::uint32_t> place_{outside};  // one of these; written by the owner and the watch
    atomic<std::uint32_t> known_{0};        // 1: known; written by the owner, read by the watch
    atomic<std::uint32_t> ending_{0};       // an `ending`; written by the owner
};

}  // namespace coppice::mpi::internal
