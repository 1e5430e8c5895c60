// topology: the processors that a process may use, and their memory nodes; for pools.
#pragma once
// A pool deals its workers to the processors of a topology, in its order: the first hardware thread
// of every core, node by node, before the second one of any. A small number of workers therefore
// shares a node, and no two share a core while another core is free.
//
// The topology of the machine is read from sysfs. Where that is missing or inconsistent, there is
// one node with all processors that the process may use. Source:
// Documentation/ABI/stable/sysfs-devices-node and sysfs-devices-system-cpu of Linux.

#include <coppice/base/version.hpp>

#include <span>
#include <string>
#include <vector>

namespace coppice {

namespace internal {

// One hardware thread. The numbers are the system's.
struct processor {
    unsigned id = 0;       // as in sched_setaffinity(2)
    unsigned node = 0;     // the nearest memory node
    unsigned sibling = 0;  // 0: the first hardware thread of its core that the process may use
    friend bool operator==(const processor&, const processor&) = default;
};

// Returns the processors that this process may use, ascending; at least one. They are those of its
// affinity mask, which includes the cpusets of containers, but not quotas of time. Threads: any.
// Cost: a system call.
std::vector<unsigned> allowed_processors();

}  // namespace internal

// Processors in the order in which workers are given to them. A value type. Threads: one at a time.
class topology {
public:
    // Makes a topology of these processors, in the order in which they are given workers. Errors:
    // std::invalid_argument if there is no processor, or one occurs twice.
    explicit topology(std::vector<internal::processor> processors);

    // Returns the topology for this process on this machine. Cost: reads some files per node and
    // processor.
    static topology of_this_process();
    // Reads a topology from a folder laid out as /sys/devices/system, for the processors `allowed`.
    // Leaves out those that are offline there, unless none would be left. Assigns processors that
    // no node lists to the first node. Errors: std::invalid_argument if `allowed` is empty or has
    // one twice.
    static topology read(const std::string& root, std::span<const unsigned> allowed);

    // Return a copy with only the given nodes or processors. Errors: std::invalid_argument if
    // the list is empty, or has a number that is not in the topology, which the message names.
    topology on_nodes(std::span<const unsigned> nodes) const;
    topology on_processors(std::span<const unsigned> ids) const;

    // Returns the processors, in the order in which they are given workers.
    const std::vector<internal::processor>& processors() const noexcept { return processors_; }
    // Returns the numbers of the nodes, ascending.
    std::vector<unsigned> nodes() const;

private:
    std::vector<internal::processor> processors_;
};

}  // namespace coppice
