// barrier, broadcast, reduce, scan, and others: operations of all processes of a communicator.
#pragma once
// Every process of the communicator starts the operation, with the same sizes and the same root.
// MPI cannot cancel it, so no stop ends it, and its sender has no set_stopped: a process that left
// it out would leave the others waiting. `from` and `into` do not overlap, except where a function
// says that they may be the same memory. Memory, cost, and errors are those of message.hpp; a
// process that gets not_enough_memory may call again, for which the others wait. A size that does
// not fit stops the process.

#include <coppice/base/internal/check.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/element.hpp>
#include <coppice/mpi/internal/initiation.hpp>
#include <coppice/mpi/internal/named_request.hpp>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace coppice::mpi {

namespace internal {

// True for memory of the same type, ignoring const.
template <class From, class Into>
concept same_objects =
    std::is_same_v<std::remove_const_t<object_of<From>>, std::remove_const_t<object_of<Into>>>;

template <kind K, class From, class Into, class Token>
auto collect(const communicator& over, const From& from, const Into& into, int root,
             Token&& token) {
    call_arguments a(over, K);
    a.from = memory_of(span_of(from));
    a.into = memory_of(span_of(into));
    a.to_rank = root;
    return initiate<named_request<K>>(a, static_cast<Token&&>(token));
}

// Returns the number that changes no other number when `op` combines them; a logical one changes
// no truth.
template <class T>
constexpr T identity_of(integer_reduction op) noexcept {
    using limits = std::numeric_limits<T>;
    switch (op.index()) {
        case reduction::product:
        case reduction::logical_and:
            return T(1);
        case reduction::minimum:
            return limits::has_infinity ? limits::infinity() : limits::max();
        case reduction::maximum:
            return limits::has_infinity ? -limits::infinity() : limits::lowest();
        case reduction::bit_and:
            if constexpr (std::is_integral_v<T>) return static_cast<T>(~T(0));
            break;
        default:
            break;
    }
    return T(0);
}

template <class T>
void fill_with_identity(const memory& into, integer_reduction op) noexcept {
    std::fill_n(static_cast<T*>(into.data), into.count, identity_of<T>(op));
}

template <kind K, class T, class Token>
auto start_combining(const communicator& over, std::span<const T> from, std::span<T> into,
                     integer_reduction op, int root, Token&& token) {
    call_arguments a(over, K);
    a.from = memory_of(from);
    a.into = memory_of(into);
    a.op = op;
    a.to_rank = root;
    if (K == kind::exclusive_scan && over.rank() == 0) a.fill = &fill_with_identity<T>;
    return initiate<named_request<K>>(a, static_cast<Token&&>(token));
}

inline std::size_t size_of(const communicator& over) noexcept {
    static_cast<void>(communicator_access::owner(over));  // an empty one may have none
    return static_cast<std::size_t>(over.size());
}

}  // namespace internal

// Gives every process the bits that all have given: agree(over, true) is true if all have said so.
// If the environment can recover, it gives the same at all processes that live, also if some have
// failed, whose bits may be left out, and on a communicator that was revoked: so all know whether
// the step before has ended well everywhere. Source: MPIX_Comm_iagree of ULFM.
template <class Token = use_await_t>
auto agree(const communicator& over, int bits, Token&& token = Token()) {
    return internal::initiate<internal::agree_request>(
        internal::agree_request::arguments{&internal::communicator_access::owner(over),
                                           over.native_handle(), bits},
        static_cast<Token&&>(token));
}

// Completes when all processes have started it.
template <class Token = use_await_t>
auto barrier(const communicator& over, Token&& token = Token()) {
    return internal::initiate<internal::named_request<internal::kind::barrier>>(
        internal::call_arguments(over, internal::kind::barrier), static_cast<Token&&>(token));
}

// Copies the objects of process `root` to all others.
template <writable_memory Range, class Token = use_await_t>
auto broadcast(const communicator& over, Range&& objects, int root, Token&& token = Token()) {
    internal::call_arguments a(over, internal::kind::broadcast);
    a.into = internal::memory_of(internal::span_of(objects));
    a.to_rank = root;
    return internal::initiate<internal::named_request<internal::kind::broadcast>>(
        a, static_cast<Token&&>(token));
}

// Combines the numbers of all processes, each with those at the same index, into `into` at process
// `root`. Elsewhere `into` is not used, and may be empty. `from` and `into` may be the same memory.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into> && reducible<internal::object_of<Into>>
auto reduce(const communicator& over, From&& from, Into&& into,
            reduction_of<internal::object_of<Into>> op, int root, Token&& token = Token()) {
    using number = internal::object_of<Into>;
    const std::span<const number> out = internal::span_of(from);
    const std::span<number> in = internal::span_of(into);
    COPPICE_CHECK(over.rank() != root || in.size() == out.size(),
                  "mpi::reduce: `into` must be as long as `from` at the root");
    return internal::start_combining<internal::kind::reduce, number>(over, out, in, op, root,
                                                                     static_cast<Token&&>(token));
}

