// task_graph: functions, tasks and senders with an order between them; built once, run often.
#pragma once
//   task_graph graph;
//   auto [load, left, right, store] = graph.emplace(f, g, h, i);
//   load.precede(left, right);
//   store.succeed(left, right);
//   co_await graph.run(pool);
//
// A node starts when all nodes that precede it have ended. The worker that ended the last of them
// runs it. A node whose task awaits something, or that waits for a permit, holds no worker.
//
// Conditions. The edges that leave a condition are weak: the nodes behind them do not wait for the
// condition. A condition that returns i starts its i-th successor at once, whatever else precedes
// that node. Any other number ends the path. So graphs may loop. A start by a condition does not
// change how many strong predecessors the node still waits for. A node never runs on two workers at
// once: if it is started while it runs, it runs again afterwards.
//
// Errors and stops. The first exception stops the run: nodes that have not begun do not begin, and
// the operations of waiting nodes get a stop request. When all nodes have ended, the run completes
// with that exception. A stop request or the deadline of the run's waiter has the same effect, and
// so has an operation in a node that completes as stopped. The run then completes with set_stopped.
//
// internal/graph_run.hpp has the life of a run. Source: the kinds of nodes are those of Taskflow.
// Nodes that wait without a worker, stops, and the rest are ours.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/graph/internal/graph_sender.hpp>
#include <coppice/graph/internal/node_kinds.hpp>
#include <coppice/graph/node.hpp>
#include <coppice/pool/thread_pool.hpp>
#include <coppice/token/use_await.hpp>

#include <cstddef>
#include <iosfwd>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coppice {

class subgraph;
class task_graph;

// The functions that make nodes, in a task_graph, and in a subgraph while its node runs. Threads:
// one at a time.
class graph_builder : immovable {
public:
    // Makes a node that calls `f` each time it runs. F is one of:
    //
    //   void()                       a function
    //   void(inplace_stop_token)     a function that may end early when the token asks it to
    //   task<void>(), S()            returns a task or another sender, which the node awaits; its
    //                                values are dropped
    //   int()                        a condition: its result is the number of the successor that
    //                                runs
    //   void(subgraph&)              makes nodes, which run and end before its successors start
    //
    // The function stays in the node, so it may be a coroutine lambda that captures. Errors:
    // std::bad_alloc, and what moving `f` throws; the graph is then unchanged. Cost: no allocation
    // while there is memory left from cleared nodes.
    template <class F>
    node emplace(F f);
    // Makes a node of each function, in order, and returns a tuple of them. Errors: those of
    // emplace(f), for the function that fails; the nodes of the functions before it stay.
    template <class F, class... More>
        requires(sizeof...(More) != 0)
    auto emplace(F f, More... more) {
        return std::tuple{emplace(std::move(f)), emplace(std::move(more))...};
    }
    // Makes a node that connects a copy of `sender` and starts it each time it runs. Its
    // environment has the run's stop token and deadline, and the pool's scheduler. Values are
    // dropped. It may complete on any thread: the node's successors run on the pool. For a sender
    // that cannot be copied, such as event.wait(), emplace a function that returns it. Errors:
    // those of emplace().
    template <execution::sender S>
    node emplace_sender(S sender);
    // Makes a node that runs `other`, which is called a module. A module follows the rules of
    // run(): a graph has one run at a time, so a module that is used twice runs twice in turn. A
    // node that waits for its module holds no worker. Errors: std::bad_alloc. If `other` cannot
    // run, or contains this graph, this graph cannot run either. If `other` was changed after the
    // last run, the run fails when it reaches the node. Lifetime: `other` outlives the runs of this
    // graph.
    node compose(task_graph& other);

