// asymmetric_inplace_stop_source<N>: registers without a read-modify-write; for long-lived scopes.
#pragma once
// An opt-in for scopes in which callbacks come and go millions of times and a stop comes once:
// registering and removing are plain stores and loads, and request_stop() pays for them with a
// membarrier of some microseconds (base/asymmetric.hpp). N slots take one callback each; a slot is
// used by one thread at a time, and handed on with an ordering of its own.
//
// Two words per slot:
//   callback_   nullptr, or the registered callback. Written by the slot's owner with plain stores.
//   claim_      open; then, once the flag is seen, for ever one of
//               withdrawn   the owner's: its callback was not run by the requester, and will not be
//               running     the requester's: it runs what it read in callback_
//               done        that has returned
// The flag is raised once. Order of the two sides:
//
//   owner:      callback_ = c or nullptr; light_fence(); flag seen? claim_ open -> withdrawn
//   requester:  flag = 1; heavy_fence(); c = callback_; c != nullptr? claim_ open -> running, run c
//
// Proof. Consider an owner's store to callback_ and its look at the flag. (1) The flag is not seen:
// then the requester's read of callback_, behind the heavy fence, sees that store or a later one.
// So a callback that stays registered is found, and one that was removed is not touched. (2) The
// flag is seen: owner and requester meet at claim_, and one wins. If the owner registers and wins,
// its callback runs in its constructor; if it removes and wins, it never runs; if it loses, the
// requester has read this very callback (an older one in this slot is excluded: its removal has
// seen the flag, so no registration follows that does not look at the flag first), and removal
// waits for `done`. Without membarrier both fences are full ones, and the same holds.

#include <coppice/base/asymmetric.hpp>
#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/running.hpp>
#include <coppice/stop/sleepers.hpp>
#include <coppice/stop/slot.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace coppice {

// One slot. `flag` is the source's, in every call.
class asymmetric_slot {
public:
    // Registers. False: a stop was requested, the caller runs the callback itself.
    [[nodiscard]] bool fill(slot_callback& callback, const atomic<std::uint32_t>& flag) noexcept {
        // edge asymmetric.flag (acquire): what came before the request is visible
        if (flag.load(acquire) != 0) [[unlikely]]
            return false;
        COPPICE_CHECK(callback_.load(relaxed) == nullptr,
                      "a second callback was registered on a stop token that takes one");
        // edge asymmetric.callback (release): the callback is constructed
        callback_.store(&callback, release);
        light_fence();  // edge asymmetric.order (light): the slot before the flag
        // edge asymmetric.flag (acquire): what came before the request is visible
        if (flag.load(acquire) == 0) [[likely]]
            return true;
        return !withdraw();
    }

    // Ends a registration. Blocks: while the callback runs on another thread.
    void clear(slot_callback& callback, const atomic<std::uint32_t>& flag) noexcept {
        // Relaxed: who reads nullptr reads nothing else.
        callback_.store(nullptr, relaxed);
        light_fence();  // edge asymmetric.order (light): the slot before the flag
        if (flag.load(relaxed) == 0) [[likely]]
            return;  // relaxed: claim_ orders the rest
        if (withdraw() || running_request::forget_callback(&callback)) return;
        if (planted("asymmetric.do_not_wait")) return;
        callback_sleepers().wait_while(claim_, running);
    }

    // For the request, after its heavy fence: the callback to run, or nullptr.
    [[nodiscard]] slot_callback* claim() noexcept {
        // edge asymmetric.callback (acquire): the callback is constructed
        slot_callback* const callback = callback_.load(acquire);
        if (callback == nullptr) return nullptr;
        std::uint32_t seen = open;
        // Relaxed: callback_ and `done` carry all that is passed on.
        if (claim_.compare_exchange_strong(seen, running, relaxed, relaxed)) return callback;
        return planted("asymmetric.run_withdrawn") ? callback : nullptr;
    }

    // The callback has returned. Lifetime: touches nothing after its store.
    void finish() noexcept {
        // edge stop.done (release): the callback has returned
        claim_.store(done, release);
        callback_sleepers().wake(claim_);
    }

    // For the source's destructor; relaxed: the last owner looks.
    bool is_filled() const noexcept {
        return callback_.load(relaxed) != nullptr && claim_.load(relaxed) == open;
    }
    bool is_running() const noexcept { return claim_.load(relaxed) == running; }

private:
    static constexpr std::uint32_t open = 0;
    static constexpr std::uint32_t withdrawn = 1;
    static constexpr std::uint32_t running = 2;
    static constexpr std::uint32_t done = 3;

    // The flag was seen. True: the requester has not run what is in the slot, and will not.
    bool withdraw() noexcept {
        std::uint32_t seen = open;
        // edge stop.done (acquire): the callback has returned
        const bool won = claim_.compare_exchange_strong(seen, withdrawn, relaxed, acquire);
        if (!won && seen != withdrawn) return false;
        callback_.store(nullptr, relaxed);
        return true;
    }

    atomic<slot_callback*> callback_{nullptr};
    atomic<std::uint32_t> claim_{open};
};

// The distance of slots: one slot needs no padding.
constexpr std::size_t asymmetric_stride(std::size_t slots) noexcept {
    return slots == 1 ? std::bit_ceil(sizeof(asymmetric_slot)) : 64;
}

template <std::size_t N = 1, std::size_t Stride = asymmetric_stride(N)>
class asymmetric_inplace_stop_source;
template <std::size_t N, std::size_t Index, class CallbackFn, std::size_t Stride>
class asymmetric_inplace_stop_callback;