// Combines likewise, and gives the result to all processes.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into> && reducible<internal::object_of<Into>>
auto all_reduce(const communicator& over, From&& from, Into&& into,
                reduction_of<internal::object_of<Into>> op, Token&& token = Token()) {
    using number = internal::object_of<Into>;
    const std::span<const number> out = internal::span_of(from);
    const std::span<number> in = internal::span_of(into);
    COPPICE_CHECK(in.size() == out.size(), "mpi::all_reduce: `into` must be as long as `from`");
    return internal::start_combining<internal::kind::all_reduce, number>(
        over, out, in, op, 0, static_cast<Token&&>(token));
}

// Combines likewise, and gives the n-th of equal parts of the result to process n. `into` is as
// long as one part, and no part of `from`.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into> && reducible<internal::object_of<Into>>
auto reduce_scatter(const communicator& over, From&& from, Into&& into,
                    reduction_of<internal::object_of<Into>> op, Token&& token = Token()) {
    using number = internal::object_of<Into>;
    const std::span<const number> out = internal::span_of(from);
    const std::span<number> in = internal::span_of(into);
    COPPICE_CHECK(
        out.size() == in.size() * internal::size_of(over),
        "mpi::reduce_scatter: `from` must have a part as long as `into` for each process");
    return internal::start_combining<internal::kind::reduce_scatter, number>(
        over, out, in, op, 0, static_cast<Token&&>(token));
}

// Combines the numbers of all processes up to this one, each with those at the same index. `from`
// and `into` may be the same memory.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into> && reducible<internal::object_of<Into>>
auto scan(const communicator& over, From&& from, Into&& into,
          reduction_of<internal::object_of<Into>> op, Token&& token = Token()) {
    using number = internal::object_of<Into>;
    const std::span<const number> out = internal::span_of(from);
    const std::span<number> in = internal::span_of(into);
    COPPICE_CHECK(in.size() == out.size(), "mpi::scan: `into` must be as long as `from`");
    return internal::start_combining<internal::kind::scan, number>(over, out, in, op, 0,
                                                                   static_cast<Token&&>(token));
}

// Combines the numbers of all processes before this one. Process 0 gets the identity of `op`: 0 for
// a sum, 1 for a product, the number furthest from the minimum or the maximum, all bits for
// bit_and, 1 for logical_and, and 0 for the others.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into> && reducible<internal::object_of<Into>>
auto exclusive_scan(const communicator& over, From&& from, Into&& into,
                    reduction_of<internal::object_of<Into>> op, Token&& token = Token()) {
    using number = internal::object_of<Into>;
    const std::span<const number> out = internal::span_of(from);
    const std::span<number> in = internal::span_of(into);
    COPPICE_CHECK(in.size() == out.size(), "mpi::exclusive_scan: `into` must be as long as `from`");
    return internal::start_combining<internal::kind::exclusive_scan, number>(
        over, out, in, op, 0, static_cast<Token&&>(token));
}

// Collects the objects of all processes at process `root`, ordered by rank. Elsewhere `into` is not
// used, and may be empty. All processes give equally many.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into>
auto gather(const communicator& over, From&& from, Into&& into, int root, Token&& token = Token()) {
    const auto out = internal::span_of(from);
    const auto in = internal::span_of(into);
    COPPICE_CHECK(over.rank() != root || in.size() == out.size() * internal::size_of(over),
                  "mpi::gather: `into` must hold what all processes give at the root");
    return internal::collect<internal::kind::gather>(over, out, in, root,
                                                     static_cast<Token&&>(token));
}

// Collects likewise, and gives the result to all processes.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into>
auto all_gather(const communicator& over, From&& from, Into&& into, Token&& token = Token()) {
    const auto out = internal::span_of(from);
    const auto in = internal::span_of(into);
    COPPICE_CHECK(in.size() == out.size() * internal::size_of(over),
                  "mpi::all_gather: `into` must hold what all processes give");
    return internal::collect<internal::kind::all_gather>(over, out, in, 0,
                                                         static_cast<Token&&>(token));
}

// Distributes the objects of process `root`, equally many to each, ordered by rank. Elsewhere
// `from` is not used, and may be empty.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into>
auto scatter(const communicator& over, From&& from, Into&& into, int root,
             Token&& token = Token()) {
    const auto out = internal::span_of(from);
    const auto in = internal::span_of(into);
    COPPICE_CHECK(over.rank() != root || out.size() == in.size() * internal::size_of(over),
                  "mpi::scatter: `from` must hold what all processes get at the root");
    return internal::collect<internal::kind::scatter>(over, out, in, root,
                                                      static_cast<Token&&>(token));
}

// Sends the n-th of equal parts of `from` to process n, and receives its part for this process as
// the n-th part of `into`. `from` and `into` may be the same memory at all processes.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into>
auto all_to_all(const communicator& over, From&& from, Into&& into, Token&& token = Token()) {
    const auto out = internal::span_of(from);
    const auto in = internal::span_of(into);
    COPPICE_CHECK(in.size() == out.size() && out.size() % internal::size_of(over) == 0,
                  "mpi::all_to_all: `from` and `into` must be equally long, and have a part for "
                  "each process");
    return internal::collect<internal::kind::all_to_all>(over, out, in, 0,
                                                         static_cast<Token&&>(token));
}

}  // namespace coppice::mpi
