// graph_run: one run of a task_graph: its turn, its pool, its stop, its outcome.
#pragma once
//   enter     takes the graph's turn, perhaps after waiting for other runs
//   begin     prepares the graph and submits the first item
//   workers   run nodes, and the nodes that these make ready (src/graph/run.cpp)
//   end       The worker that ended the last node starts the next round. After the last round it
//             gives the turn back and completes. It must not touch the graph afterwards
//
// After the first error, nodes that have not begun do not begin, and the run requests a stop of the
// operations that wait. A stop or the deadline of the run's waiter has the same effect, and so has
// an operation in a node that completes as stopped.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/any_scheduler.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/graph/internal/graph_body.hpp>
#include <coppice/pool/basic_pool.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/sync/internal/wait_limits.hpp>
#include <coppice/sync/mutex.hpp>
#include <coppice/token/internal/completion_env.hpp>

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace coppice::internal {

class graph_profile;

// A graph: its nodes, its turn, and its profile.
class [[gnu::visibility("default")]] graph_root : public graph_body {
public:
    graph_root() noexcept;
    ~graph_root();
    void keep_profile(std::size_t events);
    void write_profile(const std::string& path) const;

    async_mutex turn;
    std::unique_ptr<graph_profile> profile;  // null if none is kept
};

// A pool whose type is erased.
class graph_pool {
public:
    template <class Queues>
    explicit graph_pool(basic_pool<Queues>& pool)
        : pool_(&pool),
          submit_([](void* to, work_item& item) noexcept {
              static_cast<basic_pool<Queues>*>(to)->submit(item);
          }),
          scheduler_(pool.get_scheduler()) {}
    void submit(work_item& item) const noexcept { submit_(pool_, item); }
    const execution::any_scheduler& scheduler() const noexcept { return scheduler_; }

private:
    void* pool_;
    void (*submit_)(void*, work_item&) noexcept;
    execution::any_scheduler scheduler_;
};

// The environment of the operations in nodes.
class node_env {
public:
    explicit node_env(const graph_run& run) noexcept : run_(&run) {}
    inplace_stop_token query(get_stop_token_t) const noexcept;
    const execution::any_scheduler& query(execution::get_scheduler_t) const noexcept;
    execution::instant query(execution::get_deadline_t) const noexcept;
    const fork_team* query(execution::internal::get_fork_team_t) const noexcept;

private:
    const graph_run* run_;
};

class [[gnu::visibility("default")]] graph_run : work_item {
public:
    enum class outcome : unsigned char { value, error, stopped };

    graph_run(graph_root& graph, const graph_pool& pool) noexcept;

    // Called by the workers.
    bool is_stopping() const noexcept { return source_.stop_requested(); }
    // Keeps the exception if it is the first one, and stops the rest of the run.
    void fail(std::exception_ptr error) noexcept;
    // Called when an operation in a node has completed as stopped. Stops the rest of the run.
    void stop() noexcept { source_.request_stop(); }
    void submit(work_item& item) noexcept { pool_.submit(item); }
    // Called by the worker that ended the last node. Returns the first node of the next round, or
    // nullptr after the last round. After nullptr, this object may be gone.
    graph_node* end_round() noexcept;
    const graph_pool& pool() const noexcept { return pool_; }
    graph_profile* profile() const noexcept { return profile_; }

protected:
    virtual ~graph_run();
    // Begins the run, or queues it for its turn. The run may have completed, and be gone, when this
    // returns.
    void enter(const completion_env& env) noexcept;
    std::exception_ptr take_error() noexcept { return static_cast<std::exception_ptr&&>(error_); }
    const std::exception_ptr& error() const noexcept { return error_; }

private:
    friend class node_env;
    friend class wait_limits<graph_run>;
    class turn_receiver {
    public:
        using receiver_concept = execution::receiver_tag;
        explicit turn_receiver(graph_run& run) noexcept : run_(&run) {}
        void set_value(async_mutex::guard turn) && noexcept;
        void set_error(std::error_code error) && noexcept;
        void set_stopped() && noexcept;
        completion_env get_env() const noexcept { return run_->env_; }

    private:
        graph_run* run_;
    };
    using turn_operation =
        execution::connect_result_t<decltype(std::declval<async_mutex&>().lock()), turn_receiver>;

    // Returns true if a round must run: called before the first, and after each. May throw.
    virtual bool wants_round(bool first) = 0;
    // Completes the receiver, as the last access to this object.
    virtual void complete(outcome what) noexcept = 0;

    void withdraw() noexcept { source_.request_stop(); }  // for wait_limits
    void begin() noexcept;
    bool next_round(bool first) noexcept;
    void finish() noexcept;
    static void run_first(work_item* item) noexcept;

    graph_root* const graph_;
    graph_pool pool_;
    inplace_stop_source source_;
    graph_profile* profile_ = nullptr;
    completion_env env_;
    wait_limits<graph_run> limits_;
    atomic<bool> has_failed_{false};  // set by the first worker that fails
    std::exception_ptr error_;        // written by that worker
    async_mutex::guard turn_;
    std::optional<manual_lifetime<turn_operation>> waits_;
};

// Runs a node, and then the nodes that it makes ready, until this worker has no ready node left.
void run_graph_node(work_item* item) noexcept;

inline graph_node::graph_node(function* f) noexcept : work_item(&run_graph_node), call(f) {}

inline inplace_stop_token node_env::query(get_stop_token_t) const noexcept {
    return run_->source_.get_token();
}
inline const execution::any_scheduler& node_env::query(execution::get_scheduler_t) const noexcept {
    return run_->pool_.scheduler();
}
inline execution::instant node_env::query(execution::get_deadline_t) const noexcept {
    return run_->env_.query(execution::get_deadline);
}
inline const fork_team* node_env::query(execution::internal::get_fork_team_t) const noexcept {
    return run_->pool_.scheduler().query(execution::internal::get_fork_team_t());
}

}  // namespace coppice::internal
