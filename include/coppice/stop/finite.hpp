// finite_inplace_stop_source<N>: one stop, N tokens, one callback each; for when_all's children.
#pragma once
// The source is one flag and N callback_slots (states in slot.hpp). request_stop() raises the flag,
// then visits the slots; an empty slot costs it a load, not an exchange. This is Dekker's pattern:
//
//   registration:  fill the slot (compare-exchange), then read the flag
//   request:       raise the flag (exchange), then read the slot
//
// All four operations are seq_cst, so they have a single order. If the flag is raised before the
// registration reads it, the registration takes its callback back out of the slot and runs it
// itself, or finds it claimed, and the requester runs it. Otherwise the slot was filled first, and
// the requester sees it. A registration that begins after stop_requested() is true must run its
// callback in its constructor, so the flag is also read before the slot is filled.
//
// Stride is the distance in bytes of the flag and the slots from each other. With 64, threads that
// register in different slots do not share a cache line.
//
// Source: P3409R1, [stopsource.finite], [stoptoken.finite], [stopcallback.finite]. The paper allows
// an array of single sources, but then two racing requesters could both win.

#include <coppice/base/internal/atomic.hpp>
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

template <std::size_t N, std::size_t Stride = sizeof(void*)>
class finite_inplace_stop_source;
namespace internal {

template <std::size_t N>
class tolerant_finite_stop_source;

}  // namespace internal

template <std::size_t N, std::size_t Index, class CallbackFn, std::size_t Stride = sizeof(void*)>
class finite_inplace_stop_callback;

// A reference to slot Index of a finite source, or to no source. Threads: as an ordinary value.
template <std::size_t N, std::size_t Index, std::size_t Stride = sizeof(void*)>
class finite_inplace_stop_token {
    static_assert(Index < N, "a finite stop source has tokens 0 to N - 1");

public:
    template <class CallbackFn>
    using callback_type = finite_inplace_stop_callback<N, Index, CallbackFn, Stride>;

    finite_inplace_stop_token() = default;
    bool operator==(const finite_inplace_stop_token&) const = default;

    // Threads: any, concurrently. Lifetime: the source must still exist.
    bool stop_requested() const noexcept { return source_ != nullptr && source_->stop_requested(); }
    bool stop_possible() const noexcept { return source_ != nullptr; }
    void swap(finite_inplace_stop_token& other) noexcept { std::swap(source_, other.source_); }

private:
    template <std::size_t, std::size_t>
    friend class finite_inplace_stop_source;
    template <std::size_t, std::size_t, class, std::size_t>
    friend class finite_inplace_stop_callback;
    using source_type = finite_inplace_stop_source<N, Stride>;
    explicit constexpr finite_inplace_stop_token(const source_type* source) noexcept
        : source_(source) {}

    const source_type* source_ = nullptr;
};

// Owns the state of one possible stop, with N slots for one callback each.
// Threads: any, all members concurrently.
// Lifetime: destroy it when no callback is registered, or inside one of its callbacks when no other
// is registered; a request that has run a callback may not have returned yet (way_back.hpp). Cost:
// N + 1 words, or N + 1 strides.
template <std::size_t N, std::size_t Stride>
class finite_inplace_stop_source : immovable {
public:
    finite_inplace_stop_source() = default;
    ~finite_inplace_stop_source() {
        const std::uintptr_t bits = left_over();
        COPPICE_CHECK(!internal::callback_slot::any_filled(bits),
                      "a stop source was destroyed while a callback was registered");
        if (internal::callback_slot::any_running(bits)) [[unlikely]]
            internal::die_inside_callback(this);
    }

    // Returns the token of one slot. At most one callback per slot may exist at a time.
    template <std::size_t Index>
        requires(Index < N)
    constexpr finite_inplace_stop_token<N, Index, Stride> get_token() const noexcept {
        return finite_inplace_stop_token<N, Index, Stride>(this);
    }
    static constexpr bool stop_possible() noexcept { return true; }
    bool stop_requested() const noexcept {
        // edge stop.requested (acquire): what came before the request is visible
        return (flag_.load(internal::acquire) & requested) != 0;
    }

    // Requests the stop and runs the registered callbacks on this thread, slot by slot. Returns
    // true for exactly one of all calls.
    // Blocks: only for what the callbacks do; and, if a callback has removed itself, for some
    // instructions while another thread removes one.
    // Cost: one exchange; per slot a load, and a compare-exchange and a store if it is filled.
    bool request_stop() noexcept {
        // edge stop.flag (seq_cst), edge stop.requested (release): the flag before the slots
        if ((flag_.exchange(requested, internal::seq_cst) & requested) != 0) return false;
        for (std::size_t i = 0; i != N; ++i) {
            if (slots_[i].slot.is_empty()) [[likely]]
                continue;
            run_from(i);  // *this may be destroyed by now
            return true;
        }
        return true;
    }

private:
    template <std::size_t>
    friend class internal::tolerant_finite_stop_source;
    template <std::size_t, std::size_t, class, std::size_t>
    friend class finite_inplace_stop_callback;

