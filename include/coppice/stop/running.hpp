// The stop requests that run on this thread, innermost first; how a source knows its own thread.
#pragma once
// A request_stop() that runs callbacks has a frame on its stack, linked into a chain of its thread.
// The chain answers, without a thread id in any source:
//   - does this callback run on my own thread? Then its destructor must not wait for it, and the
//     requester must not touch it again: the frame's callback is cleared.
//   - does this source die inside one of its callbacks? Then the requester must not touch it again:
//     the frame's source is cleared.
// Cleared fields also keep a new object at an old address from being taken for the old one.
// All this is one thread's own. Shared is only the way back (way_back.hpp): a callback that removed
// itself holds the source no longer while its function goes on, so another thread may end the last
// registration meanwhile, and tells the requester here that it must not come back.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>
#include <utility>

namespace coppice {

class exception_sink;     // subscription.hpp
class further_callbacks;  // further.hpp
class linked_states;      // state.hpp
struct stop_node;         // list.hpp

class running_request : immovable {
public:
    explicit running_request(const void* source, void* callback = nullptr,
                             exception_sink* exceptions = nullptr,
                             further_callbacks* further = nullptr) noexcept
        : source_(source),
          callback_(callback),
          exceptions_(exceptions),
          further_(further),
          outer_(innermost()) {
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

    // For a callback's destructor: the request that runs it on this thread, and forgets it now; or
    // nullptr.
    [[gnu::noinline]] static running_request* forget_callback(const void* callback) noexcept {
        for (running_request* r = innermost(); r != nullptr; r = r->outer_) {
            if (r->callback_ != callback || planted("stop.wait_for_oneself")) continue;
            r->callback_ = nullptr;
            return r;
        }
        return nullptr;
    }
    // True while the callback runs on this thread.
    [[gnu::noinline, gnu::cold]] static bool runs_here(const void* callback) noexcept {
        const running_request* r = innermost();
        while (r != nullptr && r->callback_ != callback) r = r->outer_;
        return r != nullptr;
    }
    // Where the callback that runs innermost on this thread leaves what it throws; or nullptr.
    static exception_sink* exceptions() noexcept { return innermost()->exceptions_; }
    // For a source's destructor, after a stop request: its request on this thread, or nullptr.
    [[gnu::noinline, gnu::cold]] static running_request* of(const void* source) noexcept {
        running_request* r = innermost();
        while (r != nullptr && r->source_ != source) r = r->outer_;
        return r;
    }
    // The requester touches the source no more: it dies, or nothing is left to run. Returns the
    // callback that runs now and is still alive, else nullptr.
    void* forget_source() noexcept {
        source_ = nullptr;
        return std::exchange(callback_, nullptr);
    }

    // The way back of a requester whose callback has removed itself; see way_back.hpp.
    // By the requester's thread, before it hands the source over to another registration.
    void go_away() noexcept { way_.store(away, relaxed); }  // relaxed: stop.watch publishes it
    // By the requester, when the callback has returned. False: the source may be gone.
    [[nodiscard]] bool come_back() noexcept {
        // edge stop.way (acq_rel): what the last remover did, or that the requester comes
        return way_.exchange(back, acq_rel) != cut || planted("stop.come_back_anyway");
    }
    // By the remover of the last callback. False: the requester has come back, and says farewell.
    [[nodiscard]] bool cut_off() noexcept {
        // edge stop.way (acq_rel): the requester stays away, or what it did before it came back
        return way_.exchange(cut, acq_rel) != back || planted("stop.no_farewell");
    }
    further_callbacks* further() const noexcept { return further_; }

    // Where the request that runs here for `source` leaves the linked states that it has stopped;
    // nullptr if it does not, or if it is not the one that runs innermost.
    static linked_states* linked_of(const void* source) noexcept {
        const running_request* const r = innermost();
        return r != nullptr && r->source_ == source ? r->linked_ : nullptr;
    }
    void set_linked(linked_states* linked) noexcept { linked_ = linked; }

    // The callbacks of a list that wait for the requester to come back. Guarded by the list's lock.
    plain<stop_node*>& rest() noexcept { return rest_; }

private:
    static constexpr std::uint32_t away = 0;
    static constexpr std::uint32_t back = 1;
    static constexpr std::uint32_t cut = 2;

    static running_request*& innermost() noexcept {
        return thread_slot<running_request, running_request*>();
    }

    const void* source_;
    void* callback_;
    exception_sink* exceptions_;
    further_callbacks* further_;  // those of a tolerant source, else nullptr
    running_request* outer_;
    linked_states* linked_ = nullptr;
    plain<stop_node*> rest_{nullptr};
    // away: a callback runs. back: the requester goes to the source. cut: it must not. Written by
    // the requester, and by the remover of the last callback; the first of `back` and `cut` holds.
    atomic<std::uint32_t> way_{away};
};

}  // namespace coppice
