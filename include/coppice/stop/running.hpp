// The stop requests that run on this thread, innermost first; how a source knows its own thread.
#pragma once
// A request_stop() that runs callbacks has a frame on its stack, linked into a chain of its thread.
// The chain answers, without a thread id in any source:
//   - does this callback run on my own thread? Then its destructor must not wait for it, and the
//     requester must not touch it again: the frame's callback is cleared.
//   - does this source die inside one of its callbacks? Then the requester must not touch it again:
//     the frame's source is cleared.
// Cleared fields also keep a new object at an old address from being taken for the old one.
// Everything here is one thread's own; nothing is shared.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <utility>

namespace coppice {

class running_request : immovable {
public:
    explicit running_request(const void* source, void* callback = nullptr) noexcept
        : source_(source), callback_(callback), outer_(innermost()) {
        innermost() = this;
    }
    ~running_request() { innermost() = outer_; }

    // The callback that is about to run.
    void set_callback(void* callback) noexcept { callback_ = callback; }
    // After a callback has returned: was it destroyed, was its source?
    bool callback_gone() const noexcept {
        return callback_ == nullptr && !planted("stop.touch_dead_callback");
    }
    bool source_gone() const noexcept {
        return source_ == nullptr && !planted("stop.touch_dead_source");
    }

    // For a callback's destructor: true if it runs on this thread; the requester forgets it then.
    [[gnu::noinline, gnu::cold]] static bool forget_callback(const void* callback) noexcept {
        for (running_request* r = innermost(); r != nullptr; r = r->outer_) {
            if (r->callback_ != callback || planted("stop.wait_for_oneself")) continue;
            r->callback_ = nullptr;
            return true;
        }
        return false;
    }
    // For a source's destructor, after a stop request: its request on this thread, or nullptr.
    [[gnu::noinline, gnu::cold]] static running_request* of(const void* source) noexcept {
        running_request* r = innermost();
        while (r != nullptr && r->source_ != source) r = r->outer_;
        return r;
    }
    // The source dies. Returns the callback that runs now and is still alive, else nullptr.
    void* forget_source() noexcept {
        source_ = nullptr;
        return std::exchange(callback_, nullptr);
    }

private:
    static running_request*& innermost() noexcept {
        return thread_slot<running_request, running_request*>();
    }

    const void* source_;
    void* callback_;
    running_request* outer_;
};

}  // namespace coppice
