// single_inplace_stop_source: one word, one callback; for an operation with one child at a time.
#pragma once
// The source is a callback_slot that is its own flag (states and proof in slot.hpp). Registering
// and deregistering take one locked instruction each. Tokens refer to the source and must not
// outlive it. A callback may destroy itself, and the source.
//
// Source: P3409R1, [stopsource.single], [stoptoken.single], [stopcallback.single]. Beyond the
// paper: a second callback at a time breaks a precondition there, and stops the process here.
// Algorithms that pass their token to senders of others own a tolerant_single_stop_source (below),
// which accepts any number of callbacks. Tokens of both are of one type; the lowest bit of the
// token's word tells them apart.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/stop/internal/further.hpp>
#include <coppice/stop/internal/slot.hpp>
#include <coppice/stop/internal/way_back.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace coppice {

class single_inplace_stop_source;
namespace internal {

class tolerant_single_stop_source;

}  // namespace internal

template <class CallbackFn>
class single_inplace_stop_callback;

// A reference to a single source, or to no source. Threads: as an ordinary value.
class single_inplace_stop_token {
public:
    template <class CallbackFn>
    using callback_type = single_inplace_stop_callback<CallbackFn>;

    single_inplace_stop_token() = default;
    bool operator==(const single_inplace_stop_token&) const = default;

    // Threads: any, concurrently. Lifetime: the source must still exist.
    bool stop_requested() const noexcept;
    bool stop_possible() const noexcept { return source_ != nullptr; }
    void swap(single_inplace_stop_token& other) noexcept { std::swap(source_, other.source_); }

private:
    friend single_inplace_stop_source;
    friend internal::tolerant_single_stop_source;
    friend internal::tolerance<single_inplace_stop_token>;
    template <class CallbackFn>
    friend class single_inplace_stop_callback;
    explicit constexpr single_inplace_stop_token(const single_inplace_stop_source* source) noexcept
        : source_(source) {}

    static constexpr std::uintptr_t tolerant = 1;
    static const single_inplace_stop_source* marked(
        const single_inplace_stop_source* source) noexcept {
        return reinterpret_cast<const single_inplace_stop_source*>(
            reinterpret_cast<std::uintptr_t>(source) | tolerant);
    }
    bool is_tolerant() const noexcept {
        return (reinterpret_cast<std::uintptr_t>(source_) & tolerant) != 0;
    }
    const single_inplace_stop_source* source() const noexcept {
        return reinterpret_cast<const single_inplace_stop_source*>(
            reinterpret_cast<std::uintptr_t>(source_) & ~tolerant);
    }

    // Marked with bit `tolerant` if the source is tolerant.
    const single_inplace_stop_source* source_ = nullptr;
};

// Owns the state of one possible stop, with room for one callback.
// Threads: any, all members concurrently.
// Lifetime: destroy it when no callback is registered, or inside its own callback; a request that
// has run a callback may not have returned yet. Cost: 8 bytes.
class single_inplace_stop_source : immovable {
public:
    single_inplace_stop_source() = default;
    ~single_inplace_stop_source() {
        const std::uintptr_t bits = slot_.left_over();
        COPPICE_CHECK(!internal::callback_slot::any_filled(bits),
                      "a stop source was destroyed while a callback was registered");
        if (internal::callback_slot::any_running(bits)) [[unlikely]]
            internal::die_inside_callback(this);
    }

    // Lifetime: the source must outlive every use of its tokens.
    constexpr single_inplace_stop_token get_token() const noexcept {
        return single_inplace_stop_token(this);
    }
    static constexpr bool stop_possible() noexcept { return true; }
    bool stop_requested() const noexcept { return slot_.stop_requested(); }

