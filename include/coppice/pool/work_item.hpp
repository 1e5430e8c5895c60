// work_item: what pools queue, embedded in whoever waits for it.
#pragma once

#include <coppice/base/lifetime.hpp>

namespace coppice::internal {

// One piece of work. run() is called once for each time it was submitted, on a worker; the item may
// be gone when it returns, and may be submitted again from inside it.
// Lifetime: alive from submission until run() is called.
struct [[gnu::visibility("default")]] work_item : immovable {
    explicit work_item(void (*function)(work_item*) noexcept) noexcept : run(function) {}
    void (*run)(work_item*) noexcept;
    work_item* next = nullptr;  // owned by the queue that holds the item
};

}  // namespace coppice::internal
