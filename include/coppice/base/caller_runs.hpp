// caller_runs: runs a queueable item on the thread that submits it; for what has been told to end.
#pragma once
// An item that runs may submit the next one, and so on for ever: that must not eat the stack. An
// item may also block until one that it has submitted is done, in a way that nobody here can see.
// So items run inside each other while there is room on the stack: half of what the outermost one
// finds below it, and a MiB at most. Then they are put off until the innermost has returned, or
// until the thread is about to sleep in this library (put_off.hpp). Only an item that has no room,
// and that is waited for by other means, is never run.

#include <coppice/base/atomic.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/base/no_fork_context.hpp>
#include <coppice/base/put_off.hpp>

#include <pthread.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace coppice::internal {

// The part of this thread's stack that items may use which run inside each other, of whatever kind.
class [[gnu::visibility("default")]] caller_stack : immovable {
public:
    // At the outermost item, the room is measured from here.
    caller_stack() noexcept : outer_(lowest()) {
        if (outer_ == 0) lowest() = here() - room_below(here());
    }
    ~caller_stack() { lowest() = outer_; }

    // Whether an item may run at this place inside of another one.
    static bool has_room() noexcept { return here() >= lowest(); }

private:
    static constexpr std::size_t room_max = std::size_t{1} << 20;
    static constexpr std::size_t room_unknown = std::size_t{1} << 14;  // not on the thread's stack

    static std::uintptr_t here() noexcept {
        return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    }
    static std::uintptr_t& lowest() noexcept {  // address for an item; 0: none runs
        return thread_slot<caller_stack, std::uintptr_t>();
    }

    struct bounds {
        std::uintptr_t begin = 0;
        std::uintptr_t end = 0;
    };
    static std::size_t room_below(std::uintptr_t place) noexcept {
        bounds& known = thread_slot<bounds, bounds>();
        if (known.end == 0) known = bounds_of_thread();
        if (place < known.begin || place >= known.end) return room_unknown;
        return std::min<std::size_t>((place - known.begin) / 2, room_max);
    }
    // Costs microseconds on the first thread of a process, for which the system reads a file.
    [[gnu::noinline, gnu::cold]] static bounds bounds_of_thread() noexcept {
        constexpr bounds unknown{UINTPTR_MAX, UINTPTR_MAX};
        pthread_attr_t attributes;
        if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return unknown;
        void* begin = nullptr;
        std::size_t size = 0;
        const int failed = ::pthread_attr_getstack(&attributes, &begin, &size);
        ::pthread_attr_destroy(&attributes);
        if (failed != 0) return unknown;
        const auto address = reinterpret_cast<std::uintptr_t>(begin);
        return {address, address + size};
    }

    const std::uintptr_t outer_;
};

// Item: has void (*run)(Item*) noexcept, and a `next` for a queue.
template <class Item>
class [[gnu::visibility("default")]] caller_runs : put_off_work {
public:
    // Runs the item, or puts it off.
    // Threads: any. Lifetime: the item may be gone when this returns, and so may its pool.
    static void run(Item& item) noexcept {
        caller_runs*& innermost_of_kind = thread_slot<caller_runs, caller_runs*>();
        caller_runs* const outer = innermost_of_kind;
        if (outer != nullptr && !caller_stack::has_room()) {
            outer->later_.push_back(&item);
            return;
        }
        const caller_stack used;
        caller_runs mine;
        innermost_of_kind = &mine;
        call(item);
        while (run_next(mine)) {
        }
        innermost_of_kind = outer;
    }

private:
    caller_runs() noexcept : put_off_work(&run_next) {}

    static bool run_next(put_off_work& place) noexcept {
        Item* const next = static_cast<caller_runs&>(place).later_.pop_front();
        if (next != nullptr) call(*next);
        return next != nullptr;
    }
    static void call(Item& item) noexcept {
        const no_fork_context none;  // what it forks inherits nothing from who submits it
        item.run(&item);
    }

    intrusive_queue<Item, &Item::next> later_;  // items for which there was no room
};

}  // namespace coppice::internal
