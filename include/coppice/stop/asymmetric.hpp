// asymmetric_inplace_stop_source<N>: registers with plain stores and loads; for long-lived scopes.
#pragma once
// An opt-in for scopes in which callbacks come and go millions of times and a stop comes once.
// Registering and removing are plain stores and loads; request_stop() pays for that with a
// membarrier of some microseconds (base/internal/asymmetric.hpp). Each of the N slots takes one
// callback at a time. One thread at a time, the slot's owner, uses a slot. A thread that takes over
// a slot must synchronize with its previous owner, for example through a mutex.
// internal/asymmetric_slots.hpp has the states and the proof.

#include <coppice/base/lifetime.hpp>
#include <coppice/stop/concepts.hpp>
#include <coppice/stop/internal/asymmetric_slots.hpp>

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>

namespace coppice {

template <std::size_t N = 1, std::size_t Stride = internal::asymmetric_stride(N)>
class asymmetric_inplace_stop_source;
template <std::size_t N, std::size_t Index, class CallbackFn, std::size_t Stride>
class asymmetric_inplace_stop_callback;

// A reference to slot Index of an asymmetric source, or to no source. Threads: as an ordinary
// value.
template <std::size_t N = 1, std::size_t Index = 0,
          std::size_t Stride = internal::asymmetric_stride(N)>
class asymmetric_inplace_stop_token {
    static_assert(Index < N, "an asymmetric stop source has tokens 0 to N - 1");

public:
    template <class CallbackFn>
    using callback_type = asymmetric_inplace_stop_callback<N, Index, CallbackFn, Stride>;

    asymmetric_inplace_stop_token() = default;
    bool operator==(const asymmetric_inplace_stop_token&) const = default;

    // Returns true once a stop was requested. Threads: any, concurrently. Lifetime: the source must
    // still exist.
    bool stop_requested() const noexcept { return source_ != nullptr && source_->stop_requested(); }
    // Returns true if the token refers to a source.
    bool stop_possible() const noexcept { return source_ != nullptr; }
    void swap(asymmetric_inplace_stop_token& other) noexcept { std::swap(source_, other.source_); }

private:
    template <std::size_t, std::size_t>
    friend class asymmetric_inplace_stop_source;
    template <std::size_t, std::size_t, class, std::size_t>
    friend class asymmetric_inplace_stop_callback;
    using source_type = internal::asymmetric_slots<N, Stride>;
    explicit constexpr asymmetric_inplace_stop_token(const source_type* source) noexcept
        : source_(source) {}

    const source_type* source_ = nullptr;
};

namespace internal {

template <std::size_t N, std::size_t Index, std::size_t Stride>
inline constexpr bool takes_one_callback<asymmetric_inplace_stop_token<N, Index, Stride>> = true;

}  // namespace internal

// Owns the state of one possible stop, with N slots for one callback each.
// Threads: any, all members concurrently; the callbacks of a slot as described above.
// Lifetime: destroy it when no callback is registered, or inside one of its callbacks when no other
// is registered; a request that has run a callback may not have returned yet (way_back.hpp).
template <std::size_t N, std::size_t Stride>
class asymmetric_inplace_stop_source : immovable {
    static_assert(N != 0);

public:
    asymmetric_inplace_stop_source() = default;

    // Returns the token of one slot. At most one callback per slot may exist at a time.
    template <std::size_t Index = 0>
        requires(Index < N)
    constexpr asymmetric_inplace_stop_token<N, Index, Stride> get_token() const noexcept {
        return asymmetric_inplace_stop_token<N, Index, Stride>(&slots_);
    }
    static constexpr bool stop_possible() noexcept { return true; }
    // Returns true once a stop was requested.
    bool stop_requested() const noexcept { return slots_.stop_requested(); }

    // Requests the stop and runs the registered callbacks on this thread, slot by slot. Returns
    // true for exactly one of all calls. Blocks: only for what the callbacks do. Cost: one exchange
    // and one membarrier, which takes some microseconds.
    bool request_stop() noexcept { return slots_.request_stop(); }

private:
    internal::asymmetric_slots<N, Stride> slots_;
};

// Runs a function when a stop is requested, on the requester's thread; or in the constructor, if
// the stop was requested before. At most one per slot may exist at a time.
// Threads: the slot's owner; see above. Blocks: the destructor, while the function runs on another
// thread. Cost: no allocation, no read-modify-write.
template <std::size_t N, std::size_t Index, class CallbackFn,
          std::size_t Stride = internal::asymmetric_stride(N)>
class asymmetric_inplace_stop_callback : internal::asymmetric_callback {
    static_assert(std::invocable<CallbackFn> && std::destructible<CallbackFn>);

public:
    using callback_type = CallbackFn;

    template <class Initializer>
        requires std::constructible_from<CallbackFn, Initializer>
    explicit asymmetric_inplace_stop_callback(
        asymmetric_inplace_stop_token<N, Index, Stride> token,
        Initializer&& init) noexcept(std::is_nothrow_constructible_v<CallbackFn, Initializer>)
        : internal::asymmetric_callback(&run, token.source_),
          callback_(std::forward<Initializer>(init)) {
        if (source == nullptr) return;
        if (token.source_->enlist(Index, *this)) [[likely]]
            return;
        source = nullptr;
        run(this);
    }
    ~asymmetric_inplace_stop_callback() {
        if (source == nullptr) return;
        static_cast<const internal::asymmetric_slots<N, Stride>*>(source)->withdraw(Index, *this);
    }

private:
    static void run(internal::asymmetric_callback* self) noexcept {
        std::forward<CallbackFn>(static_cast<asymmetric_inplace_stop_callback*>(self)->callback_)();
    }

    [[no_unique_address]] CallbackFn callback_;
};

template <std::size_t N, std::size_t Index, std::size_t Stride, class CallbackFn>
asymmetric_inplace_stop_callback(asymmetric_inplace_stop_token<N, Index, Stride>, CallbackFn)
    -> asymmetric_inplace_stop_callback<N, Index, CallbackFn, Stride>;

}  // namespace coppice
