// graph_node: the part of a node that workers read; node_details: the part that they rarely need.
#pragma once
// A node is a work_item, so a worker's queue links it without allocation. The first cache line
// holds all that a worker needs to start and end it. The callable follows (node_kinds.hpp).

#include <coppice/base/lifetime.hpp>
#include <coppice/graph/internal/join_counter.hpp>
#include <coppice/pool/internal/work_item.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace coppice::internal {

class graph_body;
class graph_run;
class permit_wait;
struct graph_node;

// The result of a worker's call of a node.
enum class node_step : unsigned char {
    ended,   // its successors may start
    waits,   // another thread resumes it; it may be gone
    inside,  // its subgraph must run before its successors
};

// What a node does when it runs. The edges that leave a condition are weak.
enum class node_kind : unsigned char { plain, condition, waiting, subgraph };

// Why a node was submitted to the pool. Written before the submission.
enum class node_stage : unsigned char {
    fresh,    // it has not begun
    permits,  // it has waited for a permit
    waited,   // the operation for which it waited has completed
};

// An edge, in the order of precede().
struct graph_edge {
    graph_node* to;
    graph_edge* next = nullptr;
};

// The part of a node that its owner uses, and workers only on slow paths.
struct node_details {
    void (*destroy)(graph_node&) noexcept = nullptr;
    // Called when the node has ended after node_step::waits or node_step::inside.
    void (*leave)(graph_node&) noexcept = nullptr;
    // Returns the nodes inside, for node_step::inside.
    graph_body& (*inside)(graph_node&) noexcept = nullptr;
    graph_edge* first = nullptr;
    graph_edge** last = &first;
    std::uint32_t edges = 0;
    std::uint32_t weak = 0;  // edges that come from conditions; set by prepare()
    std::uint32_t rank = 0;  // among the successors of one node; used by prepare()
    int priority = 0;
    std::string name;
    const graph_body* module = nullptr;
    permit_wait* permits = nullptr;  // in the order in which they are acquired
    std::int64_t began = 0;          // when it last began, for the profile; nanoseconds
    start_counter starts;            // used in a body with conditions
    int chosen = -1;                 // the last result of a condition
};

struct [[gnu::visibility("default")]] graph_node : work_item {
    using function = node_step(graph_node&, graph_run&) noexcept;

    explicit graph_node(function* f) noexcept;

    function* const call;
    graph_body* body = nullptr;
    std::uint32_t index = 0;  // in its body
    // Set by prepare(): where its successors are, or if it has none, in which end_group it is.
    std::uint32_t first = 0;
    std::uint32_t successor_count = 0;
    std::uint32_t strong = 0;  // edges that do not come from conditions
    join_counter joins;
    node_kind kind = node_kind::plain;
    node_stage stage = node_stage::fresh;
    bool is_slow = false;  // has permits
};
static_assert(sizeof(graph_node) <= 56, "a callable of one pointer shares the node's cache line");

}  // namespace coppice::internal
