// gather_v, scatter_v, all_gather_v, all_to_all_v: collectives with a size for each process.
#pragma once
// Each has two forms. With a partition, the receiver knows the sizes: the operation is one call of
// MPI. With a parted<T>, the receiver does not: the operation tells it the sizes, and makes room.
// That form is three collective calls in a row, so no other collective operation of the
// communicator may start before it has completed. If one process has no memory for its objects, or
// gets more than 2^31 - 1, all processes get that error, and no objects have moved. std::bad_alloc
// from the call itself: there is no memory for the sizes, which are two numbers for each process,
// unless `into` has been used before. The process has not started then, and may call again, for
// which the others wait. The same holds for the error not_enough_memory without a failure timeout,
// if the environment has no memory for one more operation; with one, the environment fails then.
//
// As those of collective.hpp, operations here are of all processes, and no stop ends them.
// Partitions live until the operation has completed. `from` and `into` do not overlap, and no
// partition that is passed is `into.parts`. Counts are of objects, also of structs. Errors: those
// of message.hpp. With partitions, two processes agree about the size of each part. If they do not,
// a receiver may get truncated, keep objects that it had, or wait forever, and so may the other
// processes. A partition that does not fit its memory stops the process.

#include <coppice/base/internal/check.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/initiation.hpp>
#include <coppice/mpi/internal/parts_request.hpp>
#include <coppice/mpi/partition.hpp>

#include <type_traits>

