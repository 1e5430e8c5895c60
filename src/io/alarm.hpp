// The alarm of a ring: a kernel timer for far deadlines; included by epoll.cpp and uring.cpp.
#pragma once
// Most waits of a loop end long before their limit, and many waits have the same limit, such as the
// idle limit of a connection. A far limit is therefore left to a kernel timer that stays set, so
// that the wait neither reads the clock nor passes a time to the kernel. An alarm that comes too
// early costs one turn of the loop that finds nothing to do. A near limit is passed with the wait.

#include <coppice/io/internal/ring.hpp>

#include <chrono>

namespace coppice::io {

using namespace internal;

class alarm {
public:
    // Returns true if the wait needs no limit because the alarm comes by `until`. Calls set(until)
    // if the alarm has to be set; set() may report that it cannot be set.
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
    // Called when the alarm has come.
    void rang() noexcept {
        if (is_set()) see(set_for_);
        reset();
    }
    // Forgets the alarm, because the timer that it was set in is gone.
    void reset() noexcept { set_for_ = ring::forever; }
    // Notes that `now` has been reached.
    void see(time_point now) noexcept { seen_ = now; }

private:
    static constexpr duration near_time = std::chrono::milliseconds(50);

    time_point set_for_ = ring::forever;  // forever: the alarm is not set
    time_point seen_{};
};

}  // namespace coppice::io
