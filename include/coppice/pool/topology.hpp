// topology: the processors that a process may use, and the memory nodes they belong to; for pools.
#pragma once
// A pool deals its workers along the processors of a topology, in their order: the first hardware
// thread of every core, node by node, before the second one of any. So few workers share a node,
// and no two share a core while another core is free.
//
// The machine's is read from sysfs. Where that is missing or makes no sense there is one node with
// all processors that the process may use. Source: Documentation/ABI/stable/sysfs-devices-node and
// sysfs-devices-system-cpu of Linux.

#include <coppice/base/version.hpp>

#include <span>
#include <string>
#include <vector>

namespace coppice {

namespace internal {

// One hardware thread. Numbers are the system's.
struct processor {
    unsigned id = 0;
    unsigned node = 0;
    unsigned sibling = 0;  // 0: the first hardware thread of its core that the process may use
    friend bool operator==(const processor&, const processor&) = default;
};

// The processors that this process may use, ascending, never none: its affinity mask, in which
// cpusets of containers are included (quotas of time are not). Threads: any. Cost: a system call.
std::vector<unsigned> allowed_processors();

}  // namespace internal

// A value; use it on one thread at a time.
class topology {
public:
    // Errors: std::invalid_argument if there is no processor, or one twice.
    explicit topology(std::vector<internal::processor> processors);

    // Of this process on this machine. Cost: reads some files per node and processor.
    static topology of_this_process();
    // The same from a folder laid out as /sys/devices/system, for the processors `allowed`. Those
    // that are offline there are left out, unless that would leave none; those that no node lists
    // belong to the first. Errors: std::invalid_argument if `allowed` is empty or has one twice.
    static topology read(const std::string& root, std::span<const unsigned> allowed);

    // What is left of it with some nodes or processors only. Errors: std::invalid_argument, which
    // names the culprit, if the list is empty or has one that is not in it.
    topology on_nodes(std::span<const unsigned> nodes) const;
    topology on_processors(std::span<const unsigned> ids) const;

    // In the order in which they are given workers.
    const std::vector<internal::processor>& processors() const noexcept { return processors_; }
    // The numbers of its nodes, ascending.
    std::vector<unsigned> nodes() const;

private:
    std::vector<internal::processor> processors_;
};

}  // namespace coppice