    static constexpr std::uintptr_t requested = 1;
    static constexpr std::uintptr_t tolerant = 2;
    struct alignas(Stride) padded_slot {
        internal::callback_slot slot;
    };
    using row = internal::slot_row<finite_inplace_stop_source, N>;
    friend row;

    explicit constexpr finite_inplace_stop_source(std::uintptr_t kind) noexcept : flag_(kind) {}

    // Returns bits that tell what is in the slots, or-ed over all of them.
    std::uintptr_t left_over() const noexcept {
        std::uintptr_t bits = 0;
        for (const padded_slot& s : slots_) bits |= s.slot.left_over();
        return bits;
    }

    // Runs the callbacks of slot i and of later slots.
    [[gnu::noinline]] void run_from(std::size_t i) noexcept {
        row slots(*this, nullptr);
        const internal::claimed_callback<internal::slot_callback> first = slots.claim_from(i);
        if (first.callback == nullptr) return;
        internal::running_request request(this, first.callback);
        coppice::internal::run_row(slots, first, request);
    }

    // Registers a callback. Returns false if a stop was requested and the caller must run the
    // callback itself.
    [[nodiscard, gnu::always_inline]] bool enlist(
        std::size_t index, internal::slot_callback& callback) const noexcept {
        if (stop_requested() && !internal::planted("finite.steal_late_callback")) [[unlikely]]
            return false;
        internal::callback_slot& slot = slots_[index].slot;
        std::uintptr_t seen;
        // edge stop.flag (seq_cst): the slot before the flag; the exchange is in fill
        if (!slot.fill(callback, seen)) [[unlikely]]
            return enlist_further(callback, seen);
        if (internal::planted("finite.no_second_look")) return true;
        if (!stop_requested_now()) [[likely]]
            return true;
        if (internal::planted("finite.end_twice")) return !slot.clear(callback);
        return !take_back(index, callback);
    }
    bool stop_requested_now() const noexcept {
        // edge stop.flag (seq_cst): the slot before the flag
        return (flag_.load(internal::seq_cst) & requested) != 0;
    }
    [[nodiscard, gnu::noinline, gnu::cold]] bool enlist_further(
        internal::slot_callback& callback, std::uintptr_t seen) const noexcept {
        if constexpr (Stride == sizeof(void*)) {
            if (internal::callback_slot::is_taken(seen) &&
                (flag_.load(internal::relaxed) & tolerant) != 0) {
                return static_cast<const internal::tolerant_finite_stop_source<N>*>(this)
                    ->further_.add(callback, [this]() noexcept { return stop_requested_now(); });
            }
        }
        internal::callback_slot::check_free(seen);
        return false;
    }
    // Undoes a registration that has met a stop. Returns true if it is undone, false if the
    // requester has claimed the callback.
    [[nodiscard, gnu::noinline, gnu::cold]] bool take_back(
        std::size_t index, internal::slot_callback& callback) const noexcept {
        switch (slots_[index].slot.take_back(callback)) {
            case internal::callback_slot::taking::claimed:
                return false;
            case internal::callback_slot::taking::was_watched:
                coppice::internal::leave_watched(row(*this, nullptr), index);
                return true;
            case internal::callback_slot::taking::taken:
                break;
        }
        return true;
    }

    [[gnu::always_inline]] void withdraw(std::size_t index,
                                         internal::slot_callback& callback) const noexcept {
        internal::callback_slot& slot = slots_[index].slot;
        // Relaxed: only saves locked instructions.
        if ((flag_.load(internal::relaxed) & requested) != 0) [[unlikely]] {
            if (slot.is_done()) return;
            if (slot.is_running()) {
                coppice::internal::end_running(row(*this, nullptr), index, slot, callback);
                return;
            }
        }
        if (!slot.clear(callback)) [[unlikely]]
            coppice::internal::end_late(row(*this, nullptr), index, slot, callback);
    }
    internal::callback_slot& slot(std::size_t i) const noexcept { return slots_[i].slot; }

    // Bit `tolerant` is set from the start in a tolerant source; bit `requested` is set once the
    // stop is requested. Written by requests; read by registrations.
    alignas(Stride) mutable internal::atomic<std::uintptr_t> flag_{0};
    mutable padded_slot slots_[N];
};

