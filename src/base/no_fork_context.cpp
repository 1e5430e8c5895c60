// The slow path of base/internal/no_fork_context.hpp, taken if a context is in force.
#include <coppice/base/internal/no_fork_context.hpp>

#include <coppice/base/internal/fork_deque.hpp>

#include <new>

namespace coppice::internal {

void no_fork_context::begin() noexcept {
    static_assert(sizeof(fork_context) <= sizeof(storage_));
    static_assert(alignof(fork_context) <= alignof(void*));
    ::new (static_cast<void*>(storage_)) fork_context(nullptr);
}

void no_fork_context::end() noexcept {
    std::launder(reinterpret_cast<fork_context*>(storage_))->~fork_context();
}

}  // namespace coppice::internal