// A reference to slot Index of an asymmetric source, or to none. Threads: as an ordinary value.
template <std::size_t N = 1, std::size_t Index = 0, std::size_t Stride = asymmetric_stride(N)>
class asymmetric_inplace_stop_token {
    static_assert(Index < N, "an asymmetric stop source has tokens 0 to N - 1");

public:
    template <class CallbackFn>
    using callback_type = asymmetric_inplace_stop_callback<N, Index, CallbackFn, Stride>;

    asymmetric_inplace_stop_token() = default;
    bool operator==(const asymmetric_inplace_stop_token&) const = default;

    // Threads: any, at once. Lifetime: before the source's destruction.
    bool stop_requested() const noexcept { return source_ != nullptr && source_->stop_requested(); }
    bool stop_possible() const noexcept { return source_ != nullptr; }
    void swap(asymmetric_inplace_stop_token& other) noexcept { std::swap(source_, other.source_); }

private:
    template <std::size_t, std::size_t>
    friend class asymmetric_inplace_stop_source;
    template <std::size_t, std::size_t, class, std::size_t>
    friend class asymmetric_inplace_stop_callback;
    using source_type = asymmetric_inplace_stop_source<N, Stride>;
    explicit constexpr asymmetric_inplace_stop_token(const source_type* source) noexcept
        : source_(source) {}

    const source_type* source_ = nullptr;
};

// Owns the state of one possible stop, with N slots for one callback each.
// Threads: any, all members at once; a slot's callbacks as told on top. Lifetime: destroyed when no
// callback is registered, or inside one of its callbacks when no other one is.
template <std::size_t N, std::size_t Stride>
class asymmetric_inplace_stop_source : immovable {
    static_assert(N != 0);

public:
    asymmetric_inplace_stop_source() = default;
    ~asymmetric_inplace_stop_source() {
        bool running = false;
        for (const padded_slot& s : slots_) {
            COPPICE_CHECK(!s.slot.is_filled(),
                          "a stop source was destroyed while a callback was registered");
            running |= s.slot.is_running();
        }
        if (running) [[unlikely]]
            die_inside_callback(this);
    }

    // The token of one slot. At most one callback per slot may live at a time.
    template <std::size_t Index = 0>
        requires(Index < N)
    constexpr asymmetric_inplace_stop_token<N, Index, Stride> get_token() const noexcept {
        return asymmetric_inplace_stop_token<N, Index, Stride>(this);
    }
    static constexpr bool stop_possible() noexcept { return true; }
    bool stop_requested() const noexcept {
        // edge asymmetric.flag (acquire): what came before the request is visible
        return requested_.load(acquire) != 0;
    }

    // Requests the stop and runs the registered callbacks on this thread, slot by slot.
    // Returns true for exactly one of all calls. Blocks: never, but for what the callbacks do.
    // Cost: one exchange and one membarrier, some microseconds.
    bool request_stop() noexcept {
        // edge asymmetric.flag (release): what came before the request is visible
        if (requested_.exchange(1, acq_rel) != 0) return false;
        heavy_fence();  // edge asymmetric.order (heavy): the flag before the slots
        running_request request(this);
        for (padded_slot& s : slots_) {
            slot_callback* const callback = s.slot.claim();
            if (callback == nullptr) continue;
            request.set_callback(callback);
            callback->execute(callback);
            if (request.source_gone()) return true;  // touch nothing
            s.slot.finish();
        }
        return true;
    }

private:
    template <std::size_t, std::size_t, class, std::size_t>
    friend class asymmetric_inplace_stop_callback;

    struct alignas(Stride) padded_slot {
        asymmetric_slot slot;
    };
    // 0, then 1 for ever. Written by the request that wins; read by all.
    alignas(Stride) mutable atomic<std::uint32_t> requested_{0};
    mutable padded_slot slots_[N];
};

// Runs a function when a stop is requested: on the requester's thread, or, if that has happened
// before, here and now in the constructor. At most one per slot may live at a time.
// Threads: the slot's owner; see on top. Blocks: the destructor, while the function runs on another
// thread. Cost: no allocation, no read-modify-write.
template <std::size_t N, std::size_t Index, class CallbackFn,
          std::size_t Stride = asymmetric_stride(N)>
class asymmetric_inplace_stop_callback : slot_callback {
    static_assert(std::invocable<CallbackFn> && std::destructible<CallbackFn>);

public:
    using callback_type = CallbackFn;

    template <class Initializer>
        requires std::constructible_from<CallbackFn, Initializer>
    explicit asymmetric_inplace_stop_callback(
        asymmetric_inplace_stop_token<N, Index, Stride> token,
        Initializer&& init) noexcept(std::is_nothrow_constructible_v<CallbackFn, Initializer>)
        : slot_callback(&run, token.source_), callback_(std::forward<Initializer>(init)) {
        if (source == nullptr) return;
        if (slot().fill(*this, token.source_->requested_)) [[likely]]
            return;
        source = nullptr;
        run(this);
    }
    ~asymmetric_inplace_stop_callback() {
        if (source != nullptr) slot().clear(*this, owner().requested_);
    }

private:
    const asymmetric_inplace_stop_source<N, Stride>& owner() const noexcept {
        return *static_cast<const asymmetric_inplace_stop_source<N, Stride>*>(source);
    }
    asymmetric_slot& slot() const noexcept { return owner().slots_[Index].slot; }
    static void run(slot_callback* self) noexcept {
        std::forward<CallbackFn>(static_cast<asymmetric_inplace_stop_callback*>(self)->callback_)();
    }

    [[no_unique_address]] CallbackFn callback_;
};

template <std::size_t N, std::size_t Index, std::size_t Stride, class CallbackFn>
asymmetric_inplace_stop_callback(asymmetric_inplace_stop_token<N, Index, Stride>, CallbackFn)
    -> asymmetric_inplace_stop_callback<N, Index, CallbackFn, Stride>;

}  // namespace coppice
