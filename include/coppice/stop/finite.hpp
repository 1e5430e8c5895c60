// finite_inplace_stop_source<N>: N tokens of one stop, one callback each; for when_all's children.
#pragma once
// One flag and N callback_slots (states in slot.hpp). request_stop() raises the flag, then visits
// the slots; an empty slot costs it a load, not an exchange. That is Dekker's pattern:
//
//   registration:  fill the slot (compare-exchange), then read the flag
//   request:       raise the flag (exchange), then read the slot
//
// All four are seq_cst, so one of the two comes first in their single order. If the flag is raised
// first, the registration sees it, takes its callback back out of the slot and runs it itself; or
// finds it claimed, and the requester runs it. If the slot is filled first, the requester sees it.
// A registration that begins after stop_requested() sees the flag at once and runs its callback in
// its constructor; so the flag is read before the slot is filled, too.
//
// Stride is the distance of the flag and the slots in bytes: 64 keeps threads that register on
// different slots out of each other's cache line.
//
// Source: P3409R1, [stopsource.finite], [stoptoken.finite], [stopcallback.finite]; an array of
// single sources, which the paper allows, would let two racing requesters both win.

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/slot.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace coppice {

template <std::size_t N, std::size_t Stride = sizeof(void*)>
class finite_inplace_stop_source;
template <std::size_t N, std::size_t Index, class CallbackFn, std::size_t Stride = sizeof(void*)>
class finite_inplace_stop_callback;

// A reference to slot Index of a finite source, or to none. Threads: as an ordinary value.
template <std::size_t N, std::size_t Index, std::size_t Stride = sizeof(void*)>
class finite_inplace_stop_token {
    static_assert(Index < N, "a finite stop source has tokens 0 to N - 1");

public:
    template <class CallbackFn>
    using callback_type = finite_inplace_stop_callback<N, Index, CallbackFn, Stride>;

    finite_inplace_stop_token() = default;
    bool operator==(const finite_inplace_stop_token&) const = default;

    // Threads: any, at once. Lifetime: before the source's destruction.
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
// Threads: any, all members at once. Lifetime: destroyed when no callback is registered, or inside
// one of its callbacks when no other one is. Cost: N + 1 words, or N + 1 strides.
template <std::size_t N, std::size_t Stride>
class finite_inplace_stop_source : immovable {
public:
    finite_inplace_stop_source() = default;
    ~finite_inplace_stop_source() {
        std::uintptr_t bits = 0;
        for (const padded_slot& s : slots_) bits |= s.slot.left_over();
        COPPICE_CHECK(!callback_slot::any_filled(bits),
                      "a stop source was destroyed while a callback was registered");
        if (callback_slot::any_running(bits)) [[unlikely]]
            die_inside_callback(this);
    }

    // The token of one slot. At most one callback per slot may live at a time.
    template <std::size_t Index>
        requires(Index < N)
    constexpr finite_inplace_stop_token<N, Index, Stride> get_token() const noexcept {
        return finite_inplace_stop_token<N, Index, Stride>(this);
    }
    static constexpr bool stop_possible() noexcept { return true; }
    bool stop_requested() const noexcept {
        // edge stop.requested (acquire): what came before the request is visible
        return requested_.load(acquire) != 0;
    }

    // Requests the stop and runs the registered callbacks on this thread, slot by slot.
    // Returns true for exactly one of all calls. Blocks: never, but for what the callbacks do.
    // Cost: one exchange; per slot a load, and a compare-exchange and a store if it is filled.
    bool request_stop() noexcept {
        // edge stop.flag (seq_cst), edge stop.requested (release): the flag before the slots
        if (requested_.exchange(1, seq_cst) != 0) return false;
        for (std::size_t i = 0; i != N; ++i) {
            if (slots_[i].slot.is_empty()) [[likely]]
                continue;
            run_from(i);  // *this may be gone
            return true;
        }
        return true;
    }

private:
    template <std::size_t, std::size_t, class, std::size_t>
    friend class finite_inplace_stop_callback;

    // Runs the callbacks of slot i and of the later ones.
    [[gnu::noinline]] void run_from(std::size_t i) noexcept {
        running_request request(this);
        for (; i != N; ++i) {
            slot_callback* const callback = slots_[i].slot.claim();
            if (callback == nullptr) continue;
            request.set_callback(callback);
            callback->execute(callback);
            if (request.source_gone()) return;  // touch nothing
            slots_[i].slot.finish();
        }
    }

    // False: a stop was requested, the caller runs the callback itself.
    [[nodiscard]] bool enlist(std::size_t index, slot_callback& callback) const noexcept {
        if (stop_requested() && !planted("finite.steal_late_callback")) [[unlikely]]
            return false;
        callback_slot& slot = slots_[index].slot;
        // edge stop.flag (seq_cst): the slot before the flag; the exchange is in fill
        if (!slot.fill(callback)) [[unlikely]]
            return false;
        if (planted("finite.no_second_look")) return true;
        // edge stop.flag (seq_cst): the slot before the flag
        if (requested_.load(seq_cst) == 0) [[likely]]
            return true;
        if (planted("finite.end_twice")) return !slot.clear(callback);
        return !slot.take_back(callback);
    }

    void withdraw(std::size_t index, slot_callback& callback) const noexcept {
        callback_slot& slot = slots_[index].slot;
        // Relaxed: only saves a locked instruction.
        if (requested_.load(relaxed) != 0 && slot.is_done()) return;
        if (!slot.clear(callback)) [[unlikely]]
            slot.wait_done(callback);
    }

    struct alignas(Stride) padded_slot {
        callback_slot slot;
    };
    // 0, then 1 for ever. Written by the request that wins; read by registrations.
    alignas(Stride) mutable atomic<std::uintptr_t> requested_{0};
    mutable padded_slot slots_[N];
};

// Nothing can be stopped through a source without tokens: disengaged.
template <std::size_t Stride>
class finite_inplace_stop_source<0, Stride> : immovable {
public:
    static constexpr bool stop_possible() noexcept { return false; }
    static constexpr bool stop_requested() noexcept { return false; }
    static constexpr bool request_stop() noexcept { return false; }
};

// Runs a function when a stop is requested: on the requester's thread, or, if that has happened
// before, here and now in the constructor. At most one per slot may live at a time.
// Threads: constructed and destroyed by any thread, concurrently with everything on the source.
// Blocks: the destructor, while the function runs on another thread. Cost: no allocation.
template <std::size_t N, std::size_t Index, class CallbackFn, std::size_t Stride>
class finite_inplace_stop_callback : slot_callback {
    static_assert(std::invocable<CallbackFn> && std::destructible<CallbackFn>);

public:
    using callback_type = CallbackFn;

    template <class Initializer>
        requires std::constructible_from<CallbackFn, Initializer>
    explicit finite_inplace_stop_callback(
        finite_inplace_stop_token<N, Index, Stride> token,
        Initializer&& init) noexcept(std::is_nothrow_constructible_v<CallbackFn, Initializer>)
        : slot_callback(&run, token.source_), callback_(std::forward<Initializer>(init)) {
        if (source == nullptr) return;
        if (token.source_->enlist(Index, *this)) [[likely]]
            return;
        source = nullptr;
        run(this);
    }
    ~finite_inplace_stop_callback() {
        if (source == nullptr) return;
        static_cast<const finite_inplace_stop_source<N, Stride>*>(source)->withdraw(Index, *this);
    }

private:
    static void run(slot_callback* self) noexcept {
        std::forward<CallbackFn>(static_cast<finite_inplace_stop_callback*>(self)->callback_)();
    }

    [[no_unique_address]] CallbackFn callback_;
};

template <std::size_t N, std::size_t Index, std::size_t Stride, class CallbackFn>
finite_inplace_stop_callback(finite_inplace_stop_token<N, Index, Stride>, CallbackFn)
    -> finite_inplace_stop_callback<N, Index, CallbackFn, Stride>;

}  // namespace coppice
