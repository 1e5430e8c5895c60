// send, receive, send_receive, probe: messages between two processes.
#pragma once
// Every operation takes a completion token last, as those of io do. It allocates nothing, beyond
// what the token and MPI allocate; its memory must stay until it has completed. A message to or
// from the rank MPI_PROC_NULL is none: a send completes at once, and so do receive and
// send_receive, with a count of 0, that rank, and any_tag. So the edge of a grid needs no case of
// its own.
//
// Errors: those of mpi_category(), also if the environment has failed, and
//   value_too_large     for more than 2^31 - 1 numbers, or bytes of other types. Nothing has
//                       started.
//   not_enough_memory   the environment has no memory for one more operation, or for the copies
//                       that a failure timeout needs. Nothing has started: the process may call
//                       again, for which the others wait.
//   operation_canceled  of receive, receive_all, and probe: by a stop, by a deadline, or by the end
//                       of the environment
// Without a failure timeout, MPI may still access the memory after an error in which MPI itself has
// failed (internal, other).

#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/element.hpp>
#include <coppice/mpi/internal/initiation.hpp>
#include <coppice/mpi/internal/named_request.hpp>

#include <vector>

namespace coppice::mpi {

// Sends the objects to a process. Completes when the memory may be used again; the message may
// still be on its way. A large message waits for its receive. No stop ends it, and its sender has
// no set_stopped.
template <readable_memory Range, class Token = use_await_t>
auto send(const communicator& over, Range&& objects, address to, Token&& token = Token()) {
    internal::call_arguments a(over, internal::kind::send);
    a.from = internal::memory_of(internal::span_of(objects));
    a.to_rank = to.rank;
    a.to_tag = to.tag;
    return internal::initiate<internal::named_request<internal::kind::send>>(
        a, static_cast<Token&&>(token));
}

// Receives a message of at most so many objects. Messages of one process with one tag arrive in the
// order in which they were sent. A stop or a deadline ends it if no message has matched it, and
// then nothing is lost: the next receive takes the message. If one has matched, it is received, and
// the stop has no effect; but timeout and when_any, which have decided then, drop it. Errors:
// truncated, if the message is longer; its rest is lost. Open MPI 4.1 may write beyond the memory
// then (see the pitfalls of docs/distributed.md). partial_object, if it is no whole number of
// objects; the message is lost, and how much of it is in the memory is not specified.
template <writable_memory Range, class Token = use_await_t>
auto receive(const communicator& over, Range&& objects, address from, Token&& token = Token()) {
    internal::call_arguments a(over, internal::kind::receive);
    a.into = internal::memory_of(internal::span_of(objects));
    a.source = from;
    return internal::initiate<internal::named_request<internal::kind::receive>>(
        a, static_cast<Token&&>(token));
}

// Receives a message of any size, and makes `objects` as long as it is. Stops as receive().
// Errors: not_enough_memory; partial_object, if the message is no whole number of objects;
// value_too_large, if it has more than 2^31 - 1 numbers, or bytes of other types. The message has
// not been taken then, and a receive of another type gets it. Cost: the vector's memory. It is
// found by looking for it in every turn, which costs more than a receive of a known size.
template <transferable T, class Token = use_await_t>
auto receive_all(const communicator& over, std::vector<T>& objects, address from,
                 Token&& token = Token()) {
    static_assert(!std::is_same_v<T, bool>, "std::vector<bool> is not an array");
    internal::call_arguments a(over, internal::kind::receive_all);
    a.into = internal::memory_of(std::span<T>());
    a.source = from;
    a.container = &objects;
    a.resize = &internal::resize_vector<T>;
    return internal::initiate<internal::named_request<internal::kind::receive_all>>(
        a, static_cast<Token&&>(token));
}

// Waits for a message, and tells where it is from and how many objects of type T it has. Does not
// take it: of two receivers that were told of it, one takes it. A stop or a deadline ends it.
// Errors: partial_object and value_too_large; the message stays, as with receive_all().
template <transferable T, class Token = use_await_t>
auto probe(const communicator& over, address from, Token&& token = Token()) {
    internal::call_arguments a(over, internal::kind::probe);
    a.into = internal::memory_of(std::span<T>());
    a.source = from;
    return internal::initiate<internal::named_request<internal::kind::probe>>(
        a, static_cast<Token&&>(token));
}

// Sends to one process, and receives from one, which may be another. Two processes that send large
// messages to each other at once must not wait for their sends first: this does both. Completes
// when both have ended. No stop ends it, and its sender has no set_stopped. Errors: those of
// send() and receive(). If the rank or the tag of either message is invalid, nothing has started.
// The memory of the two does not overlap.
template <readable_memory Out, writable_memory In, class Token = use_await_t>
auto send_receive(const communicator& over, Out&& objects, address to, In&& into, address from,
                  Token&& token = Token()) {
    internal::call_arguments a(over, internal::kind::send_receive);
    a.from = internal::memory_of(internal::span_of(objects));
    a.to_rank = to.rank;
    a.to_tag = to.tag;
    a.into = internal::memory_of(internal::span_of(into));
    a.source = from;
    return internal::initiate<internal::named_request<internal::kind::send_receive>>(
        a, static_cast<Token&&>(token));
}

}  // namespace coppice::mpi
