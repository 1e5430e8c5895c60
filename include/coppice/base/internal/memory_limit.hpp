// memory_limit: how much memory this process may use; for budgets that are a share of it.
#pragma once

#include <coppice/base/version.hpp>

#include <cstdint>
#include <string>

namespace coppice::internal {

// Returns the smallest memory limit in bytes: the machine's memory, and the limits of the process's
// cgroup and its ancestors, of version 2 or 1. Returns UINT64_MAX if nothing is known. `root` is
// put before every path that is read, for tests. Threads: any. Errors: std::bad_alloc; a file that
// cannot be read counts as no limit. Cost: reads files.
std::uint64_t memory_limit(const std::string& root);

// Returns that limit for this machine, or RLIMIT_AS, the limit of the address space, if it is
// smaller.
std::uint64_t memory_limit();

}  // namespace coppice::internal
