// node_kinds: a graph_node with its callable: a function, a condition, an operation, a subgraph.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/exec/internal/start_race.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/graph/internal/graph_body.hpp>
#include <coppice/graph/internal/graph_run.hpp>

#include <exception>
#include <type_traits>
#include <utility>

namespace coppice::internal {

// void(), int(), or void(inplace_stop_token).
template <class F>
struct function_node final : graph_node {
    explicit function_node(F f) : graph_node(&function_node::step), function(std::move(f)) {
        if constexpr (is_condition) this->kind = node_kind::condition;
    }
    static constexpr bool takes_token = std::is_invocable_v<F&, inplace_stop_token>;
    static constexpr bool is_condition = !takes_token && std::is_invocable_r_v<int, F&>;

    void run(graph_run& run) {
        if constexpr (takes_token) {
            function(node_env(run).query(get_stop_token));
        } else if constexpr (is_condition) {
            this->body->details(*this).chosen = function();
        } else {
            function();
        }
    }
    static node_step step(graph_node& node, graph_run& run) noexcept {
        try {
            static_cast<function_node&>(node).run(run);
        } catch (...) {
            run.fail(std::current_exception());
        }
        return node_step::ended;
    }
    F function;
};

// The common part of nodes with an operation. The worker that starts the operation and the thread
// that completes it meet in the start_race, which chooses the one that ends the node. A completing
// thread only submits the node to the pool, so it may be any thread, hold any lock, and have any
// stack depth.
struct waiting_node : graph_node {
    explicit waiting_node(function* f) noexcept : graph_node(f) { kind = node_kind::waiting; }

    void completed() noexcept {
        graph_run& to = *run;
        if (!race.completed()) return;
        stage = node_stage::waited;
        to.submit(*this);
    }
    graph_run* run = nullptr;
    execution::internal::start_race race;
};

class node_receiver {
public:
    using receiver_concept = execution::receiver_tag;
    explicit node_receiver(waiting_node& node) noexcept : node_(&node) {}
    template <class... Values>
    void set_value(Values&&...) && noexcept {
        node_->completed();
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        node_->run->fail(execution::internal::as_exception(static_cast<Error&&>(error)));
        node_->completed();
    }
    void set_stopped() && noexcept {
        node_->run->stop();
        node_->completed();
    }
    node_env get_env() const noexcept { return node_env(*node_->run); }

private:
    waiting_node* node_;
};

// Calls `make(run)` each time the node runs, and connects and starts the sender that it returns.
template <class Make>
struct operation_node final : waiting_node {
    using sender_type = std::invoke_result_t<Make&, graph_run&>;
    using operation_type = execution::connect_result_t<sender_type, node_receiver>;

    explicit operation_node(Make m) : waiting_node(&operation_node::step), make(std::move(m)) {}

    static node_step step(graph_node& node, graph_run& run) noexcept {
        operation_node& self = static_cast<operation_node&>(node);
        self.run = &run;
        try {
            self.operation.construct_with([&self, &run]() -> operation_type {
                return execution::connect(self.make(run), node_receiver(self));
            });
        } catch (...) {
            run.fail(std::current_exception());
            return node_step::ended;
        }
        self.race.open();
        execution::start(self.operation.get());
        if (!self.race.returned()) return node_step::waits;
        leave(self);
        return node_step::ended;
    }
    static void leave(graph_node& node) noexcept {
        static_cast<operation_node&>(node).operation.destroy();
    }

    Make make;
    manual_lifetime<operation_type> operation;
};

// Calls a function that returns a task or another sender. The function stays in the node while the
// task runs, so a coroutine may be a lambda that captures.
template <class F>
struct call_to_make {
    F function;
    auto operator()(graph_run&) -> std::invoke_result_t<F&> { return function(); }
};
template <class S>
struct copy_to_make {
    S sender;
    S operator()(graph_run&) const { return sender; }
};

template <class Subgraph, class F>
struct subgraph_node final : graph_node {
    explicit subgraph_node(F f)
        : graph_node(&subgraph_node::step), function(std::move(f)), body(this) {
        kind = node_kind::subgraph;
    }
    static node_step step(graph_node& node, graph_run& run) noexcept {
        subgraph_node& self = static_cast<subgraph_node&>(node);
        try {
            Subgraph graph(self.body);
            self.function(graph);
            self.body.prepare();
        } catch (...) {
            run.fail(std::current_exception());
            self.body.clear();
        }
        return self.body.size() == 0 ? node_step::ended : node_step::inside;
    }
    static void leave(graph_node& node) noexcept { static_cast<subgraph_node&>(node).body.clear(); }
    static graph_body& inside(graph_node& node) noexcept {
        return static_cast<subgraph_node&>(node).body;
    }

    F function;
    graph_body body;
};

}  // namespace coppice::internal
