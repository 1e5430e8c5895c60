// running_request: the stop requests that run on this thread, innermost first.
#pragma once
// A request_stop() that runs callbacks has a frame on its stack, linked into a chain of its thread.
// The chain answers two questions without a thread id in any source:
//   - Does this callback run on this thread? Then its destructor must not wait for it, and the
//     requester must not touch it again: the frame's callback is cleared.
//   - Does this source die inside one of its callbacks? Then the requester must not touch it again:
//     the frame's source is cleared.
// Clearing also prevents a new object at an old address from being mistaken for the old one.
//
// Only the way back (way_back.hpp) is shared with other threads. A callback that has removed itself
// no longer keeps its source alive, although its function still runs. Another thread may then end
// the last registration; it tells the requester, through this frame, not to return to the source.

#include <coppice/base/internal/asymmetric.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/internal/sleepers.hpp>

#include <cstdint>
#include <new>
#include <utility>

namespace coppice::internal {

class exception_sink;     // subscribed_function.hpp
class further_callbacks;  // further.hpp
class linked_states;      // state.hpp
struct stop_node;         // list.hpp

// What a request of a shared source passes on. The requests that it makes of linked states use the
// same sink, which lies on the stack of the request_stop() call and outlives them.
struct shared_request {
    exception_sink* exceptions;  // nullptr: a subscribed function that throws ends the process
    linked_states* linked;       // collects linked states that were stopped; nullptr: no collection
};

class [[gnu::visibility("default")]] running_request : immovable {
public:
    explicit running_request(const void* source, void* callback = nullptr,
                             void* context = nullptr) noexcept
        : source_(source), callback_(callback), context_(context), outer_(innermost()) {
        innermost() = this;
    }
    ~running_request() { innermost() = outer_; }

    // Called before a callback runs.
    void set_callback(void* callback) noexcept { callback_ = callback; }
    // Called after a callback has returned. Return true if the callback, or its source, was
    // destroyed meanwhile.
    bool callback_gone() const noexcept {
        return callback_ == nullptr && !planted("stop.touch_dead_callback");
    }
    bool source_gone() const noexcept {
        return source_ == nullptr && !planted("stop.touch_dead_source");
    }

    // Called by a callback's destructor. Returns the request that runs the callback on this thread,
    // after clearing its callback; nullptr if there is none.
    static running_request* forget_callback(const void* callback) noexcept {
        running_request* r = innermost();
        if (planted("stop.wait_for_oneself")) return nullptr;
        while (r != nullptr && r->callback_ != callback) r = r->outer_;
        if (r != nullptr) r->callback_ = nullptr;
        return r;
    }
    // Returns true while the callback runs on this thread.
    [[gnu::noinline, gnu::cold]] static bool runs_here(const void* callback) noexcept {
        const running_request* r = innermost();
        while (r != nullptr && r->callback_ != callback) r = r->outer_;
        return r != nullptr;
    }
    // Returns where the innermost running callback of this thread leaves its exceptions; or
    // nullptr. Call it inside a request of a shared source.
    static exception_sink* exceptions() noexcept { return innermost()->shared().exceptions; }
    // Called by the destructor of a source after a stop request. Returns the request for that
    // source on this thread, or nullptr.
    [[gnu::noinline, gnu::cold]] static running_request* of(const void* source) noexcept {
        running_request* r = innermost();
        while (r != nullptr && r->source_ != source) r = r->outer_;
        return r;
    }
    // Detaches the requester from the source, which is about to be destroyed or has no callbacks
    // left. Returns the callback that runs now if it still exists, otherwise nullptr.
    void* forget_source() noexcept {
        source_ = nullptr;
        return std::exchange(callback_, nullptr);
    }

