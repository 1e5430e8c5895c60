// wait_limits: the stop and the deadline that end a wait; for wait and select.
#pragma once

#include <coppice/base/internal/process_timer.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/token/internal/completion_env.hpp>

#include <optional>
#include <system_error>

namespace coppice::internal {

// The stop and the deadline each call owner.withdraw(), on any thread. Both may call it, and even
// before engage() returns.
template <class Owner>
class wait_limits : immovable {
public:
    // Arms the deadline and registers for the stop. Returns false if the deadline could not be
    // armed; nothing is registered then.
    bool engage(Owner& owner, const completion_env& env) noexcept {
        if (!arm(owner, env.query(execution::get_deadline))) return false;
        const inplace_stop_token stop = env.query(get_stop_token);
        if (stop.stop_possible()) stop_.emplace(stop, on_stop{&owner});
        return true;
    }
    // Deregisters both. Waits for a call of withdraw() that is under way on another thread. Inside
    // such a call, does not wait for that call.
    void reset() noexcept {
        stop_.reset();
        if (deadline_) [[unlikely]] {
            deadline_->retire();
            deadline_.reset();
        }
    }

private:
    struct on_stop {
        Owner* owner;
        void operator()() const noexcept { owner->withdraw(); }
    };
    struct deadline_node : process_timer_node {
        explicit deadline_node(Owner& o) noexcept
            : process_timer_node(&deadline_node::due), owner(o) {}
        static void due(process_timer_node& node) noexcept {
            static_cast<deadline_node&>(node).owner.withdraw();
        }
        Owner& owner;
    };

    bool arm(Owner& owner, execution::instant deadline) noexcept {
        if (deadline == execution::instant::never()) [[likely]]
            return true;
        deadline_.emplace(owner);
        try {
            deadline_->arm(deadline.nanoseconds());
        } catch (const std::system_error&) {
            deadline_.reset();
            return false;
        }
        return true;
    }

    std::optional<inplace_stop_callback<on_stop>> stop_;
    std::optional<deadline_node> deadline_;
};

}  // namespace coppice::internal
