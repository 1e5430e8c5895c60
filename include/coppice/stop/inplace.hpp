// inplace_stop_source: any number of callbacks, no allocation, one owner; for scopes and tasks.
#pragma once
// The source is a stop_list (protocol in list.hpp): a lock word and the head of an intrusive list,
// whose nodes are the callbacks themselves. request_stop() takes the callbacks one by one and runs
// each without the lock, so callbacks may be removed meanwhile, also by each other. A callback may
// destroy itself, and the source. Once the last callback is removed, a request that has run
// callbacks does not touch the source again (list.hpp).
//
// Source: [stopsource.inplace], [stoptoken.inplace], [stopcallback.inplace].

#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/internal/list.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace coppice {

class inplace_stop_source;
template <class CallbackFn>
class inplace_stop_callback;

// A reference to an in-place source, or to no source. Threads: as an ordinary value.
class inplace_stop_token {
public:
    template <class CallbackFn>
    using callback_type = inplace_stop_callback<CallbackFn>;

    inplace_stop_token() = default;
    bool operator==(const inplace_stop_token&) const = default;

    // Returns true once a stop was requested. Threads: any, concurrently. Lifetime: the source must
    // still exist.
    bool stop_requested() const noexcept;
    // Returns true if the token refers to a source.
    bool stop_possible() const noexcept { return source_ != nullptr; }
    void swap(inplace_stop_token& other) noexcept { std::swap(source_, other.source_); }

private:
    friend inplace_stop_source;
    template <class CallbackFn>
    friend class inplace_stop_callback;
    explicit constexpr inplace_stop_token(const inplace_stop_source* source) noexcept
        : source_(source) {}

    const inplace_stop_source* source_ = nullptr;
};

namespace internal {

// The part of a callback that does not depend on the type of its function.
struct inplace_stop_node : stop_node {
    inplace_stop_node(execute_function* run, const inplace_stop_source* from) noexcept
        : stop_node(run), source(from) {}
    const inplace_stop_source* source;  // nullptr: not registered
};

}  // namespace internal

// Owns the state of one possible stop.
// Threads: any, all members concurrently.
// Lifetime: destroy it when no callback is registered, or inside one of its callbacks when no other
// is registered; a request that has run a callback may not have returned yet. Cost: 16 bytes.
class inplace_stop_source : immovable {
public:
    inplace_stop_source() = default;
    ~inplace_stop_source() {
        COPPICE_CHECK(list_.empty(),
                      "a stop source was destroyed while a callback was registered: destroy the "
                      "callback first");
        if (list_.stop_requested()) [[unlikely]]
            die_after_request();
    }

    // Returns a token of this source. Lifetime: the source must outlive every use of its tokens.
    constexpr inplace_stop_token get_token() const noexcept { return inplace_stop_token(this); }
    static constexpr bool stop_possible() noexcept { return true; }
    // Returns true once a stop was requested.
    bool stop_requested() const noexcept { return list_.stop_requested(); }

    // Requests the stop and runs the registered callbacks on this thread, newest first. Returns
    // true for exactly one of all calls. Blocks: while another thread holds the lock for a few
    // instructions, and for what the callbacks do. Cost: one lock, and one per callback.
    bool request_stop() noexcept {
        if (list_.lock_unless(internal::stop_list::stopped) != 0) return false;
        internal::stop_node* const first = list_.pop();
        if (first != nullptr) {
            run_from(first);  // *this may be destroyed by now
        } else {
            list_.unlock(internal::stop_list::stopped);
        }
        return true;
    }

private:
    template <class CallbackFn>
    friend class inplace_stop_callback;

    // Called with the lock, after `node` was taken. Runs it and the rest of the list.
    void run_from(internal::stop_node* node) noexcept;
    // Called when the previous callback has removed itself. Returns the next callback, with the
    // lock; or nullptr, and then the caller must touch nothing.
    [[gnu::noinline]] inline internal::stop_node* come_back(
        internal::running_request& request) noexcept;
    // Registers a callback. Returns false if a stop was requested and the caller must run the
    // callback itself.
    [[nodiscard]] bool enlist(internal::stop_node& node) const noexcept;
    // Deregisters a callback, or waits until it has returned.
    void withdraw(internal::stop_node& node) const noexcept;
    // Called with the lock: the requester has taken the node, or the node was removed while the
    // requester is away.
    [[gnu::noinline]] inline void withdraw_late(internal::stop_node& node, bool removed,
                                                internal::stop_list::flags bits) const noexcept;
    // If the source is destroyed inside one of its own callbacks, neither request_stop() nor a
    // later destructor of that callback may touch the source again.
    [[gnu::noinline, gnu::cold]] inline void die_after_request() noexcept;

    mutable internal::stop_list list_;
};

inline bool inplace_stop_token::stop_requested() const noexcept {
    return source_ != nullptr && source_->stop_requested();
}