    // Requests the stop and runs the callback, if there is one, on this thread. Returns true for
    // exactly one of all calls. Blocks: only for what the callback does. Cost: one
    // compare-exchange, and one store after the callback.
    bool request_stop() noexcept {
        internal::slot_callback* callback = nullptr;
        switch (slot_.close(callback)) {
            case internal::callback_slot::closing::lost:
                return false;
            case internal::callback_slot::closing::nothing_to_run:
                return true;
            case internal::callback_slot::closing::callback_to_run:
                break;
        }
        internal::running_request request(this, callback);
        callback->execute();
        // If the callback has destroyed itself, it may have destroyed the source too.
        if (!request.callback_gone()) slot_.finish();
        return true;
    }

private:
    friend internal::tolerant_single_stop_source;
    template <class CallbackFn>
    friend class single_inplace_stop_callback;

    using row = internal::slot_row<single_inplace_stop_source, 1>;
    friend row;

    // Registers a callback. Returns false if a stop was requested and the caller must run the
    // callback itself.
    [[nodiscard]] bool enlist(internal::slot_callback& callback, bool tolerant) const noexcept {
        std::uintptr_t seen;
        if (slot_.fill(callback, seen)) [[likely]]
            return true;
        return enlist_further(callback, tolerant, seen);
    }
    [[nodiscard]] bool enlist_further(internal::slot_callback& callback, bool tolerant,
                                      std::uintptr_t seen) const noexcept;

    void withdraw(internal::slot_callback& callback) const noexcept {
        if (!slot_.clear(callback)) [[unlikely]]
            coppice::internal::end_late(row(*this, nullptr), 0, slot_, callback);
    }
    internal::callback_slot& slot(std::size_t) const noexcept { return slot_; }

    mutable internal::callback_slot slot_;
};

inline bool single_inplace_stop_token::stop_requested() const noexcept {
    return source_ != nullptr && source()->stop_requested();
}

namespace internal {

// A single source that accepts further callbacks. Algorithms that pass its token to senders of
// others own one. The first callback costs the same as on a single source, and a stop costs one
// load more. Further callbacks take a lock. All run on the requester's thread, the first one first.
// Threads and lifetime: as for a single source. Cost: 24 bytes.
class tolerant_single_stop_source : single_inplace_stop_source {
public:
    tolerant_single_stop_source() = default;
    ~tolerant_single_stop_source() {
        if (further_.was_used()) [[unlikely]]
            further_.check_end(this, slot_.left_over());
    }

    // Lifetime: the source must outlive every use of its tokens.
    single_inplace_stop_token get_token() const noexcept {
        return single_inplace_stop_token(single_inplace_stop_token::marked(this));
    }
    using single_inplace_stop_source::stop_possible;
    using single_inplace_stop_source::stop_requested;

    // As in a single source.
    bool request_stop() noexcept {
        slot_callback* callback = nullptr;
        if (slot_.close(callback) == callback_slot::closing::lost) return false;
        if (callback != nullptr || !further_.is_empty()) run(callback);  // *this may be gone
        return true;
    }

private:
    friend single_inplace_stop_source;

    [[gnu::noinline]] void run(slot_callback* callback) noexcept {
        row slots(*this, &further_);
        claimed_callback<slot_callback> first{callback, 0};
        if (callback == nullptr) first = slots.claim_from(1);
        if (first.callback == nullptr) return;
        running_request request(this, first.callback, &further_);
        coppice::internal::run_row(slots, first, request);
    }

    mutable further_callbacks further_;
};

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

}  // namespace internal

[[gnu::noinline, gnu::cold]] inline bool single_inplace_stop_source::enlist_further(
    internal::slot_callback& callback, bool tolerant, std::uintptr_t seen) const noexcept {
    if (!tolerant) internal::callback_slot::check_free(seen);
    if (!internal::callback_slot::is_taken(seen)) return false;
    return static_cast<const internal::tolerant_single_stop_source*>(this)->further_.add(
        callback, [this]() noexcept { return slot_.stop_requested_now(); });
}

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
            source_at<single_inplace_stop_source>(place).withdraw(*this);
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
