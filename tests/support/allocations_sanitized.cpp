// The same counts under a sanitizer, whose runtime owns operator new: its hook sees each call.
#include "allocations.hpp"

#include <coppice/base/internal/atomic.hpp>

extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void*,
                                                                           std::size_t),
                                                         void (*freed)(const volatile void*));

namespace {

// Written by every allocating thread. Only the sums matter, so nothing depends on their order.
constinit coppice::internal::atomic<std::size_t> count{0};
constinit coppice::internal::atomic<std::size_t> returned{0};

[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, std::size_t) { count.fetch_add(1, coppice::internal::relaxed); },
    [](const volatile void* memory) {
        if (memory != nullptr) returned.fetch_add(1, coppice::internal::relaxed);
    });

}  // namespace

std::size_t coppice::test::allocations() noexcept {
    return count.load(coppice::internal::relaxed);
}
std::size_t coppice::test::live_allocations() noexcept {
    return count.load(coppice::internal::relaxed) - returned.load(coppice::internal::relaxed);
}

bool coppice::test::fail_allocation(std::size_t) noexcept {
    return false;
}
bool coppice::test::allocation_has_failed() noexcept {
    return false;
}
