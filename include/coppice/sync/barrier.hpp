// async_barrier: a fixed number of tasks that wait for each other, phase by phase.
#pragma once

#include <coppice/sync/internal/barrier_core.hpp>
#include <coppice/sync/internal/wait_initiation.hpp>

#include <cstddef>

namespace coppice {

// A phase ends when all participants have arrived; then all of them go on, and the next phase
// begins. What a participant did before it arrived is visible to all others after the phase.
//
// A stop or a deadline ends the wait of a participant, but it has arrived: the phase ends without
// it, also if the stop was requested before arrive_and_wait() began. Such a participant must not
// arrive at the same phase again. A waiter continues on its own scheduler: in place, if the thread
// that arrived last belongs to it, else through its queue.
//
// Threads: any. Blocks: never, except for the few instructions that another thread needs to change
// the queue. Cost: an arrival is a compare-and-swap and an exchange; the last one of a phase is
// O(participants); no allocation. Lifetime: outlives its operations. Misuse: destroying it while an
// operation waits, or more arrivals in a phase than participants, stops the process.
// Source: std::barrier, without a completion function.
class async_barrier : immovable {
public:
    // Makes a barrier for that many participants. Range: at least 1, since an arrival at a barrier
    // without participants is misuse.
    explicit async_barrier(std::size_t participants) noexcept : core_(participants) {}

    // Arrives, and waits until all have. Result: the number of the phase that has ended, as
    // std::uint64_t; the first is 0. Errors: only a stop.
    template <class Token = use_await_t>
    [[nodiscard]] auto arrive_and_wait(Token&& token = Token()) {
        return internal::initiate_wait(request{{&core_}}, static_cast<Token&&>(token));
    }
    // Arrives at this phase, and takes part in no later one: these need one arrival less. May
    // resume waiters in place.
    void arrive_and_drop() noexcept { core_.arrive_now(true); }

private:
    struct request : internal::barrier_request {
        static constexpr const char* name = "async_barrier::arrive_and_wait";
    };
    internal::barrier_core core_;
};

}  // namespace coppice