namespace internal {

template <std::size_t N, std::size_t Index, std::size_t Stride>
inline constexpr bool takes_one_callback<finite_inplace_stop_token<N, Index, Stride>> = true;

// A finite source that accepts further callbacks on every slot. Algorithms that pass its tokens to
// senders of others own one. P3409R1 asks code that is written for any token to register one
// callback at a time. Senders of others may not know that, nor does
// let_value(read_env(get_stop_token), f), whose f may use the token twice. Users who name a source
// own a strict one, where a second callback stops the process; tokens and callbacks are of the same
// types. The first callback of a slot costs the same as on a finite source, and a stop costs one
// load more. Further callbacks take a lock. All run on the requester's thread, those in slots
// first.
// Threads and lifetime: as for a finite source. Cost: N + 3 words.
template <std::size_t N>
class tolerant_finite_stop_source : finite_inplace_stop_source<N> {
    using base = finite_inplace_stop_source<N>;

public:
    // Makes a source that is not stopped and has no callbacks.
    constexpr tolerant_finite_stop_source() noexcept : base(base::tolerant) {}
    ~tolerant_finite_stop_source() {
        if (further_.was_used()) [[unlikely]]
            further_.check_end(this, this->left_over());
    }

    using base::get_token;
    using base::stop_possible;
    using base::stop_requested;

    // As in a finite source.
    bool request_stop() noexcept {
        // edge stop.flag (seq_cst), edge stop.requested (release): the flag before the slots
        if ((this->flag_.exchange(base::tolerant | base::requested, seq_cst) & base::requested) !=
            0)
            return false;
        std::size_t i = 0;
        while (i != N && this->slots_[i].slot.is_empty()) ++i;
        if (i != N || !further_.is_empty()) run_from(i);  // *this may be destroyed by now
        return true;
    }

private:
    template <std::size_t, std::size_t>
    friend class coppice::finite_inplace_stop_source;

    // Runs the callbacks as a finite source does; the further ones come last.
    [[gnu::noinline]] void run_from(std::size_t i) noexcept {
        typename base::row slots(*this, &further_);
        const claimed_callback<slot_callback> first = slots.claim_from(i);
        if (first.callback == nullptr) return;
        running_request request(this, first.callback, &further_);
        coppice::internal::run_row(slots, first, request);
    }

    mutable further_callbacks further_;
};

}  // namespace internal

// A source without tokens: nothing can be stopped through it, so it is disengaged.
template <std::size_t Stride>
class finite_inplace_stop_source<0, Stride> : immovable {
public:
    static constexpr bool stop_possible() noexcept { return false; }
    static constexpr bool stop_requested() noexcept { return false; }
    static constexpr bool request_stop() noexcept { return false; }
};

// Runs a function when a stop is requested, on the requester's thread; or in the constructor, if
// the stop was requested before. At most one per slot may exist at a time, unless the source is
// tolerant.
// Threads: constructed and destroyed by any thread, concurrently with everything on the source.
// Blocks: the destructor, while the function runs on another thread. Cost: no allocation.
template <std::size_t N, std::size_t Index, class CallbackFn, std::size_t Stride>
class finite_inplace_stop_callback : internal::slot_callback {
    static_assert(std::invocable<CallbackFn> && std::destructible<CallbackFn>);

public:
    using callback_type = CallbackFn;

    template <class Initializer>
        requires std::constructible_from<CallbackFn, Initializer>
    explicit finite_inplace_stop_callback(
        finite_inplace_stop_token<N, Index, Stride> token,
        Initializer&& init) noexcept(std::is_nothrow_constructible_v<CallbackFn, Initializer>)
        : internal::slot_callback(&run, token.source_), callback_(std::forward<Initializer>(init)) {
        if (token.source_ == nullptr) return;
        if (!token.source_->enlist(Index, *this)) [[unlikely]]
            run_late();
    }
    ~finite_inplace_stop_callback() {
        const std::uintptr_t place = where();
        if ((place & elsewhere) == 0) {
            source_at<finite_inplace_stop_source<N, Stride>>(place).withdraw(Index, *this);
        } else if (place != elsewhere) {
            internal::further_callbacks::remove(*this);
        }
    }

private:
    static void run(internal::slot_callback* self) noexcept {
        std::forward<CallbackFn>(static_cast<finite_inplace_stop_callback*>(self)->callback_)();
    }

    [[no_unique_address]] CallbackFn callback_;
};

template <std::size_t N, std::size_t Index, std::size_t Stride, class CallbackFn>
finite_inplace_stop_callback(finite_inplace_stop_token<N, Index, Stride>, CallbackFn)
    -> finite_inplace_stop_callback<N, Index, CallbackFn, Stride>;

}  // namespace coppice
