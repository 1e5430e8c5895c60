// work_item: the item that pools queue, embedded in the object that waits for it.
#pragma once

#include <coppice/base/lifetime.hpp>

namespace coppice::internal {

// One piece of work. A worker calls run() once for each time the item was submitted. The item may
// be gone when run() returns, and may be submitted again inside it. Lifetime: alive from its
// submission until run() is called.
struct [[gnu::visibility("default")]] work_item : immovable {
    explicit work_item(void (*function)(work_item*) noexcept) noexcept : run(function) {}
    void (*run)(work_item*) noexcept;
    work_item* next = nullptr;  // owned by the queue that holds the item
};

}  // namespace coppice::internal
