// permit_wait: the permits of an async_semaphore that a node holds while it runs.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/start_race.hpp>
#include <coppice/graph/internal/graph_run.hpp>
#include <coppice/sync/semaphore.hpp>

#include <cstddef>
#include <system_error>

namespace coppice::internal {

// Lifetime: from node::acquire() until the node is destroyed; the semaphore outlives it.
class permit_wait : immovable {
    class receiver {
    public:
        using receiver_concept = execution::receiver_tag;
        explicit receiver(permit_wait& wait) noexcept : wait_(&wait) {}
        void set_value(async_semaphore::permit permit) && noexcept {
            wait_->held_ = static_cast<async_semaphore::permit&&>(permit);
            wait_->completed();
        }
        void set_error(std::error_code error) && noexcept;
        // The deadline of the run's waiter may end this wait before it stops the run.
        void set_stopped() && noexcept {
            wait_->run_->stop();
            wait_->completed();
        }
        node_env get_env() const noexcept { return node_env(*wait_->run_); }

    private:
        permit_wait* wait_;
    };
    using operation_type = execution::connect_result_t<
        decltype(std::declval<async_semaphore&>().acquire(std::size_t())), receiver>;

public:
    enum class step : unsigned char { held, refused, waits };

    permit_wait(graph_node& node, async_semaphore& semaphore, std::size_t permits) noexcept
        : node_(node), semaphore_(semaphore), permits_(permits) {}

    // Called by the worker that begins the node, and again by a worker after the wait.
    step acquire(graph_run& run) noexcept;
    void release() noexcept { held_.release(); }

    permit_wait* next = nullptr;  // acquired after this

private:
    void completed() noexcept;

    graph_node& node_;
    async_semaphore& semaphore_;
    const std::size_t permits_;
    graph_run* run_ = nullptr;
    async_semaphore::permit held_;
    bool has_waited_ = false;
    execution::internal::start_race race_;
    manual_lifetime<operation_type> operation_;
};

}  // namespace coppice::internal