    // Returns the number of nodes, without those of modules and subgraphs.
    std::size_t size() const noexcept { return body_->size(); }
    // Returns true if there are no nodes.
    bool empty() const noexcept { return size() == 0; }

protected:
    explicit graph_builder(internal::graph_body& body) noexcept : body_(&body) {}
    ~graph_builder() = default;

private:
    template <class Node, class... Args>
    node make(Args&&... args) {
        return node(body_->make<Node>(std::forward<Args>(args)...));
    }
    internal::graph_body* body_;
};

// The nodes that a function makes while its graph runs. They run when the function has returned.
// They are destroyed when all have ended, before the successors of the function's node start. If
// the function throws, they are destroyed and do not run. Lifetime: the function must not keep the
// reference to its subgraph.
class subgraph : public graph_builder {
public:
    // Called by the node that calls the function.
    explicit subgraph(internal::graph_body& body) noexcept : graph_builder(body) {}
};

namespace internal {

// Holds the graph's state. It is the first base, because the second one refers to it.
struct held_graph {
    graph_root root;
};

}  // namespace internal

// A graph of nodes that runs on the workers of a pool. Threads: one at a time may build; any may
// run. One run is under way at a time; the others wait for their turn, first come, first served.
// Lifetime: outlives its runs. When a run has completed, its waiter may destroy or change the graph
// at once, if no other run waits. Errors: changing, clearing, or destroying the graph while it runs
// stops the process.
class task_graph : internal::held_graph, public graph_builder {
public:
    // Makes a graph without nodes.
    task_graph() noexcept : graph_builder(this->root) {}

    // Start a run of the graph on the workers of a pool. run() runs it once, and run_n() n times.
    // run_until() runs it until `predicate` returns true; a worker calls the predicate after each
    // round. Result: nothing. Without a token, they return a sender, which may be connected several
    // times.
    //
    // Errors: std::system_error with std::errc::invalid_argument, before anything runs, if there is
    // a cycle without a condition, if every node has a predecessor, or if a module cannot run;
    // std::bad_alloc, also before anything runs; the first exception of a node or of the predicate.
    // After an error the graph may run again. Tokens that report codes get the code of a
    // std::system_error, not_enough_memory for std::bad_alloc, and state_not_recoverable for any
    // other exception; block and use_future throw the exception itself. A run of an empty graph
    // completes at once.
    //
    // Threads: the run completes on the worker that ended the last node; on the thread that starts
    // it, if no node runs; on the thread that stops it, if it still waits for its turn. The next
    // run may begin, and even complete, before this one has called its waiter. Blocks: never. Cost:
    // the first run after a change is O(nodes + edges) and allocates. Later runs allocate only if
    // a subgraph makes more than before, or if more subgraphs of subgraphs are under way at once.
    // Lifetime: the pool outlives the run. A stop loses: the nodes that have not begun do not run.
    template <class Queues, class Token = use_await_t>
    [[nodiscard]] auto run(internal::basic_pool<Queues>& pool, Token&& token = Token())
        -> decltype(auto) {
        return start(pool, internal::one_round(), static_cast<Token&&>(token));
    }
    template <class Queues, class Token = use_await_t>
    [[nodiscard]] auto run_n(internal::basic_pool<Queues>& pool, std::size_t n,
                             Token&& token = Token()) -> decltype(auto) {
        return start(pool, internal::counted_rounds{n}, static_cast<Token&&>(token));
    }
    template <class Queues, std::predicate Predicate, class Token = use_await_t>
    [[nodiscard]] auto run_until(internal::basic_pool<Queues>& pool, Predicate predicate,
                                 Token&& token = Token()) -> decltype(auto) {
        return start(pool, internal::rounds_until<Predicate>{std::move(predicate)},
                     static_cast<Token&&>(token));
    }

    // Destroys all nodes, and keeps their memory for new ones. While the graph runs: stops the
    // process.
    void clear() noexcept { this->root.clear(); }
    // Writes the graph in the language of Graphviz: conditions as diamonds with numbered, dashed
    // edges, nodes that wait as ellipses, subgraphs as tabs, modules as folders. The nodes of
    // modules are written beside them. Nodes without a name are numbered. Errors: those of the
    // stream.
    void dump(std::ostream& out) const { this->root.dump(out); }

