// no_fork_context: hides the caller's fork_context; for loops that run unrelated work.
#pragma once
// A thread inside fork_join(token, ...) may run a loop, a contract group, or a function that has
// nothing to do with that call. Work that runs there must not inherit the call's token: its
// parallel loops would end early for an unrelated stop. fork_deque.hpp has the context itself.
// Source: ours.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstddef>

namespace coppice::internal {

class [[gnu::visibility("default")]] fork_context;

// While it exists, calls and forks of its thread find no context. Nests with fork_contexts, like
// calls. Cost: a load and a branch if no context is in force; otherwise that of a fork_context.
class no_fork_context : immovable {
public:
#if defined(COPPICE_MODEL)
    no_fork_context() noexcept {}  // models link no library, and fork without a token
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
    // The fork_context that hides the others, if any.
    alignas(void*) std::byte storage_[3 * sizeof(void*)];
#endif
};

}  // namespace coppice::internal
