// single_inplace_stop_source: one word, one callback; for an operation with one child at a time.
#pragma once
// The source is a callback_slot that is its own flag (states and proof in slot.hpp). Registration
// and deregistration are one compare-exchange each. The tokens refer to the source and must not
// outlive it. A callback may destroy itself, and the source.
//
// Source: P3409R1, [stopsource.single], [stoptoken.single], [stopcallback.single]. Beyond it: a
// second callback at a time, which is a precondition there, stops the process here.

#include <coppice/base/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/slot.hpp>

#include <concepts>
#include <type_traits>
#include <utility>

namespace coppice {

class single_inplace_stop_source;
template <class CallbackFn>
class single_inplace_stop_callback;

// A reference to a single source, or to none. Threads: as an ordinary value.
class single_inplace_stop_token {
public:
    template <class CallbackFn>
    using callback_type = single_inplace_stop_callback<CallbackFn>;

    single_inplace_stop_token() = default;
    bool operator==(const single_inplace_stop_token&) const = default;

    // Threads: any, at once. Lifetime: before the source's destruction.
    bool stop_requested() const noexcept;
    bool stop_possible() const noexcept { return source_ != nullptr; }
    void swap(single_inplace_stop_token& other) noexcept { std::swap(source_, other.source_); }

private:
    friend single_inplace_stop_source;
    template <class CallbackFn>
    friend class single_inplace_stop_callback;
    explicit constexpr single_inplace_stop_token(const single_inplace_stop_source* source) noexcept
        : source_(source) {}

    const single_inplace_stop_source* source_ = nullptr;
};

// Owns the state of one possible stop, with room for one callback.
// Threads: any, all members at once. Lifetime: destroyed when no callback is registered, or inside
// its own callback. Cost: 8 bytes.
class single_inplace_stop_source : immovable {
public:
    single_inplace_stop_source() = default;
    ~single_inplace_stop_source() {
        const std::uintptr_t bits = slot_.left_over();
        COPPICE_CHECK(!callback_slot::any_filled(bits),
                      "a stop source was destroyed while a callback was registered");
        if (callback_slot::any_running(bits)) [[unlikely]]
            die_inside_callback(this);
    }

    // Lifetime: the source outlives its tokens' use.
    constexpr single_inplace_stop_token get_token() const noexcept {
        return single_inplace_stop_token(this);
    }
    static constexpr bool stop_possible() noexcept { return true; }
    bool stop_requested() const noexcept { return slot_.stop_requested(); }

    // Requests the stop and runs the callback, if there is one, on this thread.
    // Returns true for exactly one of all calls. Blocks: never, but for what the callback does.
    // Cost: one compare-exchange, and one store after the callback.
    bool request_stop() noexcept {
        slot_callback* callback = nullptr;
        switch (slot_.close(callback)) {
            case callback_slot::closing::lost:
                return false;
            case callback_slot::closing::nothing_to_run:
                return true;
            case callback_slot::closing::callback_to_run:
                break;
        }
        running_request request(this, callback);
        callback->execute(callback);
        if (!request.source_gone()) slot_.finish();
        return true;  // *this may be gone
    }

private:
    template <class CallbackFn>
    friend class single_inplace_stop_callback;

    mutable callback_slot slot_;
};

inline bool single_inplace_stop_token::stop_requested() const noexcept {
    return source_ != nullptr && source_->stop_requested();
}

// Runs a function when a stop is requested: on the requester's thread, or, if that has happened
// before, here and now in the constructor. At most one of a source may live at a time.
// Threads: constructed and destroyed by any thread, concurrently with everything on the source.
// Blocks: the destructor, while the function runs on another thread. Cost: no allocation.
template <class CallbackFn>
class single_inplace_stop_callback : slot_callback {
    static_assert(std::invocable<CallbackFn> && std::destructible<CallbackFn>);

public:
    using callback_type = CallbackFn;

    template <class Initializer>
        requires std::constructible_from<CallbackFn, Initializer>
    explicit single_inplace_stop_callback(
        single_inplace_stop_token token,
        Initializer&& init) noexcept(std::is_nothrow_constructible_v<CallbackFn, Initializer>)
        : slot_callback(&run, token.source_), callback_(std::forward<Initializer>(init)) {
        if (source == nullptr) return;
        if (token.source_->slot_.fill(*this)) [[likely]]
            return;
        source = nullptr;
        run(this);
    }
    ~single_inplace_stop_callback() {
        if (source == nullptr) return;
        callback_slot& slot = static_cast<const single_inplace_stop_source*>(source)->slot_;
        if (!slot.clear(*this)) [[unlikely]]
            slot.wait_done(*this);
    }

private:
    static void run(slot_callback* self) noexcept {
        std::forward<CallbackFn>(static_cast<single_inplace_stop_callback*>(self)->callback_)();
    }

    [[no_unique_address]] CallbackFn callback_;
};

template <class CallbackFn>
single_inplace_stop_callback(single_inplace_stop_token, CallbackFn)
    -> single_inplace_stop_callback<CallbackFn>;

}  // namespace coppice
