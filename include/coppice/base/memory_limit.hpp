// memory_limit: how much memory this process may use; for budgets that are a part of it.
#pragma once

#include <coppice/base/version.hpp>

#include <cstdint>
#include <string>

namespace coppice::internal {

// The least of what limits memory, in bytes: the machine's memory, and the limits of the process's
// cgroup and of those above it, of version 2 or 1. `root` stands before every path that is read,
// for tests. UINT64_MAX if nothing is known.
// Threads: any. Errors: std::bad_alloc; a file that cannot be read says nothing. Cost: reads files.
std::uint64_t memory_limit(const std::string& root);

// The same of this machine, and the limit of this process's address space (RLIMIT_AS).
std::uint64_t memory_limit();

}  // namespace coppice::internal