    // Records the times of the next `events` nodes that run, for write_profile(), and drops former
    // times. 0, the default, records none. Cost: 64 bytes per event, allocated here; during a run,
    // two readings of the clock per node, or one branch if nothing is recorded. Errors:
    // std::bad_alloc. While the graph runs: stops the process.
    void profile(std::size_t events) { this->root.keep_profile(events); }
    // Writes the recorded times to a file for ui.perfetto.dev and Chrome's about:tracing. Each
    // worker has a line with the nodes that ran on it. Nodes that waited have lines of their own.
    // Errors: std::system_error if the file cannot be written; std::bad_alloc. Threads: none may
    // run the graph meanwhile.
    void write_profile(const std::string& path) const { this->root.write_profile(path); }

private:
    friend class graph_builder;
    template <class Queues, class Rounds, class Token>
    auto start(internal::basic_pool<Queues>& pool, Rounds rounds, Token&& token) -> decltype(auto) {
        return internal::start_run(this->root, internal::graph_pool(pool), std::move(rounds),
                                   static_cast<Token&&>(token));
    }
};

template <class F>
node graph_builder::emplace(F f) {
    if constexpr (std::is_invocable_v<F&>) {
        using result = std::invoke_result_t<F&>;
        if constexpr (execution::sender<result>) {
            node made = make<internal::operation_node<internal::call_to_make<F>>>(
                internal::call_to_make<F>{std::move(f)});
            made.node_->body->details(*made.node_).leave =
                &internal::operation_node<internal::call_to_make<F>>::leave;
            return made;
        } else {
            static_assert(std::is_void_v<result> || std::is_same_v<result, int>,
                          "a node is void(), int(), task<void>(), or void(subgraph&)");
            return make<internal::function_node<F>>(std::move(f));
        }
    } else if constexpr (std::is_invocable_v<F&, inplace_stop_token>) {
        static_assert(std::is_void_v<std::invoke_result_t<F&, inplace_stop_token>>,
                      "a node that takes a token is void(inplace_stop_token): a result, or a task, "
                      "would be dropped");
        return make<internal::function_node<F>>(std::move(f));
    } else {
        static_assert(std::is_invocable_v<F&, subgraph&>,
                      "a node is void(), int(), task<void>(), or void(subgraph&)");
        static_assert(std::is_void_v<std::invoke_result_t<F&, subgraph&>>,
                      "a node that takes a subgraph is void(subgraph&): a result, or a task, would "
                      "be dropped");
        using node_type = internal::subgraph_node<subgraph, F>;
        node made = make<node_type>(std::move(f), body_->parent() != nullptr);
        made.node_->body->details(*made.node_).leave = &node_type::leave;
        made.node_->body->details(*made.node_).inside = &node_type::inside;
        return made;
    }
}

template <execution::sender S>
node graph_builder::emplace_sender(S sender) {
    static_assert(
        std::is_copy_constructible_v<S>,
        "emplace_sender() copies the sender at each run: if it cannot be copied, emplace a "
        "function that returns it");
    using node_type = internal::operation_node<internal::copy_to_make<S>>;
    node made = make<node_type>(internal::copy_to_make<S>{std::move(sender)});
    made.node_->body->details(*made.node_).leave = &node_type::leave;
    return made;
}

inline node graph_builder::compose(task_graph& other) {
    internal::graph_root* const root = &other.root;
    const auto run_module = [root](internal::graph_run& run) {
        return internal::run_sender<internal::one_round>(*root, run.pool(), {});
    };
    using node_type = internal::operation_node<std::remove_const_t<decltype(run_module)>>;
    node made = make<node_type>(run_module);
    made.node_->body->details(*made.node_).leave = &node_type::leave;
    made.node_->body->details(*made.node_).module = root;
    return made;
}

}  // namespace coppice
