// node: a handle to a node of a task_graph or a subgraph; draws the edges.
#pragma once

#include <coppice/graph/internal/graph_body.hpp>
#include <coppice/sync/semaphore.hpp>

#include <concepts>
#include <cstddef>
#include <string>
#include <utility>

namespace coppice {

// A node of a graph, as a pointer: copies stand for the same node. Threads: one at a time for all
// nodes of a graph, and not while the graph runs. Lifetime: until the graph is cleared or
// destroyed; a node of a subgraph, until the subgraph has ended. Errors: every member that changes
// something stops the process while the graph runs, or if the handle is empty.
class node {
public:
    // Makes an empty handle.
    node() noexcept = default;

    // Makes each of `others` start after this node has ended. If this node is a condition, they are
    // its choices instead, numbered from 0 in the order of the calls. Errors: std::bad_alloc. Nodes
    // of different graphs stop the process.
    template <std::same_as<node>... Nodes>
    node& precede(Nodes... others) {
        (connect(*this, others), ...);
        return *this;
    }
    // Makes this node start after each of `others` has ended. Errors: those of precede().
    template <std::same_as<node>... Nodes>
    node& succeed(Nodes... others) {
        (connect(others, *this), ...);
        return *this;
    }
    // Names the node in dump(), in traces, and in profiles. Errors: std::bad_alloc.
    node& name(std::string text) {
        changed().name = std::move(text);
        return *this;
    }
    // Returns the name, which is empty if the node was not named.
    const std::string& name() const noexcept { return get().body->details(*node_).name; }
    // Sets the priority, by default 0. Among the nodes that one node makes ready, its worker runs
    // those of the highest priority first, and thieves take those of the lowest first. Limits: if
    // one node makes more than 1025 nodes ready, those that do not fit into the worker's queue run
    // after the others.
    node& priority(int value) {
        changed().priority = value;
        return *this;
    }
    // Lets the node hold `permits` of `semaphore` while it runs. It acquires them before it begins,
    // in the order of these calls, and holds no worker while it waits for them. It gives them back
    // before its successors start, also after an exception or a stop. A subgraph or a module holds
    // them until all its nodes have ended. Errors: std::bad_alloc. Lifetime: the semaphore outlives
    // the graph's runs. Source: Taskflow's semaphores, which another node may release.
    node& acquire(async_semaphore& semaphore, std::size_t permits = 1) {
        get().body->add_permits(get(), &semaphore, permits);
        return *this;
    }

    // Returns true if the handle is not empty.
    explicit operator bool() const noexcept { return node_ != nullptr; }
    friend bool operator==(node, node) noexcept = default;

private:
    friend class graph_builder;
    explicit node(internal::graph_node& n) noexcept : node_(&n) {}

    internal::graph_node& get() const noexcept {
        COPPICE_CHECK(node_ != nullptr,
                      "an empty coppice::node was used: assign one that emplace() has returned");
        return *node_;
    }
    internal::node_details& changed() const noexcept {
        get().body->change(*node_);
        return node_->body->details(*node_);
    }
    static void connect(node from, node to) { from.get().body->connect(from.get(), to.get()); }

    internal::graph_node* node_ = nullptr;
};

}  // namespace coppice
