// The nodes of a graph, their edges, and the arrays that a run reads.
#include <coppice/graph/internal/graph_body.hpp>
#include <coppice/graph/internal/permit_wait.hpp>

#include <algorithm>
#include <system_error>

namespace coppice::internal {

namespace {

[[noreturn]] void refuse_graph(const char* why) {
    throw std::system_error(std::make_error_code(std::errc::invalid_argument), why);
}

[[noreturn]] void refuse_without_start() {
    refuse_graph("task_graph: every node has a predecessor, so none can start: remove an edge");
}
[[noreturn]] void refuse_cycle() {
    refuse_graph(
        "task_graph: a cycle without a condition never starts: remove an edge, or make one of its "
        "nodes a condition");
}

// Orders successors so that the last one runs first: the worker runs the last ready node itself,
// and pops the others last in, first out. The last one is the earliest edge of the highest
// priority.
bool runs_later(const graph_node* a, const graph_node* b) noexcept {
    const node_details& x = details_of(*a);
    const node_details& y = details_of(*b);
    return x.priority != y.priority ? x.priority < y.priority : x.rank > y.rank;
}

}  // namespace

graph_body::~graph_body() {
    clear();
}

void graph_body::add(graph_node& node, node_details& details) noexcept {
    node.body = this;
    node.index = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(&node);
    details_.push_back(&details);
    is_prepared_ = false;
}

void graph_body::connect(graph_node& from, graph_node& to) {
    check_idle();
    COPPICE_CHECK(
        from.body == this && to.body == this,
        "task_graph: an edge between nodes of different graphs: connect nodes of one graph");
    void* const memory = details_memory_.allocate(sizeof(graph_edge), alignof(graph_edge));
    graph_edge* const edge = ::new (memory) graph_edge{&to};
    node_details& details = details_of(from);
    *details.last = edge;
    details.last = &edge->next;
    ++details.edges;
    is_prepared_ = false;
}

void graph_body::change(graph_node&) noexcept {
    check_idle();
    is_prepared_ = false;
}

void graph_body::add_permits(graph_node& node, void* semaphore, std::size_t permits) {
    check_idle();
    void* const memory = details_memory_.allocate(sizeof(permit_wait), alignof(permit_wait));
    permit_wait** last = &details_of(node).permits;
    while (*last != nullptr) last = &(*last)->next;
    *last = ::new (memory) permit_wait(node, *static_cast<async_semaphore*>(semaphore), permits);
    node.is_slow = true;
}

void graph_body::clear() noexcept {
    check_idle();
    for (graph_node* const node : nodes_) {
        node_details* const details = &details_of(*node);
        for (permit_wait* p = details->permits; p != nullptr;) {
            permit_wait* const next = p->next;
            p->~permit_wait();
            p = next;
        }
        details->destroy(*node);
        details->~node_details();
    }
    nodes_.clear();
    details_.clear();
    memory_.reset();
    details_memory_.reset();
    is_prepared_ = false;
}

void graph_body::check_valid() const {
    std::vector<std::uint32_t> left(nodes_.size(), 0);
    std::vector<bool> is_chosen(nodes_.size(), false);
    for (const graph_node* const node : nodes_) {
        for (const graph_edge* e = details_of(*node).first; e != nullptr; e = e->next) {
            if (node->kind == node_kind::condition) {
                is_chosen[e->to->index] = true;
            } else {
                ++left[e->to->index];
            }
        }
    }
    std::vector<const graph_node*> ready;
    ready.reserve(nodes_.size());
    bool has_start = false;
    for (const graph_node* const node : nodes_) {
        if (left[node->index] != 0) continue;
        ready.push_back(node);
        if (!is_chosen[node->index]) has_start = true;
    }
    if (!has_start && !nodes_.empty()) refuse_without_start();
    for (std::size_t i = 0; i != ready.size(); ++i) {
        if (ready[i]->kind == node_kind::condition) continue;
        for (const graph_edge* e = details_of(*ready[i]).first; e != nullptr; e = e->next) {
            if (--left[e->to->index] == 0) ready.push_back(e->to);
        }
    }
    if (ready.size() != nodes_.size()) refuse_cycle();
}

// Checks all modules and the modules in them. Rejects a graph that contains itself.
void graph_body::check_modules(std::vector<const graph_body*>& above) const {
    above.push_back(this);
    for (const graph_node* const node : nodes_) {
        const graph_body* const module = details_of(*node).module;
        if (module == nullptr) continue;
        if (std::find(above.begin(), above.end(), module) != above.end()) {
            refuse_graph("task_graph: a graph contains itself as a module: compose another graph");
        }
        module->check_valid();
        module->check_modules(above);
    }
    above.pop_back();
}

void graph_body::prepare() {
    if (is_prepared_) return;
    lay_out();
    check_order();
    std::vector<const graph_body*> above;
    for (const graph_node* const node : nodes_) {
        if (details_of(*node).module == nullptr) continue;
        // A subgraph must not compose a graph in which it runs: that graph waits for the subgraph,
        // and keeps its turn meanwhile.
        for (const graph_node* n = parent_; n != nullptr; n = n->body->parent_) {
            above.push_back(n->body);
        }
        check_modules(above);
        break;
    }
    is_prepared_ = true;
}

// Checks the same as check_valid(). Called after lay_out(), and reuses memory.
void graph_body::check_order() {
    if (starts_.empty() && !nodes_.empty()) refuse_without_start();
    order_.clear();
    order_.reserve(nodes_.size());
    for (graph_node* const node : nodes_) {
        details_of(*node).rank = node->strong;
        if (node->strong == 0) order_.push_back(node);
    }
    for (std::size_t i = 0; i != order_.size(); ++i) {
        const graph_node& node = *order_[i];
        if (node.kind == node_kind::condition) continue;
        for (std::uint32_t s = 0; s != node.successor_count; ++s) {
            graph_node* const next = successors_[node.first + s];
            if (--details_of(*next).rank == 0) order_.push_back(next);
        }
    }
    if (order_.size() != nodes_.size()) refuse_cycle();
}

void graph_body::group_ends(std::uint32_t without_next) {
    end_group_count_ = (without_next + end_group_max - 1) / end_group_max;
    if (end_group_count_ > end_group_capacity_) {
        end_groups_ = std::make_unique<end_group[]>(end_group_count_);
        end_group_capacity_ = end_group_count_;
    }
    for (std::uint32_t i = 0; i != end_group_count_; ++i) {
        end_group& group = end_groups_[i];
        group.size = std::min(without_next, end_group_max);
        group.left.set(group.size);
        without_next -= group.size;
    }
}

void graph_body::lay_out() {
    std::size_t edges = 0;
    std::uint32_t without_next = 0;
    counts_paths_ = false;
    for (graph_node* const node : nodes_) {
        node_details& details = details_of(*node);
        node->strong = details.weak = 0;
        node->successor_count = details.edges;
        edges += details.edges;
        if (details.edges == 0) node->first = without_next++ / end_group_max;
        if (node->kind == node_kind::condition) counts_paths_ = true;
    }
    group_ends(without_next);
    successors_.clear();
    successors_.reserve(edges);
    for (graph_node* const node : nodes_) {
        const std::size_t first = successors_.size();
        const bool is_condition = node->kind == node_kind::condition;
        for (const graph_edge* e = details_of(*node).first; e != nullptr; e = e->next) {
            details_of(*e->to).rank = static_cast<std::uint32_t>(successors_.size());
            successors_.push_back(e->to);
            ++(is_condition ? details_of(*e->to).weak : e->to->strong);
        }
        if (first != successors_.size()) node->first = static_cast<std::uint32_t>(first);
        if (is_condition) continue;
        std::sort(successors_.begin() + static_cast<std::ptrdiff_t>(first), successors_.end(),
                  runs_later);
    }
    starts_.clear();
    for (graph_node* const node : nodes_) {
        node->joins.set(node->strong);
        if (node->strong != 0 || details_of(*node).weak != 0) continue;
        details_of(*node).rank = node->index;
        starts_.push_back(node);
    }
    std::sort(starts_.begin(), starts_.end(), runs_later);
}

}  // namespace coppice::internal
