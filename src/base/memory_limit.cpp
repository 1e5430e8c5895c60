// Reads the limits of base/internal/memory_limit.hpp.
#include <coppice/base/internal/memory_limit.hpp>

#include <sys/resource.h>
#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string_view>

namespace coppice::internal {

namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

// Returns the number at the beginning of the text; unlimited if there is none (for example "max").
std::uint64_t number_in(std::string_view text) noexcept {
    std::uint64_t value = unlimited;
    (void)std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

std::uint64_t number_in_file(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    return std::getline(file, line) ? number_in(line) : unlimited;
}

// Returns the limit of the group at `path` below `hierarchy`, and of the groups above it.
std::uint64_t group_limit(const std::string& hierarchy, std::string path, const char* file) {
    std::uint64_t least = unlimited;
    for (;;) {
        while (!path.empty() && path.back() == '/') path.pop_back();
        least = std::min(least, number_in_file(hierarchy + path + "/" + file));
        const std::size_t slash = path.rfind('/');
        if (slash == path.npos) return least;
        path.resize(slash);
    }
}

// Each line of /proc/self/cgroup is "number:controllers:path"; version 2 has no controllers.
std::uint64_t cgroup_limit(const std::string& root) {
    std::uint64_t least = unlimited;
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const std::size_t first = line.find(':');
        const std::size_t second = line.find(':', first + 1);
        if (first == line.npos || second == line.npos) continue;
        const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
        const std::string path = line.substr(second + 1);
        if (controllers == ",,") {
            least = std::min(least, group_limit(root + "/sys/fs/cgroup", path, "memory.max"));
        } else if (controllers.find(",memory,") != controllers.npos) {
            least = std::min(
                least, group_limit(root + "/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
        }
    }
    return least;
}

std::uint64_t machine_memory(const std::string& root) {
    constexpr std::string_view name = "MemTotal:";
    std::ifstream info(root + "/proc/meminfo");
    for (std::string line; std::getline(info, line);) {
        if (!line.starts_with(name)) continue;
        const std::size_t digits = line.find_first_of("0123456789");
        if (digits == line.npos) break;
        const std::uint64_t kib = number_in(std::string_view(line).substr(digits));
        return kib > unlimited / 1024 ? unlimited : kib * 1024;
    }
    return unlimited;
}

}  // namespace

std::uint64_t memory_limit(const std::string& root) {
    return std::min(cgroup_limit(root), machine_memory(root));
}

std::uint64_t memory_limit() {
    std::uint64_t least = memory_limit(std::string());
    rlimit space{};
    if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
        least = std::min<std::uint64_t>(least, space.rlim_cur);
    }
    return least;
}

}  // namespace coppice::internal
