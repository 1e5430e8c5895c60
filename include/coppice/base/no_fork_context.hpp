// no_fork_context: hides the caller's fork_context; for loops that run the work of others.
#pragma once
// A thread inside of fork_join(token, ...) may run a loop, a group of contracts or a function that
// has nothing to do with that call. What runs there inherits no token of it: its parallel loops
// would end early for a stop that is not theirs. fork_deque.hpp has the context itself.
// Source: ours.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>

namespace coppice::internal {

class [[gnu::visibility("default")]] fork_context;

// While it lives, what its thread calls and forks finds no context. Nests with fork_contexts, like
// calls. Cost: a load and a branch if none is in force; else as a fork_context.
class no_fork_context : immovable {
public:
#if defined(COPPICE_MODEL)
    no_fork_context() noexcept {}  // models link no library, and fork under no token
    ~no_fork_context() {}
#else
    no_fork_context() noexcept
        : hides_(thread_slot<fork_context, const fork_context*>() != nullptr) {
        if (hides_) [[unlikely]]
            begin();
    }
    ~no_fork_context() {
        if (hides_) [[unlikely]]
            end();
    }

private:
    [[gnu::cold]] void begin() noexcept;
    [[gnu::cold]] void end() noexcept;

    const bool hides_;
    alignas(void*) std::byte storage_[3 * sizeof(void*)];  // the fork_context that hides, if any
#endif
};

}  // namespace coppice::internal
