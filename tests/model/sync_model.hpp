// Shared by the models of room sync: a wait that a simulated thread makes and waits for.
#pragma once
// The wait is the library's own, without a token around it. It is destroyed in place as soon as it
// has ended, as a task's frame would be, so that the checker sees an access that comes later.

#include "exec_model.hpp"

#include <coppice/sync/internal/wait.hpp>

// No model waits for a time.
bool coppice::internal::process_timer_node::arm(std::int64_t) { return true; }
void coppice::internal::process_timer_node::disarm() noexcept {}
void coppice::internal::process_timer_node::retire() noexcept {}

namespace coppice::protocol_model {

template <class Request>
class blocked_wait {
    struct kept_wait : wait<Request> {
        kept_wait(Request&& wanted, blocked_wait& waits) noexcept
            : wait<Request>(static_cast<Request&&>(wanted), &kept_wait::ended), owner(waits) {}
        static void ended(wait<Request>& w) noexcept {
            static_cast<kept_wait&>(w).owner.ended_.store(1, release);
        }
        blocked_wait& owner;
    };

public:
    // Waits as an operation does. Returns true if it was granted.
    bool run(Request wanted, inplace_stop_token stop = {}) {
        if (!stop.stop_requested() && try_before_wait(wanted)) {
            take(wanted);
            return true;
        }
        ended_.store(0, relaxed);
        kept_wait& w = wait_.construct(static_cast<Request&&>(wanted), *this);
        if (!w.begin(completion_env(stop, execution::instant::never()))) {
            while (ended_.load(acquire) == 0) spin_hint();
        }
        const bool granted = w.end() == wait_end::granted;
        if (granted) take(w.request);
        wait_.destroy();
        return granted;
    }

    // What the last granted wait has got.
    struct none {};
    std::optional<std::conditional_t<std::is_void_v<typename Request::result>, none,
                                     typename Request::result>>
        result;

private:
    void take(Request& granted) {
        if constexpr (!std::is_void_v<typename Request::result>) result.emplace(granted.take());
    }

    atomic<int> ended_{0};
    manual_lifetime<kept_wait> wait_;
};

}  // namespace coppice::protocol_model
