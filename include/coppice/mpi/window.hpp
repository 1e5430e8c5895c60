// window: memory of every process that the others put into and get from, without a receive.
#pragma once
// Operations take a completion token last. No stop ends them, and their senders have no
// set_stopped. put() and accumulate() complete when their memory may be used again; flush() tells
// that they have arrived. Operations that touch the same object between two fences must be
// accumulations of one operator, or all compare_exchange(), or their results are unspecified. A
// lock that is made of compare_exchange() orders them too, if its owner flushes what it has put
// before it unlocks.
//
// Errors, before MPI is called: invalid_rank; out_of_range for objects that the rank does not have;
// value_too_large for more than 2^31 - 1 numbers or bytes. Otherwise those of mpi_category().
// Lifetime: the window and the memory outlive the operation. Cost: no allocation here.

#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/element.hpp>
#include <coppice/mpi/internal/initiation.hpp>
#include <coppice/mpi/internal/window_request.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

namespace coppice::mpi {

namespace internal {

template <class T>
struct window_access;

}  // namespace internal

// Objects of type T in every process of a communicator, a number of its own in each.
//
// MPI may need the help of the process that has the memory. So while a process has a window, its
// environment looks for such work at least once in 1 ms, and never sleeps for longer.
//
// Threads: any may start operations, concurrently. Lifetime: the environment outlives it, and it
// outlives its operations. Source: MPI 3.1, 11 (MPI_Win_allocate under MPI_Win_lock_all).
template <transferable T>
class window : immovable {
public:
    // Allocates `count` objects, all of whose bytes are 0, which may be no object. Collective, with
    // any count in each process. Blocks: until all processes have called it, and the environment
    // with it; forever, if MPI has no shared memory for it (see the pitfalls of
    // docs/distributed.md). Errors: std::system_error; std::bad_alloc, after which the process has
    // started nothing, and may call it again, for which the others wait. Threads: any but the
    // environment's own.
    window(const communicator& over, std::size_t count)
        : state_(over, count, sizeof(T), alignof(T)) {}
    // Collective and blocking, as the constructor. All operations of this process have completed.
    ~window() = default;

    // Returns the objects of this process. Others access them too: read what they have put after a
    // fence, and write what they will get before one.
    std::span<T> local() noexcept {
        return {static_cast<T*>(state_.base()), state_.count(state_.rank())};
    }
    // Returns how many objects a process has; 0 for a rank that there is not.
    std::size_t count(int rank) const noexcept { return state_.count(rank); }

private:
    friend internal::window_access<T>;
    internal::window_state state_;
};

namespace internal {

template <class T>
struct window_access {
    static window_arguments arguments(window<T>& w, window_call what, int rank,
                                      std::size_t offset) noexcept {
        return window_arguments(w.state_, what, rank, offset);
    }
};

template <class Range, class T>
concept gives_objects_of =
    readable_memory<Range> && std::is_same_v<std::remove_const_t<object_of<Range>>, T>;
template <class Range, class T>
concept takes_objects_of = writable_memory<Range> && std::is_same_v<object_of<Range>, T>;

template <class T, class Token>
auto access_window(const window_arguments& a, Token&& token) {
    return initiate<window_request>(a, static_cast<Token&&>(token));
}

}  // namespace internal

// Copies the objects to those of process `rank` that start at `offset`.
template <class T, internal::gives_objects_of<T> Range, class Token = use_await_t>
auto put(window<T>& into, Range&& objects, int rank, std::size_t offset, Token&& token = Token()) {
    auto a = internal::window_access<T>::arguments(into, internal::window_call::put, rank, offset);
    a.from = internal::memory_of(internal::span_of(objects));
    return internal::access_window<T>(a, static_cast<Token&&>(token));
}

// Copies objects of process `rank`, from `offset` on, as many as `objects` has. Completes when they
// are here.
template <class T, internal::takes_objects_of<T> Range, class Token = use_await_t>
auto get(window<T>& from, Range&& objects, int rank, std::size_t offset, Token&& token = Token()) {
    auto a = internal::window_access<T>::arguments(from, internal::window_call::get, rank, offset);
    a.into = internal::memory_of(internal::span_of(objects));
    return internal::access_window<T>(a, static_cast<Token&&>(token));
}

// Combines the numbers with those of process `rank` from `offset` on, which keeps the results. Each
// number is combined atomically with respect to other accumulations.
template <reducible T, internal::gives_objects_of<T> Range, class Token = use_await_t>
auto accumulate(window<T>& into, Range&& numbers, int rank, std::size_t offset, reduction_of<T> op,
                Token&& token = Token()) {
    auto a = internal::window_access<T>::arguments(into, internal::window_call::accumulate, rank,
                                                   offset);
    a.from = internal::memory_of(internal::span_of(numbers));
    a.op = op;
    return internal::access_window<T>(a, static_cast<Token&&>(token));
}

// Combines likewise, and copies what was there before to `before`, which is as long as `numbers`.
// Completes when both has happened.
template <reducible T, internal::gives_objects_of<T> Range, internal::takes_objects_of<T> Before,
          class Token = use_await_t>
auto fetch_accumulate(window<T>& into, Range&& numbers, Before&& before, int rank,
                      std::size_t offset, reduction_of<T> op, Token&& token = Token()) {
    auto a = internal::window_access<T>::arguments(into, internal::window_call::fetch_accumulate,
                                                   rank, offset);
    a.from = internal::memory_of(internal::span_of(numbers));
    a.into = internal::memory_of(internal::span_of(before));
    a.op = op;
    COPPICE_CHECK(a.from.count == a.into.count,
                  "mpi::fetch_accumulate: `before` must be as long as `numbers`");
    return internal::access_window<T>(a, static_cast<Token&&>(token));
}

// Compares the integer of process `rank` at `offset` with `expected`, and replaces it by `desired`
// if they are equal. Both is one step with respect to other compare_exchange(). Completes when it
// has happened, with the integer that was there before: the exchange was made if that is
// `expected`. MPI has no call for it that does not block: the environment makes no other call until
// it has happened, which takes up to 1 ms if the process that has the memory must help.
template <reducible T, class Token = use_await_t>
    requires std::is_integral_v<T>
auto compare_exchange(window<T>& w, std::type_identity_t<T> expected,
                      std::type_identity_t<T> desired, int rank, std::size_t offset,
                      Token&& token = Token()) {
    const internal::exchange_arguments<T> a{
        internal::window_access<T>::arguments(w, internal::window_call::compare_exchange, rank,
                                              offset),
        desired, expected};
    return internal::initiate<internal::exchange_request<T>>(a, static_cast<Token&&>(token));
}

// Completes when all operations on the memory of process `rank` have happened there that this
// process had completed before. MPI has no call for it that does not block: the environment makes
// no other call until that process has answered, which takes it up to 1 ms.
template <class T, class Token = use_await_t>
auto flush(window<T>& w, int rank, Token&& token = Token()) {
    return internal::access_window<T>(
        internal::window_access<T>::arguments(w, internal::window_call::flush, rank, 0),
        static_cast<Token&&>(token));
}

// Completes when all processes have started it. Then all operations that they had completed before
// have happened, and each process sees those on its own memory. Blocks the environment as flush().
template <class T, class Token = use_await_t>
auto fence(window<T>& w, Token&& token = Token()) {
    return internal::access_window<T>(
        internal::window_access<T>::arguments(w, internal::window_call::fence, 0, 0),
        static_cast<Token&&>(token));
}

}  // namespace coppice::mpi