    // The way back of a requester whose callback has removed itself; see way_back.hpp. Called by
    // the requester's thread before it hands the source over to another registration.
    void go_away() noexcept {
#if defined(COPPICE_MODEL)
        way_.is_back.store(0, relaxed);  // relaxed, both: stop.watch or stop.list publishes them
        way_.cut.store(open, relaxed);
#else
        ::new (&way_) way;
#endif
    }
    // Called by the requester when the callback has returned. Returns false if the source may be
    // gone. Blocks: while a remover has asked and not decided yet. Cost: no locked instruction.
    [[nodiscard]] bool come_back() noexcept {
        way_.is_back.store(1, relaxed);  // relaxed: ordered by the fence below
        light_fence();  // edge stop.way (light): back, before it is asked whether cut
        // edge stop.way (acquire): what the last remover did
        const std::uint32_t seen = way_.cut.load(acquire);
        return seen == open || decided(seen) == meet || planted("stop.come_back_anyway");
    }
    // Called by the remover of the last callback. Returns false if the requester is coming back;
    // the remover must then wait for its farewell. Cost: a membarrier, unless the requester is this
    // thread.
    [[nodiscard]] bool cut_off() noexcept {
        bool back = false;
        if (!is_here()) {
            way_.cut.store(asked, relaxed);  // relaxed: ordered by the fence below
            heavy_fence();  // edge stop.way (heavy): cut, before it is asked whether back
            back = way_.is_back.load(relaxed) != 0 && !planted("stop.no_farewell");
        }
        // edge stop.way (release): what the last remover did
        way_.cut.store(back ? meet : gone, release);
        callback_sleepers().wake(way_.cut);  // if the requester leaves, *this may be gone
        return !back;
    }
    // In a request of a source with slots: returns the further callbacks of a tolerant source, else
    // nullptr.
    further_callbacks* further() const noexcept {
        return static_cast<further_callbacks*>(context_);
    }
    // Returns what the innermost request of this thread passes on to linked states, if it is a
    // request for `source`, the state of a shared source. Otherwise returns an empty value.
    static shared_request brought_for(const void* source) noexcept {
        const running_request* const r = innermost();
        return r != nullptr && r->source_ == source ? r->shared() : shared_request{};
    }

    // The callbacks of a list that wait for the requester to come back. Guarded by the list's lock.
    plain<stop_node*>& rest() noexcept { return way_.rest; }

private:
    // Values of way::cut. open: no remover has asked. asked: one has asked, and not decided yet.
    // meet: the requester comes back to the source, and meets the remover there. gone: it does not.
    static constexpr std::uint32_t open = 0;
    static constexpr std::uint32_t asked = 1;
    static constexpr std::uint32_t meet = 2;
    static constexpr std::uint32_t gone = 3;

    [[gnu::noinline, gnu::cold]] std::uint32_t decided(std::uint32_t seen) noexcept {
        if (seen == asked && !planted("stop.do_not_await_decision")) {
            // edge stop.way (acquire): what the last remover did; the load is in wait_while
            seen = callback_sleepers().wait_while(way_.cut, asked);
        }
        return seen;
    }
    const shared_request& shared() const noexcept {
        return *static_cast<const shared_request*>(context_);
    }
    // Returns true if the request runs on this thread.
    bool is_here() const noexcept {
        const running_request* r = innermost();
        while (r != nullptr && r != this) r = r->outer_;
        return r != nullptr;
    }

    static running_request*& innermost() noexcept {
        return thread_slot<running_request, running_request*>();
    }

    const void* source_;
    void* callback_;
    void* context_;  // what further() or shared() returns
    running_request* outer_;

    struct way {
        plain<stop_node*> rest{nullptr};
        // 0 while the requester is away, 1 when it has come back. Written by the requester.
        atomic<std::uint32_t> is_back{0};
        // See above. Written by the requester before it goes away, and by the last remover.
        atomic<std::uint32_t> cut{open};
    };
#if defined(COPPICE_MODEL)
    way way_;
#else
    union {
        way way_;  // constructed by go_away(), so that other requests do not pay for it
    };
#endif
};

}  // namespace coppice::internal
