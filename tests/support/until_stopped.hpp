// The textbook sender that waits for its stop. Tests stop it from many threads.
#pragma once

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/timed_scheduler.hpp>
#include <coppice/stop/concepts.hpp>

#include <optional>
#include <utility>

namespace coppice::test {

using namespace coppice::internal;

// Registers a callback, which deregisters itself and completes. If the stop comes inside start(),
// start() completes.
class until_stopped {
public:
    using sender_concept = execution::sender_tag;
    until_stopped() noexcept = default;

    template <class Rcvr>
    class operation {
        struct complete {
            operation* op;
            void operator()() const noexcept { op->arrive(); }
        };

    public:
        using operation_state_concept = execution::operation_state_tag;
        explicit operation(Rcvr rcvr) noexcept : rcvr_(std::move(rcvr)) {}
        operation(operation&&) = delete;
        void start() & noexcept {
            on_stop_.emplace(get_stop_token(execution::get_env(rcvr_)), complete{this});
            arrive();
        }

    private:
        // The registration and its callback both arrive. The second to arrive completes.
        void arrive() noexcept {
            if (!arrived_.exchange(true, acq_rel)) return;
            on_stop_.reset();
            execution::set_stopped(std::move(rcvr_));
        }
        Rcvr rcvr_;
        atomic<bool> arrived_{false};
        std::optional<stop_callback_for_t<stop_token_of_t<execution::env_of_t<Rcvr>>, complete>>
            on_stop_;
    };
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return execution::completion_signatures<execution::set_value_t(),
                                                execution::set_stopped_t()>();
    }
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(std::move(rcvr));
    }
};

// A scheduler of timers that never come. A stop ends them as it ends until_stopped().
class endless_timers {
public:
    using scheduler_concept = execution::scheduler_tag;
    endless_timers() noexcept = default;
    until_stopped schedule() const noexcept { return {}; }
    until_stopped schedule_after(execution::time_span) const noexcept { return {}; }
    execution::instant now() const noexcept { return execution::instant(0); }
    bool operator==(const endless_timers&) const = default;
};

}  // namespace coppice::test
