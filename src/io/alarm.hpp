// When a ring's alarm is set for; included by epoll.cpp and uring.cpp.
#pragma once
// Most waits of a loop end long before the time they are limited by, which is the same for many of
// them: an idle connection's. So a far time is left to an alarm of the kernel's that stays set, and
// the wait neither reads the clock nor tells the kernel a time. An alarm that comes too early is a
// turn of the loop for nothing; near times are told with the wait.

#include <coppice/io/ring.hpp>

#include <chrono>

namespace coppice::io {

using namespace internal;

class alarm {
public:
    // True: the wait needs no limit, since the alarm comes by `until`. Calls set(until) if it has
    // to be set, which may say that it cannot be.
    template <class Set>
    bool covers(time_point until, Set set) noexcept {
        if (until - seen_ <= near_time) return false;
        if (set_for_ <= until) [[likely]]
            return true;
        if (!set(until)) return false;
        set_for_ = until;
        return true;
    }
    bool is_set() const noexcept { return set_for_ != ring::forever; }
    // It has come.
    void rang() noexcept {
        if (is_set()) see(set_for_);
        reset();
    }
    // It has gone, with what it was set in.
    void reset() noexcept { set_for_ = ring::forever; }
    // That time has passed.
    void see(time_point now) noexcept { seen_ = now; }

private:
    static constexpr duration near_time = std::chrono::milliseconds(50);

    time_point set_for_ = ring::forever;  // forever: it is not set
    time_point seen_{};
};

}  // namespace coppice::io
