// finite_inplace_stop_source<N>: one stop, N tokens, one callback each; for when_all's children.
#pragma once
// A registration is one compare-exchange and one load; request_stop() exchanges the flag and then
// looks at each slot (internal/finite_slots.hpp has the states and the proof).
//
// Stride is the distance in bytes of the flag and the slots from each other. With 64, threads that
// register in different slots do not share a cache line.
//
// Source: P3409R1, [stopsource.finite], [stoptoken.finite], [stopcallback.finite]. The paper allows
// an array of single sources, but then two racing requesters could both win.

#include <coppice/base/lifetime.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/stop/internal/finite_slots.hpp>
#include <coppice/stop/internal/further.hpp>
#include <coppice/stop/internal/slot.hpp>

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

// A reference to slot Index of a finite source, or to no source. Threads: as an ordinary value.
template <std::size_t N, std::size_t Index, std::size_t Stride = sizeof(void*)>
class finite_inplace_stop_token {
    static_assert(Index < N, "a finite stop source has tokens 0 to N - 1");

public:
    template <class CallbackFn>
    using callback_type = finite_inplace_stop_callback<N, Index, CallbackFn, Stride>;

    finite_inplace_stop_token() = default;
    bool operator==(const finite_inplace_stop_token&) const = default;

    // Returns true once a stop was requested. Threads: any, concurrently. Lifetime: the source must
    // still exist.
    bool stop_requested() const noexcept { return source_ != nullptr && source_->stop_requested(); }
    // Returns true if the token refers to a source.
    bool stop_possible() const noexcept { return source_ != nullptr; }
    void swap(finite_inplace_stop_token& other) noexcept { std::swap(source_, other.source_); }

private:
    template <std::size_t, std::size_t>
    friend class finite_inplace_stop_source;
    template <std::size_t>
    friend class internal::tolerant_finite_stop_source;
    template <std::size_t, std::size_t, class, std::size_t>
    friend class finite_inplace_stop_callback;
    using source_type = internal::finite_slots<N, Stride>;
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

    // Returns the token of one slot. At most one callback per slot may exist at a time.
    template <std::size_t Index>
        requires(Index < N)
    constexpr finite_inplace_stop_token<N, Index, Stride> get_token() const noexcept {
        return finite_inplace_stop_token<N, Index, Stride>(&slots_);
    }
    static constexpr bool stop_possible() noexcept { return true; }
    // Returns true once a stop was requested.
    bool stop_requested() const noexcept { return slots_.stop_requested(); }

    // Requests the stop and runs the registered callbacks on this thread, slot by slot. Returns
    // true for exactly one of all calls.
    // Blocks: only for what the callbacks do; and, if a callback has removed itself, for some
    // instructions while another thread removes one.
    // Cost: one exchange; per slot a load, and a compare-exchange and a store if it is filled.
    bool request_stop() noexcept { return slots_.request_stop(); }

private:
    internal::finite_slots<N, Stride> slots_;
};

// A source without slots has no tokens, so a request would reach nothing and always returns false.
template <std::size_t Stride>
class finite_inplace_stop_source<0, Stride> : immovable {
public:
    static constexpr bool stop_possible() noexcept { return false; }
    static constexpr bool stop_requested() noexcept { return false; }
    static constexpr bool request_stop() noexcept { return false; }
};

namespace internal {

template <std::size_t N, std::size_t Index, std::size_t Stride>
inline constexpr bool takes_one_callback<finite_inplace_stop_token<N, Index, Stride>> = true;

}  // namespace internal

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
            source_at<internal::finite_slots<N, Stride>>(place).withdraw(Index, *this);
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
