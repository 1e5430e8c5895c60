// suspension: what an await_suspend returns that may find that it need not have suspended.
#pragma once
// With clang it transfers the coroutine to itself. With bool, clang turns a coroutine that awaits
// in a loop into a loop that keeps addresses in registers, and every resumption then saves and
// restores them. g++ 12 does not always make a tail call of a transfer, so there it is a bool. Each
// way is a type of its own and a template argument of the function that returns it, so that the two
// compilers give their functions different names.

#include <coppice/base/internal/namespaces.hpp>

#include <coroutine>

namespace coppice::execution::internal {

struct suspension_by_transfer {
    static std::coroutine_handle<> stay() noexcept { return std::noop_coroutine(); }
    static std::coroutine_handle<> go_on(std::coroutine_handle<> suspended) noexcept {
        return suspended;
    }
};
struct suspension_by_answer {
    static bool stay() noexcept { return true; }
    static bool go_on(std::coroutine_handle<>) noexcept { return false; }
};
#if defined(__clang__)
using suspension = suspension_by_transfer;
#else
using suspension = suspension_by_answer;
#endif

}  // namespace coppice::execution::internal
