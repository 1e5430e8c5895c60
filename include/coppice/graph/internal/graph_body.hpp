// graph_body: the nodes of a graph or a subgraph, and their edges in the form that a run reads.
#pragma once

#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/graph/internal/graph_node.hpp>
#include <coppice/graph/internal/join_counter.hpp>
#include <coppice/graph/internal/node_arena.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace coppice::internal {

// Threads: the owner builds the body. A run prepares it and starts rounds. The run's workers end
// nodes. These phases do not overlap.
class [[gnu::visibility("default")]] graph_body : immovable {
public:
    explicit graph_body(graph_node* parent = nullptr) noexcept : parent_(parent) {}
    ~graph_body();

    // Makes a node of the type Node. Errors: std::bad_alloc, and what the constructor throws; the
    // body is then as before.
    template <class Node, class... Args>
    graph_node& make(Args&&... args) {
        check_idle();
        nodes_.reserve(nodes_.size() + 1 > nodes_.capacity() ? 2 * nodes_.size() + 8
                                                             : nodes_.size());
        details_.reserve(nodes_.capacity());
        void* const about = details_memory_.allocate(sizeof(node_details), alignof(node_details));
        void* const memory = memory_.allocate(sizeof(Node), node_alignment<Node>);
        Node* const node = ::new (memory) Node(std::forward<Args>(args)...);
        node_details* const details = ::new (about) node_details();
        details->destroy = [](graph_node& n) noexcept { static_cast<Node&>(n).~Node(); };
        add(*node, *details);
        return *node;
    }
    // Errors: std::bad_alloc. Both stop the process if the nodes are of different graphs, or the
    // graph runs.
    void connect(graph_node& from, graph_node& to);
    void change(graph_node& node) noexcept;
    void add_permits(graph_node& node, void* semaphore, std::size_t permits);
    // Destroys the nodes, and keeps their memory.
    void clear() noexcept;

    std::size_t size() const noexcept { return nodes_.size(); }
    graph_node& at(std::size_t i) const noexcept { return *nodes_[i]; }
    node_details& details(const graph_node& node) const noexcept { return *details_[node.index]; }

    // Makes the arrays that a run reads, if the body has changed. Errors: std::bad_alloc;
    // std::system_error with invalid_argument if the graph or one of its modules cannot run.
    void prepare();
    // Throws the same errors as prepare() if the body cannot run. Changes nothing.
    void check_valid() const;
    void dump(std::ostream& out) const;

    // Called by the worker that starts a round, or by a thread that will submit to one. Starts all
    // nodes that have no predecessor, except the one that it returns. Precondition: not empty.
    graph_node* start_round(graph_run& run) noexcept;
    // Called by a worker that has ended a node. Returns a successor that the caller must run next,
    // or nullptr. Submits all other successors that are ready. Sets `over` if the body has ended.
    // If it returns nullptr without setting `over`, the body may be gone.
    graph_node* after(graph_node& node, graph_run& run, bool& over) noexcept;

    graph_node* parent() const noexcept { return parent_; }
    graph_run& run() const noexcept { return *run_; }
    // Marks the body as used by a run, or not. Called by the run that has the turn.
    void set_busy(bool busy) noexcept { busy_.store(busy, relaxed); }

private:
    // A node that fits into one cache line begins one.
    template <class Node>
    static constexpr std::size_t node_alignment =
        std::max(alignof(Node), sizeof(Node) > 64 ? alignof(std::max_align_t) : 64);

    void add(graph_node& node, node_details& details) noexcept;
    void check_idle() const noexcept {
        // relaxed: no correct program changes a graph while it runs
        COPPICE_CHECK(
            !busy_.load(relaxed),
            "a task_graph was changed or destroyed while it runs: wait for its run first");
    }
    void check_modules(std::vector<const graph_body*>& above) const;
    void lay_out();
    void check_order();
    void group_ends(std::uint32_t without_next);
    graph_node* after_all(graph_node& node, graph_run& run, bool& over) noexcept;
    graph_node* after_some(graph_node& node, graph_run& run, bool& over) noexcept;

    // A group of nodes without successors, with a counter of its own. So workers that end different
    // parts of a graph do not contend for one counter at each node.
    struct alignas(64) end_group {
        join_counter left;
        std::uint32_t size = 0;
    };
    static constexpr std::uint32_t end_group_max = 64;

    graph_run* run_ = nullptr;   // of the round that is under way
    graph_node* const parent_;   // the node whose subgraph this is
    bool counts_paths_ = false;  // a node is a condition
    bool is_prepared_ = false;
    std::vector<graph_node*> starts_;
    std::vector<graph_node*> successors_;  // those of each node are neighbors
    std::unique_ptr<end_group[]> end_groups_;
    std::uint32_t end_group_count_ = 0;
    std::uint32_t end_group_capacity_ = 0;
    std::vector<graph_node*> order_;  // used by prepare()
    std::vector<graph_node*> nodes_;
    std::vector<node_details*> details_;  // in the order of the nodes
    alignas(64) end_counter ends_;        // changed by the workers; everything above is only read
    atomic<bool> busy_{false};            // written by the run that has the turn
    node_arena memory_;
    node_arena details_memory_;
};

inline node_details& details_of(const graph_node& node) noexcept {
    return node.body->details(node);
}

}  // namespace coppice::internal
