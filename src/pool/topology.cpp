// Reads the topology of pool/topology.hpp from the system.
#include <coppice/pool/topology.hpp>

#include <dirent.h>
#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

namespace coppice {

using namespace internal;

namespace {

// The first and last number of each range in a list of the kernel, such as "0-3,8\n".
using ranges = std::vector<std::pair<unsigned, unsigned>>;

// Takes a number from the front of `text`. Returns false if there is none.
bool take_number(std::string_view& text, unsigned& number) {
    const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    text.remove_prefix(static_cast<std::size_t>(after - text.data()));
    return error == std::errc();
}
bool take(std::string_view& text, char c) {
    if (!text.starts_with(c)) return false;
    text.remove_prefix(1);
    return true;
}

// Returns nothing if `text` is not a list.
std::optional<ranges> parse_list(std::string_view text) {
    ranges all;
    while (!text.empty() || !all.empty()) {
        unsigned first = 0;
        if (!take_number(text, first)) return std::nullopt;
        unsigned last = first;
        if (take(text, '-') && (!take_number(text, last) || last < first)) return std::nullopt;
        all.emplace_back(first, last);
        if (text.empty()) break;
        if (!take(text, ',')) return std::nullopt;
    }
    return all;
}

// Returns nothing if the file does not exist, or contains no list.
std::optional<ranges> read_list(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    if (!std::getline(file, line)) return std::nullopt;
    return parse_list(line);
}

bool contains(const ranges& all, unsigned id) {
    return std::any_of(all.begin(), all.end(),
                       [id](const auto& r) { return r.first <= id && id <= r.second; });
}

struct node_list {
    unsigned number;
    ranges processors;
};

// Returns the nodes that have a folder and processors, ascending.
std::vector<node_list> read_nodes(const std::string& root) {
    std::vector<node_list> nodes;
    const std::string folder = root + "/node";
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
    if (entries == nullptr) return nodes;
    while (const dirent* const entry = ::readdir(entries.get())) {
        const std::string_view name = entry->d_name;
        if (!name.starts_with("node")) continue;
        std::string_view rest = name.substr(4);
        unsigned number = 0;
        if (!take_number(rest, number) || !rest.empty()) continue;
        auto list = read_list(folder + "/" + std::string(name) + "/cpulist");
        if (list && !list->empty()) nodes.push_back({number, std::move(*list)});
    }
    std::sort(nodes.begin(), nodes.end(),
              [](const node_list& a, const node_list& b) { return a.number < b.number; });
    return nodes;
}

// Returns how many of `ids` come before `id` among the hardware threads of its core.
unsigned sibling_number(const std::string& root, std::span<const unsigned> ids, unsigned id) {
    const auto siblings =
        read_list(root + "/cpu/cpu" + std::to_string(id) + "/topology/thread_siblings_list");
    if (!siblings) return 0;
    return static_cast<unsigned>(std::count_if(ids.begin(), ids.end(), [&](unsigned other) {
        return other < id && contains(*siblings, other);
    }));
}

std::vector<unsigned> without_offline(const std::string& root, std::span<const unsigned> ids) {
    std::vector<unsigned> left;
    if (const auto online = read_list(root + "/cpu/online")) {
        std::copy_if(ids.begin(), ids.end(), std::back_inserter(left),
                     [&](unsigned id) { return contains(*online, id); });
    }
    if (left.empty()) left.assign(ids.begin(), ids.end());
    return left;
}

// Returns the processors of `all` whose `number` is in `wanted`. Errors: std::invalid_argument if a
// wanted one is missing.
template <class Number>
topology only(const std::vector<processor>& all, std::span<const unsigned> wanted, const char* what,
              Number number) {
    std::vector<processor> left;
    for (const unsigned each : wanted) {
        if (std::none_of(all.begin(), all.end(),
                         [&](const processor& p) { return number(p) == each; })) {
            throw std::invalid_argument("coppice: " + std::string(what) + " " +
                                        std::to_string(each) +
                                        " does not exist or may not be used");
        }
    }
    std::copy_if(all.begin(), all.end(), std::back_inserter(left), [&](const processor& p) {
        return std::find(wanted.begin(), wanted.end(), number(p)) != wanted.end();
    });
    return topology(std::move(left));
}

}  // namespace

namespace internal {

std::vector<unsigned> allowed_processors() {
    std::vector<unsigned> ids;
    constexpr std::size_t word_bits = 8 * sizeof(unsigned long);
    // The kernel refuses a mask that is shorter than its own.
    for (std::size_t words = 16; words <= 1024 && ids.empty(); words *= 2) {
        std::vector<unsigned long> mask(words);
        if (::sched_getaffinity(0, words * sizeof(unsigned long),
                                reinterpret_cast<cpu_set_t*>(mask.data())) != 0) {
            continue;
        }
        for (std::size_t i = 0; i != words * word_bits; ++i) {
            if ((mask[i / word_bits] >> i % word_bits & 1) != 0) {
                ids.push_back(static_cast<unsigned>(i));
            }
        }
    }
    if (ids.empty()) ids.push_back(0);
    return ids;
}

}  // namespace internal

topology::topology(std::vector<processor> processors) : processors_(std::move(processors)) {
    if (processors_.empty()) {
        throw std::invalid_argument("coppice: a topology needs at least one processor");
    }
    std::vector<unsigned> ids;
    for (const processor& each : processors_) ids.push_back(each.id);
    std::sort(ids.begin(), ids.end());
    if (const auto twice = std::adjacent_find(ids.begin(), ids.end()); twice != ids.end()) {
        throw std::invalid_argument("coppice: processor " + std::to_string(*twice) +
                                    " is in a topology twice");
    }
    std::sort(processors_.begin(), processors_.end(), [](const processor& a, const processor& b) {
        return std::tuple(a.sibling, a.node, a.id) < std::tuple(b.sibling, b.node, b.id);
    });
}

topology topology::of_this_process() {
    return read("/sys/devices/system", allowed_processors());
}

topology topology::read(const std::string& root, std::span<const unsigned> allowed) {
    const std::vector<unsigned> ids = without_offline(root, allowed);
    const std::vector<node_list> nodes = read_nodes(root);
    std::vector<processor> all;
    for (const unsigned id : ids) {
        auto node = std::find_if(nodes.begin(), nodes.end(),
                                 [&](const node_list& n) { return contains(n.processors, id); });
        if (node == nodes.end()) node = nodes.begin();
        all.push_back({id, nodes.empty() ? 0 : node->number, sibling_number(root, ids, id)});
    }
    return topology(std::move(all));
}

topology topology::on_nodes(std::span<const unsigned> nodes) const {
    return only(processors_, nodes, "node", [](const processor& p) { return p.node; });
}

topology topology::on_processors(std::span<const unsigned> ids) const {
    return only(processors_, ids, "processor", [](const processor& p) { return p.id; });
}

std::vector<unsigned> topology::nodes() const {
    std::vector<unsigned> numbers;
    for (const processor& each : processors_) numbers.push_back(each.node);
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return numbers;
}

}  // namespace coppice