namespace coppice::mpi {

namespace internal {

template <class From, class T>
concept objects_to =
    readable_memory<From> && std::is_same_v<std::remove_const_t<object_of<From>>, T>;

template <class T>
void learn_into(parts_arguments& a, parted<T>& into, int parts) {
    partition_access::resize(into.parts, static_cast<std::size_t>(parts));
    a.into_parts = &into.parts;
    a.learned = &into.parts;
    a.container = &into.objects;
    a.into = memory_of(std::span<T>());  // its type; make_room() adds the memory
    a.resize = &resize_vector<T>;
}

template <class Range>
bool fits(const communicator& over, const partition& parts, const Range& range) noexcept {
    return parts.parts() == over.size() && parts.total() == range.size();
}

template <class Token>
auto initiate_parts(const parts_arguments& a, Token&& token) {
    return initiate<parts_request>(a, static_cast<Token&&>(token));
}

}  // namespace internal

// Collects the objects of all processes at process `root`, ordered by rank; `parts` says how many
// each gives. Elsewhere `into` and `parts` are not used, and may be empty.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into>
auto gather_v(const communicator& over, From&& from, Into&& into, const partition& parts, int root,
              Token&& token = Token()) {
    const auto in = internal::span_of(into);
    COPPICE_CHECK(over.rank() != root || internal::fits(over, parts, in),
                  "mpi::gather_v: at the root, `parts` must have a part for each process, and "
                  "`into` must be as long as all parts");
    internal::parts_arguments a(over, internal::parts_kind::gather);
    a.from = internal::memory_of(internal::span_of(from));
    a.into = internal::memory_of(in);
    a.into_parts = &parts;
    a.root = root;
    return internal::initiate_parts(a, static_cast<Token&&>(token));
}

// Collects likewise, without knowing the sizes. Then every process knows `into.parts`, and the root
// has `into.objects`, which is empty elsewhere.
template <transferable T, internal::objects_to<T> From, class Token = use_await_t>
auto gather_v(const communicator& over, From&& from, parted<T>& into, int root,
              Token&& token = Token()) {
    internal::parts_arguments a(over, internal::parts_kind::gather);
    a.from = internal::memory_of(internal::span_of(from));
    a.root = root;
    internal::learn_into(a, into, over.size());
    return internal::initiate_parts(a, static_cast<Token&&>(token));
}

// Collects the objects of all processes at every process.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into>
auto all_gather_v(const communicator& over, From&& from, Into&& into, const partition& parts,
                  Token&& token = Token()) {
    const auto in = internal::span_of(into);
    COPPICE_CHECK(internal::fits(over, parts, in),
                  "mpi::all_gather_v: `parts` must have a part for each process, and `into` must "
                  "be as long as all parts");
    internal::parts_arguments a(over, internal::parts_kind::all_gather);
    a.from = internal::memory_of(internal::span_of(from));
    a.into = internal::memory_of(in);
    a.into_parts = &parts;
    return internal::initiate_parts(a, static_cast<Token&&>(token));
}

// Collects likewise, without knowing the sizes.
template <transferable T, internal::objects_to<T> From, class Token = use_await_t>
auto all_gather_v(const communicator& over, From&& from, parted<T>& into, Token&& token = Token()) {
    internal::parts_arguments a(over, internal::parts_kind::all_gather);
    a.from = internal::memory_of(internal::span_of(from));
    internal::learn_into(a, into, over.size());
    return internal::initiate_parts(a, static_cast<Token&&>(token));
}

// Distributes the objects of process `root`: part n of `from` to process n. Elsewhere `from` and
// `parts` are not used, and may be empty. `into` is as long as the part of this process; in longer
// memory, an implementation of MPI may leave the rest as it is, and need not report it.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into>
auto scatter_v(const communicator& over, From&& from, const partition& parts, Into&& into, int root,
               Token&& token = Token()) {
    const auto out = internal::span_of(from);
    COPPICE_CHECK(over.rank() != root || internal::fits(over, parts, out),
                  "mpi::scatter_v: at the root, `parts` must have a part for each process, and "
                  "`from` must be as long as all parts");
    internal::parts_arguments a(over, internal::parts_kind::scatter);
    a.from = internal::memory_of(out);
    a.into = internal::memory_of(internal::span_of(into));
    a.from_parts = &parts;
    a.root = root;
    return internal::initiate_parts(a, static_cast<Token&&>(token));
}

// Distributes likewise, to receivers that do not know the sizes. `into.parts` has one part: that of
// this process.
template <transferable T, internal::objects_to<T> From, class Token = use_await_t>
auto scatter_v(const communicator& over, From&& from, const partition& parts, parted<T>& into,
               int root, Token&& token = Token()) {
    const auto out = internal::span_of(from);
    COPPICE_CHECK(over.rank() != root || internal::fits(over, parts, out),
                  "mpi::scatter_v: at the root, `parts` must have a part for each process, and "
                  "`from` must be as long as all parts");
    internal::parts_arguments a(over, internal::parts_kind::scatter);
    a.from = internal::memory_of(out);
    a.from_parts = &parts;
    a.root = root;
    internal::learn_into(a, into, 1);
    return internal::initiate_parts(a, static_cast<Token&&>(token));
}

// Sends part n of `from` to process n, and receives what process n sends as part n of `into`.
template <readable_memory From, writable_memory Into, class Token = use_await_t>
    requires internal::same_objects<From, Into>
auto all_to_all_v(const communicator& over, From&& from, const partition& from_parts, Into&& into,
                  const partition& into_parts, Token&& token = Token()) {
    const auto out = internal::span_of(from);
    const auto in = internal::span_of(into);
    COPPICE_CHECK(
        internal::fits(over, from_parts, out) && internal::fits(over, into_parts, in),
        "mpi::all_to_all_v: each partition must have a part for each process, and the memory must "
        "be as long as all parts");
    internal::parts_arguments a(over, internal::parts_kind::all_to_all);
    a.from = internal::memory_of(out);
    a.into = internal::memory_of(in);
    a.from_parts = &from_parts;
    a.into_parts = &into_parts;
    return internal::initiate_parts(a, static_cast<Token&&>(token));
}

// Exchanges likewise, without knowing the sizes of what is received.
template <transferable T, internal::objects_to<T> From, class Token = use_await_t>
auto all_to_all_v(const communicator& over, From&& from, const partition& from_parts,
                  parted<T>& into, Token&& token = Token()) {
    const auto out = internal::span_of(from);
    COPPICE_CHECK(internal::fits(over, from_parts, out),
                  "mpi::all_to_all_v: the partition must have a part for each process, and `from` "
                  "must be as long as all parts");
    internal::parts_arguments a(over, internal::parts_kind::all_to_all);
    a.from = internal::memory_of(out);
    a.from_parts = &from_parts;
    internal::learn_into(a, into, over.size());
    return internal::initiate_parts(a, static_cast<Token&&>(token));
}

}  // namespace coppice::mpi
