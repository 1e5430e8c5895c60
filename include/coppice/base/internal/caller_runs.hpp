// caller_runs: runs a queueable item on the thread that submits it; for pools that have been ended.
#pragma once
// A running item may submit the next one, and so on forever; that must not exhaust the stack. An
// item may also block until one that it has submitted is done, in a way that this code cannot see.
// So items run inside each other while the stack has room: half of what is left below the outermost
// item, and at most one MiB. Further items are deferred until the innermost one has returned, or
// until the thread is about to sleep in this library (put_off.hpp). Only an item that had no room,
// and for which its thread waits by other means, is never run.
//
// A thread that runs items one after the other has a place for those that are deferred until the
// current item has returned.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/no_fork_context.hpp>
#include <coppice/base/internal/put_off.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>

#include <pthread.h>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace coppice::internal {

// The part of this thread's stack that nested items of any kind may use.
class [[gnu::visibility("default")]] caller_stack : immovable {
public:
    // Measures the room from here if this is the outermost item.
    caller_stack() noexcept : outer_(lowest()) {
        if (outer_ == 0) lowest() = here() - room_below(here());
    }
    ~caller_stack() { lowest() = outer_; }

    // Returns true if another item may run at this stack depth.
    static bool has_room() noexcept { return here() >= lowest(); }

private:
    static constexpr std::size_t room_max = std::size_t{1} << 20;
    // The room for an item that does not run on its thread's own stack.
    static constexpr std::size_t room_unknown = std::size_t{1} << 14;

    static std::uintptr_t here() noexcept {
        return reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    }
    static std::uintptr_t& lowest() noexcept {  // the lowest address for an item; 0: none runs
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
    // Takes microseconds on the first thread of a process, for which libc reads a file.
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

// Item must have void (*run)(Item*) noexcept, and a `next` for a queue.
template <class Item>
class [[gnu::visibility("default")]] caller_runs : put_off_work {
public:
    // Runs the item, or defers it if the stack has no room. Threads: any. Lifetime: the item, and
    // its pool, may be gone when this returns.
    static void run(Item& item) noexcept {
        if (innermost_of_kind() != nullptr && !caller_stack::has_room()) {
            (void)defer(item);
            return;
        }
        const caller_stack used;
        caller_runs mine;
        call(item);
        mine.run_deferred();
    }
    // Defers the item: this thread runs it when it is back at its innermost place of this kind, or
    // before it sleeps in this library. Returns false, and does nothing, if it has no such place.
    [[nodiscard]] static bool defer(Item& item) noexcept {
        caller_runs* const place = innermost_of_kind();
        if (place != nullptr) place->later_.push_back(&item);
        return place != nullptr;
    }

    // A place on this thread's stack. Lifetime: call run_deferred() before it ends.
    caller_runs() noexcept
        : put_off_work(&run_next), outer_(std::exchange(innermost_of_kind(), this)) {}
    ~caller_runs() { innermost_of_kind() = outer_; }
    void run_deferred() noexcept {
        while (run_next(*this)) {
        }
    }

private:
    static caller_runs*& innermost_of_kind() noexcept {
        return thread_slot<caller_runs, caller_runs*>();
    }
    static bool run_next(put_off_work& place) noexcept {
        Item* const next = static_cast<caller_runs&>(place).later_.pop_front();
        if (next != nullptr) call(*next);
        return next != nullptr;
    }
    static void call(Item& item) noexcept {
        const no_fork_context none;  // its forks inherit nothing from the submitter
        item.run(&item);
    }

    caller_runs* const outer_;
    intrusive_queue<Item, &Item::next> later_;  // items that were deferred
};

}  // namespace coppice::internal
