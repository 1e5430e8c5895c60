// The nodes of a graph: their edges, and what a run needs of them.
#include <coppice/graph/internal/graph_body.hpp>
#include <coppice/graph/internal/permit_wait.hpp>

#include <algorithm>
#include <system_error>

namespace coppice::internal {

namespace {

[[noreturn]] void refuse_graph(const char* why) {
    throw std::system_error(std::make_error_code(std::errc::invalid_argument), why);
}

// The last node that is ready is run first, and the others are popped last in, first out. So the
// first in order, among those of the highest priority, stands last.
bool runs_later(const graph_node* a, const graph_node* b) noexcept {
    const node_details& x = *a->details;
    const node_details& y = *b->details;
    return x.priority != y.priority ? x.priority < y.priority : x.rank > y.rank;
}

}  // namespace

graph_body::~graph_body() {
    clear();
}

void graph_body::add(graph_node& node) noexcept {
    node.body = this;
    node.details->index = static_cast<std::uint32_t>(nodes_.size());
    nodes_.push_back(&node);
    is_prepared_ = false;
}

void graph_body::connect(graph_node& from, graph_node& to) {
    check_idle();
    COPPICE_CHECK(from.body == this && to.body == this,
                  "task_graph: an edge between nodes of different graphs");
    void* const memory = details_memory_.allocate(sizeof(graph_edge), alignof(graph_edge));
    graph_edge* const edge = ::new (memory) graph_edge{&to};
    *from.details->last = edge;
    from.details->last = &edge->next;
    ++from.details->edges;
    is_prepared_ = false;
}

void graph_body::change(graph_node&) noexcept {
    check_idle();
    is_prepared_ = false;
}

void graph_body::add_permits(graph_node& node, void* semaphore, std::size_t permits) {
    check_idle();
    void* const memory = details_memory_.allocate(sizeof(permit_wait), alignof(permit_wait));
    permit_wait** last = &node.details->permits;
    while (*last != nullptr) last = &(*last)->next;
    *last = ::new (memory) permit_wait(node, *static_cast<async_semaphore*>(semaphore), permits);
    node.is_slow = true;
}

void graph_body::clear() noexcept {
    check_idle();
    for (graph_node* const node : nodes_) {
        node_details* const details = node->details;
        for (permit_wait* p = details->permits; p != nullptr;) {
            permit_wait* const next = p->next;
            p->~permit_wait();
            p = next;
        }
        details->destroy(*node);
        details->~node_details();
    }
    nodes_.clear();
    memory_.reset();
    details_memory_.reset();
    is_prepared_ = false;
}

void graph_body::check_valid() const {
    std::vector<std::uint32_t> left(nodes_.size(), 0);
    std::vector<bool> is_chosen(nodes_.size(), false);
    for (const graph_node* const node : nodes_) {
        for (const graph_edge* e = node->details->first; e != nullptr; e = e->next) {
            if (node->kind == node_kind::condition) {
                is_chosen[e->to->details->index] = true;
            } else {
                ++left[e->to->details->index];
            }
        }
    }
    std::vector<const graph_node*> ready;
    ready.reserve(nodes_.size());
    bool has_start = false;
    for (const graph_node* const node : nodes_) {
        if (left[node->details->index] != 0) continue;
        ready.push_back(node);
        if (!is_chosen[node->details->index]) has_start = true;
    }
    if (!has_start && !nodes_.empty()) {
        refuse_graph("task_graph: every node has a predecessor, so none can start");
    }
    for (std::size_t i = 0; i != ready.size(); ++i) {
        if (ready[i]->kind == node_kind::condition) continue;
        for (const graph_edge* e = ready[i]->details->first; e != nullptr; e = e->next) {
            if (--left[e->to->details->index] == 0) ready.push_back(e->to);
        }
    }
    if (ready.size() != nodes_.size()) {
        refuse_graph("task_graph: a cycle without a condition");
    }
}

// Modules contain their own modules; a graph that contains itself cannot run.
void graph_body::check_modules(std::vector<const graph_body*>& above) const {
    above.push_back(this);
    for (const graph_node* const node : nodes_) {
        const graph_body* const module = node->details->module;
        if (module == nullptr) continue;
        if (std::find(above.begin(), above.end(), module) != above.end()) {
            refuse_graph("task_graph: a graph is a module of itself");
        }
        module->check_valid();
        module->check_modules(above);
    }
    above.pop_back();
}

void graph_body::prepare() {
    if (is_prepared_) return;
    check_valid();
    std::vector<const graph_body*> above;
    for (const graph_node* const node : nodes_) {
        if (node->details->module == nullptr) continue;
        check_modules(above);
        break;
    }
    lay_out();
    is_prepared_ = true;
}

void graph_body::lay_out() {
    std::size_t edges = 0;
    counts_paths_ = false;
    without_next_ = 0;
    for (graph_node* const node : nodes_) {
        node->strong = 0;
        node->details->weak = 0;
        edges += node->details->edges;
        if (node->details->edges == 0) ++without_next_;
        if (node->kind == node_kind::condition) counts_paths_ = true;
    }
    successors_.clear();
    successors_.reserve(edges);
    for (graph_node* const node : nodes_) {
        const std::size_t first = successors_.size();
        const bool is_condition = node->kind == node_kind::condition;
        for (const graph_edge* e = node->details->first; e != nullptr; e = e->next) {
            e->to->details->rank = static_cast<std::uint32_t>(successors_.size());
            successors_.push_back(e->to);
            ++(is_condition ? e->to->details->weak : e->to->strong);
        }
        node->successors = successors_.data() + first;
        node->successor_count = node->details->edges;
        if (is_condition) continue;
        std::sort(successors_.begin() + static_cast<std::ptrdiff_t>(first), successors_.end(),
                  runs_later);
    }
    starts_.clear();
    for (graph_node* const node : nodes_) {
        node->joins.set(node->strong);
        if (node->strong != 0 || node->details->weak != 0) continue;
        node->details->rank = node->details->index;
        starts_.push_back(node);
    }
    std::sort(starts_.begin(), starts_.end(), runs_later);
}

}  // namespace coppice::internal
