// single_inplace_stop_source: one word, one callback; for an operation with one child at a time.
#pragma once
// Registering and deregistering take one locked instruction each (states and proof in
// internal/slot.hpp). Tokens refer to the source and must not outlive it. A callback may destroy
// itself, and the source.
//
// Source: P3409R1, [stopsource.single], [stoptoken.single], [stopcallback.single]. Beyond the
// paper: a second callback at a time breaks a precondition there, and ends the process here. An
// algorithm that passes its token to child senders uses a tolerant_single_stop_source
// (internal/single_slot.hpp), which accepts any number of callbacks. The tokens of both sources
// have one type; the lowest bit of the token's word says which source it is.

#include <coppice/base/lifetime.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/stop/internal/further.hpp>
#include <coppice/stop/internal/single_slot.hpp>
#include <coppice/stop/internal/slot.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace coppice {

class single_inplace_stop_source;
template <class CallbackFn>
class single_inplace_stop_callback;

// A reference to a single source, or to no source. Threads: as an ordinary value.
class single_inplace_stop_token {
public:
    template <class CallbackFn>
    using callback_type = single_inplace_stop_callback<CallbackFn>;

    single_inplace_stop_token() = default;
    bool operator==(const single_inplace_stop_token&) const = default;

    // Returns true once a stop was requested. Threads: any, concurrently. Lifetime: the source must
    // still exist.
    bool stop_requested() const noexcept {
        return source_ != nullptr && source()->stop_requested();
    }
    // Returns true if the token refers to a source.
    bool stop_possible() const noexcept { return source_ != nullptr; }
    void swap(single_inplace_stop_token& other) noexcept { std::swap(source_, other.source_); }

private:
    friend single_inplace_stop_source;
    friend internal::tolerant_single_stop_source;
    friend internal::tolerance<single_inplace_stop_token>;
    template <class CallbackFn>
    friend class single_inplace_stop_callback;
    explicit constexpr single_inplace_stop_token(const internal::single_slot* source) noexcept
        : source_(source) {}

    static constexpr std::uintptr_t tolerant = 1;
    static const internal::single_slot* marked(const internal::single_slot* source) noexcept {
        return reinterpret_cast<const internal::single_slot*>(
            reinterpret_cast<std::uintptr_t>(source) | tolerant);
    }
    bool is_tolerant() const noexcept {
        return (reinterpret_cast<std::uintptr_t>(source_) & tolerant) != 0;
    }
    const internal::single_slot* source() const noexcept {
        return reinterpret_cast<const internal::single_slot*>(
            reinterpret_cast<std::uintptr_t>(source_) & ~tolerant);
    }

    // Marked with bit `tolerant` if the source is tolerant.
    const internal::single_slot* source_ = nullptr;
};

// Owns the state of one possible stop, with room for one callback.
// Threads: any, all members concurrently.
// Lifetime: destroy it when no callback is registered, or inside its own callback; a request that
// has run a callback may not have returned yet. Cost: 8 bytes.
class single_inplace_stop_source : immovable {
public:
    single_inplace_stop_source() = default;

    // Returns a token of this source. Lifetime: the source must outlive every use of its tokens.
    constexpr single_inplace_stop_token get_token() const noexcept {
        return single_inplace_stop_token(&slot_);
    }
    static constexpr bool stop_possible() noexcept { return true; }
    // Returns true once a stop was requested.
    bool stop_requested() const noexcept { return slot_.stop_requested(); }

    // Requests the stop and runs the callback, if there is one, on this thread. Returns true for
    // exactly one of all calls. Blocks: only for what the callback does. Cost: one
    // compare-exchange, and one store after the callback.
    bool request_stop() noexcept { return slot_.request_stop(); }

private:
    internal::single_slot slot_;
};

namespace internal {

template <>
inline constexpr bool takes_one_callback<single_inplace_stop_token> = true;
template <>
struct tolerance<single_inplace_stop_token> {
    using strict = single_inplace_stop_source;
    using tolerant = tolerant_single_stop_source;
    // A token without a source registers no callback, so it accepts any number.
    static bool takes_several(const single_inplace_stop_token& token) noexcept {
        return token.source_ == nullptr || token.is_tolerant();
    }
};

inline single_inplace_stop_token tolerant_single_stop_source::get_token() const noexcept {
    return single_inplace_stop_token(single_inplace_stop_token::marked(this));
}

}  // namespace internal

// Runs a function when a stop is requested, on the requester's thread; or in the constructor, if
// the stop was requested before. At most one may exist at a time per source, unless the source is
// tolerant.
// Threads: constructed and destroyed by any thread, concurrently with everything on the source.
// Blocks: the destructor, while the function runs on another thread. Cost: no allocation.
template <class CallbackFn>
class single_inplace_stop_callback : internal::slot_callback {
    static_assert(std::invocable<CallbackFn> && std::destructible<CallbackFn>);

public:
    using callback_type = CallbackFn;

    template <class Initializer>
        requires std::constructible_from<CallbackFn, Initializer>
    explicit single_inplace_stop_callback(
        single_inplace_stop_token token,
        Initializer&& init) noexcept(std::is_nothrow_constructible_v<CallbackFn, Initializer>)
        : internal::slot_callback(&run, token.source()),
          callback_(std::forward<Initializer>(init)) {
        if (token.source_ == nullptr) return;
        if (!token.source()->enlist(*this, token.is_tolerant())) [[unlikely]]
            run_late();
    }
    ~single_inplace_stop_callback() {
        const std::uintptr_t place = where();
        if ((place & elsewhere) == 0) {
            source_at<internal::single_slot>(place).withdraw(*this);
        } else if (place != elsewhere) {
            internal::further_callbacks::remove(*this);
        }
    }

private:
    static void run(internal::slot_callback* self) noexcept {
        std::forward<CallbackFn>(static_cast<single_inplace_stop_callback*>(self)->callback_)();
    }

    [[no_unique_address]] CallbackFn callback_;
};

template <class CallbackFn>
single_inplace_stop_callback(single_inplace_stop_token, CallbackFn)
    -> single_inplace_stop_callback<CallbackFn>;

}  // namespace coppice
