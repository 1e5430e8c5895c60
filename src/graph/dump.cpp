// Writes a task_graph in the language of Graphviz, and its profile.
#include <coppice/base/clock.hpp>
#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/base/internal/json_string.hpp>
#include <coppice/graph/internal/graph_profile.hpp>
#include <coppice/graph/internal/graph_run.hpp>
#include <coppice/trace/chrome.hpp>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

namespace coppice::internal {

namespace {

std::string name_or_number(const std::string& name, std::uint32_t index) {
    return name.empty() ? "node " + std::to_string(index) : name;
}
std::string name_of_node(const graph_node& node) {
    return name_or_number(node.body->details(node).name, node.index);
}

std::string dot_label(const std::string& text) {
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') quoted += '\\';
        if (c == '\n') {
            quoted += "\\n";
        } else {
            quoted += c;
        }
    }
    return quoted + '"';
}

const char* dot_shape(const graph_node& node) noexcept {
    if (node.body->details(node).module != nullptr) return "folder";
    switch (node.kind) {
        case node_kind::condition:
            return "diamond";
        case node_kind::waiting:
            return "ellipse";
        case node_kind::subgraph:
            return "tab";
        case node_kind::plain:
            break;
    }
    return "box";
}

// Writes the nodes and edges of a graph, and its modules that have not been written yet.
void dump_nodes(std::ostream& out, const graph_body& body,
                std::vector<const graph_body*>& written) {
    const std::size_t number = written.size();
    written.push_back(&body);
    const auto id = [number](const graph_node& node) {
        return 'g' + std::to_string(number) + 'n' + std::to_string(node.index);
    };
    for (std::size_t i = 0; i != body.size(); ++i) {
        const graph_node& node = body.at(i);
        out << "  " << id(node) << " [label=" << dot_label(name_of_node(node))
            << " shape=" << dot_shape(node) << "];\n";
        std::size_t choice = 0;
        for (const graph_edge* e = body.details(node).first; e != nullptr; e = e->next) {
            out << "  " << id(node) << " -> " << id(*e->to);
            if (node.kind == node_kind::condition) {
                out << " [style=dashed label=\"" << choice++ << "\"]";
            }
            out << ";\n";
        }
    }
    for (std::size_t i = 0; i != body.size(); ++i) {
        const graph_body* const module = body.details(body.at(i)).module;
        if (module == nullptr ||
            std::find(written.begin(), written.end(), module) != written.end()) {
            continue;
        }
        out << "  subgraph cluster_" << written.size()
            << " {\n  label=" << dot_label(name_of_node(body.at(i))) << ";\n";
        dump_nodes(out, *module, written);
        out << "  }\n";
    }
}

void append_event(std::string& out, const std::string& name, const char* kind, std::int64_t ns,
                  const std::string& rest) {
    if (out.back() == '}') out += ",\n";
    out += "{\"name\":" + json_string(name) + ",\"cat\":\"node\",\"pid\":1,\"ph\":\"";
    out += kind;
    out +=
        "\",\"ts\":" + std::to_string(ns / 1000) + '.' + std::to_string(ns % 1000 + 1000).substr(1);
    out += rest + '}';
}

}  // namespace

void graph_body::dump(std::ostream& out) const {
    out << "digraph task_graph {\n";
    std::vector<const graph_body*> written;
    dump_nodes(out, *this, written);
    out << "}\n";
}

void graph_root::keep_profile(std::size_t events) {
    COPPICE_CHECK(turn.try_lock(),
                  "task_graph::profile() was called while the graph runs: wait for its run first");
    profile = events == 0 ? nullptr : std::make_unique<graph_profile>(events);
}

void graph_root::write_profile(const std::string& path) const {
    trace::write_file(path, profile ? profile->json() : graph_profile(0).json());
}

std::int64_t graph_profile::now() noexcept {
    return monotonic_clock().now().time_since_epoch().count();
}

void graph_profile::add(const graph_node& node, std::int64_t began, bool has_waited) noexcept {
    // relaxed: the end of the run publishes the events
    const std::size_t i = count_.fetch_add(1, relaxed);
    if (i >= capacity_) return;
    const fork_deque* const worker = fork_deque::current();
    event& e = events_[i];
    e.began = began;
    e.ended = now();
    e.index = node.index;
    e.worker = static_cast<std::uint16_t>(worker != nullptr ? worker->worker() + 1 : 0);
    e.has_waited = has_waited;
    const std::string& name = node.body->details(node).name;
    e.name[name.copy(e.name, sizeof e.name - 1)] = 0;
}

std::string graph_profile::json() const {
    // relaxed: no run is under way
    const std::size_t counted = count_.load(relaxed);
    const std::size_t count = std::min(counted, capacity_);
    std::int64_t first = INT64_MAX;
    unsigned workers = 0;
    for (std::size_t i = 0; i != count; ++i) {
        first = std::min(first, events_[i].began);
        workers = std::max(workers, events_[i].worker + 1u);
    }
    std::string out = "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"dropped\":\"" +
                      std::to_string(counted - count) + "\"},\"traceEvents\":[\n";
    for (unsigned w = 0; w != workers; ++w) {
        const std::string label = w == 0 ? "other threads" : "worker " + std::to_string(w - 1);
        append_event(out, "thread_name", "M", 0,
                     ",\"tid\":" + std::to_string(w) + ",\"args\":{\"name\":\"" + label + "\"}");
    }
    for (std::size_t i = 0; i != count; ++i) {
        const event& e = events_[i];
        const std::string name = name_or_number(e.name, e.index);
        const std::string tid = ",\"tid\":" + std::to_string(e.worker);
        if (e.has_waited) {
            const std::string id = tid + ",\"id\":" + std::to_string(i);
            append_event(out, name, "b", e.began - first, id);
            append_event(out, name, "e", e.ended - first, id);
        } else {
            const std::string span = std::to_string((e.ended - e.began) / 1000) + '.' +
                                     std::to_string((e.ended - e.began) % 1000 + 1000).substr(1);
            append_event(out, name, "X", e.began - first, tid + ",\"dur\":" + span);
        }
    }
    out += "\n]}\n";
    return out;
}

}  // namespace coppice::internal
