// Registers with membarrier(2) at start-up and pays for the light fences.
#include <coppice/base/internal/asymmetric.hpp>

#include <coppice/base/internal/check.hpp>

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace coppice::internal {

constinit atomic<bool> light_fence_is_free{false};

namespace {

bool membarrier(int command) noexcept {
    return ::syscall(SYS_membarrier, command, 0, 0) == 0;
}

// Decides once: from here on heavy fences are system calls, or light fences are not free.
bool asymmetric() noexcept {
    static const bool decided = [] {
        // Try the command too, because a filter may allow the registration only.
        const bool works = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
                           membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        light_fence_is_free.store(works, relaxed);
        return works;
    }();
    return decided;
}

[[maybe_unused]] const bool decided_at_start = asymmetric();

}  // namespace

bool light_fences_are_free() noexcept {
    return asymmetric();
}

void heavy_fence() noexcept {
    if (asymmetric()) {
        // Light fences already rely on this call. Without it, wake-ups and stops would be lost.
        COPPICE_CHECK(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED),
                      "membarrier(2) was forbidden after the program had started");
    } else {
        fence(seq_cst);
    }
}

}  // namespace coppice::internal
