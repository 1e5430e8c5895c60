// finite_slots: a flag and N slots of one callback each; what a finite stop source is made of.
#pragma once
// request_stop() raises the flag, then visits the slots (states in slot.hpp). An empty slot costs
// it a load, not an exchange. This is Dekker's pattern:
//
//   registration:  fill the slot (compare-exchange), then read the flag
//   request:       raise the flag (exchange), then read the slot
//
// All four operations are seq_cst, so they have a single order. If the flag is raised before the
// registration reads it, the registration takes its callback back out of the slot and runs it
// itself, or finds it claimed, and the requester runs it. Otherwise the slot was filled first, and
// the requester sees it. A registration that begins after stop_requested() is true must run its
// callback in its constructor, so the flag is also read before the slot is filled.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/stop/internal/further.hpp>
#include <coppice/stop/internal/running.hpp>
#include <coppice/stop/internal/slot.hpp>
#include <coppice/stop/internal/slot_row.hpp>
#include <coppice/stop/internal/way_back.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice {

template <std::size_t N, std::size_t Index, std::size_t Stride>
class finite_inplace_stop_token;  // finite.hpp

}  // namespace coppice

namespace coppice::internal {

template <std::size_t N>
class tolerant_finite_stop_source;

// The state of a finite source. Threads: any, all members concurrently. Tokens point here.
template <std::size_t N, std::size_t Stride>
class finite_slots {
public:
    finite_slots() = default;
    finite_slots(const finite_slots&) = delete;
    ~finite_slots() {
        const std::uintptr_t bits = left_over();
        COPPICE_CHECK(!callback_slot::any_filled(bits),
                      "a stop source was destroyed while a callback was registered: destroy the "
                      "callback first");
        if (callback_slot::any_running(bits)) [[unlikely]]
            die_inside_callback(this);
    }

    bool stop_requested() const noexcept {
        // edge stop.requested (acquire): what came before the request is visible
        return (flag_.load(acquire) & requested) != 0;
    }

    // Requests the stop and runs the callbacks. Returns true for exactly one of all calls.
    // Lifetime: *this may be destroyed by a callback.
    bool request_stop() noexcept {
        // edge stop.flag (seq_cst), edge stop.requested (release): the flag before the slots
        if ((flag_.exchange(requested, seq_cst) & requested) != 0) return false;
        for (std::size_t i = 0; i != N; ++i) {
            if (slots_[i].slot.is_empty()) [[likely]]
                continue;
            run_from(i);  // *this may be destroyed by now
            return true;
        }
        return true;
    }

    // Registers a callback. Returns false if a stop was requested and the caller must run the
    // callback itself.
    [[nodiscard, gnu::always_inline]] bool enlist(std::size_t index,
                                                  slot_callback& callback) const noexcept {
        if (stop_requested() && !planted("finite.steal_late_callback")) [[unlikely]]
            return false;
        callback_slot& slot = slots_[index].slot;
        std::uintptr_t seen;
        // edge stop.flag (seq_cst): the slot before the flag; the exchange is in fill
        if (!slot.fill(callback, seen)) [[unlikely]]
            return enlist_further(callback, seen);
        if (planted("finite.no_second_look")) return true;
        if (!stop_requested_now()) [[likely]]
            return true;
        if (planted("finite.end_twice")) return !slot.clear(callback);
        return !take_back(index, callback);
    }
    [[gnu::always_inline]] void withdraw(std::size_t index,
                                         slot_callback& callback) const noexcept {
        callback_slot& slot = slots_[index].slot;
        // Relaxed: only saves locked instructions.
        if ((flag_.load(relaxed) & requested) != 0) [[unlikely]] {
            if (slot.is_done()) return;
            if (slot.is_running()) {
                coppice::internal::end_running(row(*this, nullptr), index, slot, callback);
                return;
            }
        }
        if (!slot.clear(callback)) [[unlikely]]
            coppice::internal::end_late(row(*this, nullptr), index, slot, callback);
    }
    callback_slot& slot(std::size_t i) const noexcept { return slots_[i].slot; }

private:
    template <std::size_t>
    friend class tolerant_finite_stop_source;

