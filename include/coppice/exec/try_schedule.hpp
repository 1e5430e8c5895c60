// try_schedule: schedules without blocking, or sends would_block_t.
#pragma once
// For a thread that must not wait: one that holds a lock, or that has a deadline in microseconds.
// Source: P3669R3. Beyond it, inline_scheduler has try_schedule too: it waits for nothing, but runs
// what follows inside start, which may block.

#include <coppice/exec/scheduler.hpp>

namespace coppice::execution {

// The error of an operation that would have had to block or allocate. It has then done nothing.
struct would_block_t {
    friend constexpr bool operator==(would_block_t, would_block_t) noexcept = default;
};

// Returns a sender like that of schedule, whose start never blocks and never allocates. If queueing
// would need either, or if the resource was told to end, it completes with
// set_error(would_block_t()) inside start, on the thread that starts it. The schedulers of
// run_loop, io::context, and inline_scheduler never send the error. Threads: as schedule; not from
// a signal handler. Source: P3669R3.
struct try_schedule_t {
    template <class Sch>
        requires requires(Sch&& sch) { static_cast<Sch&&>(sch).try_schedule(); }
    constexpr auto operator()(Sch&& sch) const
        noexcept(noexcept(static_cast<Sch&&>(sch).try_schedule()))
            -> decltype(static_cast<Sch&&>(sch).try_schedule()) {
        static_assert(sender<decltype(static_cast<Sch&&>(sch).try_schedule())>,
                      "a scheduler's try_schedule must return a sender");
        return static_cast<Sch&&>(sch).try_schedule();
    }
};
inline constexpr try_schedule_t try_schedule{};

// A scheduler that can schedule without blocking.
template <class Sch>
concept try_scheduler = scheduler<Sch> && requires(Sch&& sch) {
    { try_schedule(static_cast<Sch&&>(sch)) } -> sender;
};

}  // namespace coppice::execution