// Runs a function when a stop is requested, on the requester's thread; or in the constructor, if
// the stop was requested before.
// Threads: constructed and destroyed by any thread, concurrently with everything on the source.
// Blocks: the destructor, while the function runs on another thread; both, while another thread
// holds the lock for a few instructions. Cost: no allocation; 40 bytes and the function.
template <class CallbackFn>
class inplace_stop_callback : internal::inplace_stop_node {
    static_assert(std::invocable<CallbackFn> && std::destructible<CallbackFn>);

public:
    using callback_type = CallbackFn;

    template <class Initializer>
        requires std::constructible_from<CallbackFn, Initializer>
    explicit inplace_stop_callback(inplace_stop_token token, Initializer&& init) noexcept(
        std::is_nothrow_constructible_v<CallbackFn, Initializer>)
        : internal::inplace_stop_node(&run, token.source_),
          callback_(std::forward<Initializer>(init)) {
        if (source == nullptr) return;
        if (token.source_->enlist(*this)) [[likely]]
            return;
        source = nullptr;
        run(this);
    }
    ~inplace_stop_callback() {
        if (source != nullptr) source->withdraw(*this);
    }

private:
    static void run(internal::stop_node* self) noexcept {
        std::forward<CallbackFn>(static_cast<inplace_stop_callback*>(self)->callback_)();
    }

    [[no_unique_address]] CallbackFn callback_;
};

template <class CallbackFn>
inplace_stop_callback(inplace_stop_token, CallbackFn) -> inplace_stop_callback<CallbackFn>;

// ---- The source, by the protocol in internal/list.hpp ------------------------------------------

inline void inplace_stop_source::run_from(internal::stop_node* node) noexcept {
    internal::running_request request(this);
    for (;;) {
        // No callback is added after a stop, so the last callback stays the last.
        const bool last = list_.empty();
        list_.unlock(internal::stop_list::stopped);
        request.set_callback(node);
        node->execute(node);
        if (request.callback_gone()) {
            if (request.source_gone()) return;  // the source is gone: touch nothing
            node = come_back(request);
            if (node == nullptr) return;  // as above
            continue;
        }
        if (last || internal::planted("stop.finish_before_claim")) internal::finish(*node);
        if (last) return;  // the source may be destroyed by now
        // Takes the next callback before it marks this one as done, so that one of them keeps
        // the source.
        list_.lock(internal::stop_list::stopped);
        internal::stop_node* const next = list_.pop();
        if (next == nullptr) break;
        if (!internal::planted("stop.finish_before_claim")) internal::finish(*node);
        node = next;
    }
    list_.unlock(internal::stop_list::stopped);
    internal::finish(*node);
}
internal::stop_node* inplace_stop_source::come_back(internal::running_request& request) noexcept {
    if (!request.come_back()) return nullptr;
    list_.lock(internal::stop_list::stopped | internal::stop_list::away);
    list_.take_over(request);
    internal::stop_node* const next = list_.pop();
    if (next == nullptr) list_.unlock(internal::stop_list::stopped);
    return next;
}

inline bool inplace_stop_source::enlist(internal::stop_node& node) const noexcept {
    if (list_.lock_unless(internal::stop_list::stopped) != 0) [[unlikely]]
        return false;
    list_.push(node);
    list_.unlock(0);
    return true;
}

inline void inplace_stop_source::withdraw(internal::stop_node& node) const noexcept {
    // edge stop.done (acquire): the callback has returned
    if (node.phase.load(internal::acquire) == internal::stop_node::done) return;
    const internal::stop_list::flags bits = list_.lock();
    const bool removed = list_.unlink(node);
    if (removed && (bits & internal::stop_list::away) == 0) [[likely]] {
        list_.unlock(bits);
    } else {
        withdraw_late(node, removed, bits);
    }
}
void inplace_stop_source::withdraw_late(internal::stop_node& node, bool removed,
                                        internal::stop_list::flags bits) const noexcept {
    if (removed) {
        internal::running_request* const request = list_.abandoned();
        const bool cut = request != nullptr && request->cut_off();
        if (cut) list_.clear();
        list_.unlock(cut ? bits & ~internal::stop_list::away : bits);
        if (request != nullptr && !cut) list_.wait_for_requester();
        return;
    }
    internal::running_request* const request = internal::running_request::forget_callback(&node);
    if (request == nullptr) {
        list_.unlock(bits);
        internal::wait_done(node);
    } else if (!list_.empty()) {
        list_.hand_over(*request);
        list_.unlock(bits | internal::stop_list::away);
    } else {
        if (!internal::planted("stop.return_to_nothing")) request->forget_source();
        list_.unlock(bits);
    }
}

void inplace_stop_source::die_after_request() noexcept {
    internal::running_request* const request = internal::running_request::of(this);
    if (request == nullptr) return;
    void* const callback = request->forget_source();
    if (callback == nullptr) return;
    static_cast<internal::inplace_stop_node*>(static_cast<internal::stop_node*>(callback))->source =
        nullptr;
}

}  // namespace coppice