    static constexpr std::uintptr_t requested = 1;
    static constexpr std::uintptr_t tolerant = 2;
    struct alignas(Stride) padded_slot {
        callback_slot slot;
    };
    using row = slot_row<finite_slots, N>;

    explicit constexpr finite_slots(std::uintptr_t kind) noexcept : flag_(kind) {}

    // Returns bits that tell what is in the slots, or-ed over all of them.
    std::uintptr_t left_over() const noexcept {
        std::uintptr_t bits = 0;
        for (const padded_slot& s : slots_) bits |= s.slot.left_over();
        return bits;
    }

    // Runs the callbacks of slot i and of later slots.
    [[gnu::noinline]] void run_from(std::size_t i) noexcept {
        row slots(*this, nullptr);
        const claimed_callback<slot_callback> first = slots.claim_from(i);
        if (first.callback == nullptr) return;
        running_request request(this, first.callback);
        coppice::internal::run_row(slots, first, request);
    }

    bool stop_requested_now() const noexcept {
        // edge stop.flag (seq_cst): the slot before the flag
        return (flag_.load(seq_cst) & requested) != 0;
    }
    [[nodiscard, gnu::noinline, gnu::cold]] bool enlist_further(
        slot_callback& callback, std::uintptr_t seen) const noexcept {
        if constexpr (Stride == sizeof(void*)) {
            if (callback_slot::is_taken(seen) && (flag_.load(relaxed) & tolerant) != 0) {
                return static_cast<const tolerant_finite_stop_source<N>*>(this)->further_.add(
                    callback, [this]() noexcept { return stop_requested_now(); });
            }
        }
        callback_slot::check_free(seen);
        return false;
    }
    // Takes back a registration after which a stop was seen. Returns true if it is taken back,
    // false if the requester has claimed the callback.
    [[nodiscard, gnu::noinline, gnu::cold]] bool take_back(std::size_t index,
                                                           slot_callback& callback) const noexcept {
        switch (slots_[index].slot.take_back(callback)) {
            case callback_slot::taking::claimed:
                return false;
            case callback_slot::taking::was_watched:
                coppice::internal::leave_watched(row(*this, nullptr), index);
                return true;
            case callback_slot::taking::taken:
                break;
        }
        return true;
    }

    // Bit `tolerant` is set from the start in a tolerant source; bit `requested` is set once the
    // stop is requested. Written by requests; read by registrations.
    alignas(Stride) mutable atomic<std::uintptr_t> flag_{0};
    mutable padded_slot slots_[N];
};

// A finite source that accepts further callbacks on every slot. An algorithm that passes its tokens
// to child senders uses this one. P3409R1 asks code that is written for any token to register one
// callback at a time. A child sender may be written without that care, and so may
// let_value(read_env(get_stop_token), f), whose f may use the token twice. A source that a user
// names is strict: there, a second callback ends the process. Tokens and callbacks are of the same
// types. The first callback of a slot costs the same as on a finite source, and a stop costs one
// load more. Further callbacks take a lock. All run on the requester's thread, those in slots
// first.
// Threads and lifetime: as for a finite source. Cost: N + 3 words.
template <std::size_t N>
class tolerant_finite_stop_source : finite_slots<N, sizeof(void*)> {
    using base = finite_slots<N, sizeof(void*)>;

public:
    // Makes a source that is not stopped and has no callbacks.
    constexpr tolerant_finite_stop_source() noexcept : base(base::tolerant) {}
    ~tolerant_finite_stop_source() {
        if (further_.was_used()) [[unlikely]]
            further_.check_end(this, this->left_over());
    }

    // Returns the token of one slot, which takes any number of callbacks.
    template <std::size_t Index>
        requires(Index < N)
    constexpr finite_inplace_stop_token<N, Index, sizeof(void*)> get_token() const noexcept {
        return finite_inplace_stop_token<N, Index, sizeof(void*)>(this);
    }
    static constexpr bool stop_possible() noexcept { return true; }
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
    friend class finite_slots;

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

}  // namespace coppice::internal
