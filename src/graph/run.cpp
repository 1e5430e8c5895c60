// How the workers of a pool run a graph.
#include <coppice/base/internal/check.hpp>
#include <coppice/graph/internal/graph_profile.hpp>
#include <coppice/graph/internal/graph_run.hpp>
#include <coppice/graph/internal/permit_wait.hpp>
#include <coppice/trace/event_log.hpp>

#include <string>
#include <system_error>

namespace coppice::internal {

namespace {

// A worker runs nodes one after the other within one item of the pool. Every `nodes_per_look` nodes
// it reads the clock. If the item has taken `item_time_max` nanoseconds, it submits the next node
// as an item of its own, because a worker serves the pool's timers and outside work only between
// items. Shorter items would cost more: an item is often stolen, and the thief's cache then misses.
constexpr unsigned nodes_per_look = 32;
constexpr std::int64_t item_time_max = 50'000;

void note_end(graph_node& node, graph_run& run, bool has_waited) noexcept {
    if (graph_profile* const profile = run.profile()) [[unlikely]]
        profile->add(node, details_of(node).began, has_waited);
}

[[gnu::noinline]] permit_wait::step take_permits(graph_node& node, graph_run& run) noexcept {
    for (permit_wait* p = details_of(node).permits; p != nullptr; p = p->next) {
        const permit_wait::step step = p->acquire(run);
        if (step != permit_wait::step::held) return step;
    }
    return permit_wait::step::held;
}

const char* traced_name(const graph_node& node, trace::event_log& log) noexcept {
    const std::string& name = details_of(node).name;
    return name.empty() ? "node" : log.keep(name);
}

// Begins a node that has permits, or resumes one that has waited.
[[gnu::noinline]] node_step begin_slowly(graph_node& node, graph_run& run,
                                         trace::event_log* log) noexcept {
    const node_stage stage = node.stage;
    node.stage = node_stage::fresh;
    if (stage == node_stage::waited) {
        details_of(node).leave(node);
        note_end(node, run, true);
        return node_step::ended;
    }
    if (run.is_stopping() && stage == node_stage::fresh) return node_step::ended;
    switch (node.is_slow ? take_permits(node, run) : permit_wait::step::held) {
        case permit_wait::step::waits:
            return node_step::waits;
        case permit_wait::step::refused:
            return node_step::ended;
        case permit_wait::step::held:
            break;
    }
    if (run.is_stopping()) return node_step::ended;
    if (run.profile() != nullptr) details_of(node).began = graph_profile::now();
    const bool traced = log != nullptr && log->begin(graph_profile::now(), traced_name(node, *log));
    const node_step step = node.call(node, run);
    if (traced) log->end(traced, graph_profile::now());
    if (step == node_step::ended) note_end(node, run, false);
    return step;
}

node_step begin_node(graph_node& node, graph_run& run, trace::event_log* log) noexcept {
    const bool is_plain =
        node.stage == node_stage::fresh && !node.is_slow && !run.profile() && log == nullptr;
    if (!is_plain) [[unlikely]]
        return begin_slowly(node, run, log);
    if (run.is_stopping()) [[unlikely]]
        return node_step::ended;
    return node.call(node, run);
}

[[gnu::noinline]] void give_back_permits(graph_node& node) noexcept {
    for (permit_wait* p = details_of(node).permits; p != nullptr; p = p->next) p->release();
}

// Called when the node has ended. Returns the node that this worker runs next, or nullptr. After
// nullptr, the graph and the run may be gone.
graph_node* end_node(graph_node* node, graph_run& run) noexcept {
    for (;;) {
        if (node->is_slow) [[unlikely]]
            give_back_permits(*node);
        graph_body& body = *node->body;
        bool over = false;
        graph_node* const next = body.after(*node, run, over);
        if (!over) return next;
        node = body.parent();
        if (node == nullptr) return run.end_round();
        details_of(*node).leave(*node);
        note_end(*node, run, true);
    }
}

}  // namespace

void run_graph_node(work_item* item) noexcept {
    graph_node* node = static_cast<graph_node*>(item);
    graph_run& run = node->body->run();
    trace::event_log* const log = trace::this_thread_log();
    std::int64_t began = 0;
    for (unsigned nodes = 0;; ++nodes) {
        if (nodes == nodes_per_look) [[unlikely]] {
            const std::int64_t now = graph_profile::now();
            if (began == 0) began = now;
            if (now - began > item_time_max) return run.submit(*node);
            nodes = 0;
        }
        switch (begin_node(*node, run, log)) {
            case node_step::waits:
                return;
            case node_step::inside:
                node = details_of(*node).inside(*node).start_round(run);
                break;
            case node_step::ended:
                node = end_node(node, run);
                break;
        }
        if (node == nullptr) return;
    }
}

graph_node* graph_body::start_round(graph_run& run) noexcept {
    run_ = &run;
    ends_.set(counts_paths_ ? static_cast<std::uint32_t>(starts_.size()) : end_group_count_);
    if (counts_paths_) {
        for (graph_node* const node : nodes_) {
            node->joins.set(node->strong);
            details_of(*node).starts.reset();
        }
        for (graph_node* const node : starts_) (void)details_of(*node).starts.start();
    }
    const std::size_t last = starts_.size() - 1;
    graph_node* const kept = starts_[last];
    for (std::size_t i = 0; i != last; ++i) run.submit(*starts_[i]);
    return kept;
}

graph_node* graph_body::after(graph_node& node, graph_run& run, bool& over) noexcept {
    return counts_paths_ ? after_some(node, run, over) : after_all(node, run, over);
}

// For bodies without conditions. Every node is reached, so a node that has not started keeps the
// body alive. After the caller's last arrival, the nodes may be gone.
graph_node* graph_body::after_all(graph_node& node, graph_run& run, bool& over) noexcept {
    if (node.successor_count == 0) {
        end_group& group = end_groups_[node.first];
        over = group.left.arrive(group.size) && ends_.end_one();
        return nullptr;
    }
    graph_node* const* next = successors_.data() + node.first;
    graph_node* const* const end = next + node.successor_count;
    graph_node* kept = nullptr;
    do {
        graph_node& candidate = **next;
        if (!candidate.joins.arrive(candidate.strong)) continue;
        if (kept != nullptr) run.submit(*kept);
        kept = &candidate;
    } while (++next != end);
    return kept;
}

// For bodies with conditions. The caller's path keeps the body alive until it ends or continues in
// a successor. Starting a node that already runs hands the path to its worker, which may then end
// the body. So a further path is counted before its node is started, and the node in which the
// caller's own path continues is started last.
graph_node* graph_body::after_some(graph_node& node, graph_run& run, bool& over) noexcept {
    work_item* ready = nullptr;  // the last one first
    const auto start = [&ready](graph_node& n) noexcept {
        if (!details_of(n).starts.start()) return;  // running: its worker will run it again
        n.next = ready;
        ready = &n;
    };
    graph_node* goes_on = nullptr;  // the successor in which the caller's path continues
    const auto add = [this, &start, &goes_on](graph_node& n) noexcept {
        if (goes_on != nullptr) {
            ends_.split(2);
            start(*goes_on);
        }
        goes_on = &n;
    };
    if (run.is_stopping()) {
        // The path ends.
    } else if (node.kind == node_kind::condition) {
        const int chosen = details_of(node).chosen;
        if (chosen >= 0 && static_cast<std::uint32_t>(chosen) < node.successor_count) {
            add(*successors_[node.first + static_cast<std::uint32_t>(chosen)]);
        }
    } else {
        for (std::uint32_t i = 0; i != node.successor_count; ++i) {
            graph_node& candidate = *successors_[node.first + i];
            if (candidate.joins.arrive_again(candidate.strong)) add(candidate);
        }
    }
    const bool runs_again = details_of(node).starts.ended();
    // From here on the body may be gone, unless a node is ready or this one runs again.
    if (goes_on == nullptr) {
        over = ends_.end_one();
    } else {
        start(*goes_on);
    }
    if (runs_again) {
        node.next = ready;
        ready = &node;
    }
    if (ready == nullptr) return nullptr;
    graph_node* const kept = static_cast<graph_node*>(ready);
    // Reverses the list, so that the worker pops the nodes in the order of their edges.
    work_item* turned = nullptr;
    for (work_item* item = ready->next; item != nullptr;) {
        work_item* const following = item->next;
        item->next = turned;
        turned = item;
        item = following;
    }
    while (turned != nullptr) {
        work_item* const item = turned;
        turned = item->next;
        run.submit(*item);
    }
    return kept;
}

permit_wait::step permit_wait::acquire(graph_run& run) noexcept {
    if (has_waited_) {
        has_waited_ = false;
        operation_.destroy();
        if (!held_) return step::refused;
    }
    if (held_) return step::held;
    if (std::optional<async_semaphore::permit> now = semaphore_.try_acquire(permits_)) {
        held_ = std::move(*now);
        return step::held;
    }
    run_ = &run;
    operation_.construct_with(
        [this] { return execution::connect(semaphore_.acquire(permits_), receiver(*this)); });
    has_waited_ = true;
    race_.open();
    execution::start(operation_.get());
    if (!race_.returned()) return step::waits;
    has_waited_ = false;
    operation_.destroy();
    return held_ ? step::held : step::refused;
}

void permit_wait::completed() noexcept {
    graph_run& run = *run_;
    if (!race_.completed()) return;
    node_.stage = node_stage::permits;
    run.submit(node_);
}

void permit_wait::receiver::set_error(std::error_code error) && noexcept {
    wait_->run_->fail(std::make_exception_ptr(std::system_error(error, "node::acquire")));
    wait_->completed();
}

graph_root::graph_root() noexcept = default;

graph_root::~graph_root() {
    clear();
}

graph_run::graph_run(graph_root& graph, const graph_pool& pool) noexcept
    : work_item(&graph_run::run_first), graph_(&graph), pool_(pool) {}

graph_run::~graph_run() {
    if (waits_) waits_->destroy();
}

void graph_run::enter(const completion_env& env) noexcept {
    env_ = env;
    if (std::optional<async_mutex::guard> turn = graph_->turn.try_lock()) {
        turn_ = std::move(*turn);
        return begin();
    }
    waits_.emplace();
    waits_->construct_with(
        [this] { return execution::connect(graph_->turn.lock(), turn_receiver(*this)); });
    execution::start(waits_->get());  // this object may be gone
}

void graph_run::turn_receiver::set_value(async_mutex::guard turn) && noexcept {
    run_->turn_ = std::move(turn);
    run_->begin();
}
void graph_run::turn_receiver::set_error(std::error_code error) && noexcept {
    run_->error_ = std::make_exception_ptr(std::system_error(error, "task_graph::run"));
    run_->complete(outcome::error);
}
void graph_run::turn_receiver::set_stopped() && noexcept {
    run_->complete(outcome::stopped);
}

// The run has the turn.
void graph_run::begin() noexcept {
    graph_->set_busy(true);
    try {
        graph_->prepare();
        if (!limits_.engage(*this, env_)) {
            throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                                    "task_graph::run");
        }
    } catch (...) {
        fail(std::current_exception());
    }
    profile_ = graph_->profile.get();
    if (!next_round(true)) return finish();
    pool_.submit(*this);  // this object may be gone
}

bool graph_run::next_round(bool first) noexcept {
    if (is_stopping() || graph_->size() == 0) return false;
    try {
        return wants_round(first);
    } catch (...) {
        fail(std::current_exception());
        return false;
    }
}

void graph_run::run_first(work_item* item) noexcept {
    graph_run& self = *static_cast<graph_run*>(item);
    run_graph_node(self.graph_->start_round(self));
}

graph_node* graph_run::end_round() noexcept {
    if (next_round(false)) return graph_->start_round(*this);
    finish();
    return nullptr;
}

void graph_run::finish() noexcept {
    limits_.reset();
    const outcome what = error_          ? outcome::error
                         : is_stopping() ? outcome::stopped
                                         : outcome::value;
    graph_->set_busy(false);
    turn_.unlock();  // the graph may be gone
    complete(what);
}

void graph_run::fail(std::exception_ptr error) noexcept {
    // relaxed: the end of the node publishes the error
    if (!has_failed_.exchange(true, relaxed)) error_ = static_cast<std::exception_ptr&&>(error);
    source_.request_stop();
}

}  // namespace coppice::internal
