// wait_request: one wait of a timer.
#pragma once

#include <coppice/base/clock.hpp>
#include <coppice/io/internal/request.hpp>

namespace coppice::io::internal {

// Completes when its time has come, or as stopped if its deadline comes first. Cost: O(1), no
// allocation, no system call of its own.
class wait_request : public basic_request<operation>, timer_entry {
    using base = basic_request<operation>;

public:
    using value_type = void;
    static constexpr const char* name = "wait";
    struct arguments {
        arguments(event_loop& l, duration span) noexcept : owner(&l), time(span) {}
        arguments(event_loop& l, time_point at) noexcept : owner(&l), when(at) {}
        event_loop* owner;
        duration time{};
        time_point when = time_point::min();  // min: wait for `time`, counted from the start
    };
    explicit wait_request(const arguments& a) noexcept
        : base(*a.owner), timer_entry(&fire), time_(a.time), when_(a.when) {}

protected:
    ~wait_request() = default;

private:
    bool submit() noexcept final;
    void interrupt() noexcept final;
    static void interrupted(operation* op) noexcept;
    static void fire(timer_entry* entry) noexcept;

    duration time_;
    time_point when_;
};

}  // namespace coppice::io::internal
