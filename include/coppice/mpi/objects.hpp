// send_object, broadcast_object, reduce_object, and others: objects of any size and type.
#pragma once
// These are the messages and collectives for objects whose bytes are not their value, such as
// strings, maps, and what a program has a serializer for (serializer.hpp). An object becomes a
// message, and an equal object at the other end. Each function returns a sender. One message has at
// most 2^31 - 1 bytes; a longer one is the error value_too_large.
//
// Errors: those of message.hpp and collective.hpp; std::bad_alloc; what a serializer throws; and
// std::system_error with bad_message, if what has come is no such object. Cost: the frame of a
// task, and the memory of the message.
//
// A collective that fails at one process fails at all: there with its error, and elsewhere with
// errc::failed_elsewhere. No object of the program has changed then, so an object that a collective
// changes is of a type whose move assignment does not throw. A collective consists of several
// collective calls, so no other collective operation of the communicator may start before it has
// completed. std::bad_alloc from the call itself: the process has not started, and may call again.

#include <coppice/exec/write_env.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/object_tree.hpp>
#include <coppice/mpi/internal/share.hpp>
#include <coppice/mpi/message.hpp>
#include <coppice/mpi/serializer.hpp>
#include <coppice/mpi/varying.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace coppice::mpi {

namespace internal {

// Calls f(). Returns its exception, or a null one.
template <class F>
std::exception_ptr exception_of(F f) noexcept {
    try {
        f();
        return nullptr;
    } catch (...) {
        return std::current_exception();
    }
}

inline task<> run_send_object(const communicator& over, bytes message, address to) {
    co_await send(over, message, to);
}

template <class T>
task<envelope> run_receive_object(const communicator& over, T& object, address from) {
    bytes message;
    envelope e = co_await receive_all(over, message, from);
    if (e.source == MPI_PROC_NULL) co_return e;
    object = unpack<T>(message);
    e.count = 1;
    co_return e;
}

template <class T>
constexpr void check_assignment() noexcept {
    static_assert(std::is_nothrow_move_assignable_v<T>,
                  "mpi: a collective changes the object once all processes have succeeded, so the "
                  "move assignment of T must be noexcept");
}

// What the root tells before an object.
inline constexpr std::uint64_t no_object = UINT64_MAX;

template <class T>
task<> run_broadcast_object(const communicator& over, T& object, int root) {
    const bool is_root = over.rank() == root;
    bytes message;
    std::exception_ptr failure;
    if (is_root) failure = exception_of([&message, &object] { write(message, object); });
    std::array<std::uint64_t, 1> size{failure ? no_object : message.size()};
    co_await take_part_in_broadcast(over, size, root);
    throw_if_failed(failure, size[0] == no_object);
    agreement room(
        exception_of([&message, &size] { message.resize(static_cast<std::size_t>(size[0])); }));
    co_await room.reach(over);
    room.check();
    co_await take_part_in_broadcast(over, message, root);
    std::optional<T> received;
    if (!is_root)
        failure = exception_of([&received, &message] { received.emplace(unpack<T>(message)); });
    agreement done(std::move(failure));
    co_await done.reach(over);
    done.check();
    if (received) object = std::move(*received);
}

// The message of an object in a gather or scatter begins with one byte, because one without bytes
// means that its process has failed.
template <class T>
T unpack_part(std::span<const std::byte> part) {
    static_cast<void>(read<bool>(part));
    return unpack<T>(part);
}

// Gathers at one process, or at all if there is no root. `parts` has the memory for the sizes.
template <class T>
task<> run_gather_objects(const communicator& over, const T& mine, std::vector<T>& all,
                          std::optional<int> root, parted<std::byte> parts) {
    bytes message;  // stays empty if this fails
    std::exception_ptr failure = exception_of([&message, &mine] { write(message, true, mine); });
    if (root) {
        co_await gather_v(over, message, parts, *root);
    } else {
        co_await all_gather_v(over, message, parts);
    }
    std::vector<T> gathered;
    const bool is_receiver = !root || root == over.rank();
    if (!failure && is_receiver) {
        failure = exception_of([&gathered, &parts, &over] {
            gathered.reserve(size_of(over));
            for (int n = 0; n != over.size(); ++n) {
                if (parts.parts.count(n) == 0) return;  // the agreement tells it
                gathered.push_back(unpack_part<T>(parts.part(n)));
            }
        });
    }
    agreement done(std::move(failure));
    co_await done.reach(over);
    done.check();
    if (is_receiver) all.swap(gathered);
}

template <class T>
task<> run_scatter_objects(const communicator& over, std::span<const T> objects, T& mine, int root,
                           partition to, parted<std::byte> part) {
    bytes message;
    std::exception_ptr failure;
    if (over.rank() == root) {
        failure = exception_of([&objects, &message, &to, &over] {
            if (objects.size() != size_of(over))
                throw std::system_error(make_error_code(errc::invalid_count),
                                        "mpi::scatter_objects: one object for each process");
            bytes whole;
            std::vector<std::size_t> counts;
            for (const T& each : objects) {
                const std::size_t before = whole.size();
                write(whole, true, each);
                counts.push_back(whole.size() - before);
            }
            to = partition(counts);
            message.swap(whole);
        });
    }
    co_await scatter_v(over, message, to, part, root);
    std::optional<T> received;
    if (!part.objects.empty())
        failure =
            exception_of([&received, &part] { received.emplace(unpack_part<T>(part.objects)); });
    agreement done(std::move(failure));
    co_await done.reach(over);
    done.check();
    mine = std::move(*received);
}

// Combines what has come with what this process has: `combined`, or `object` alone.
template <class T, class Combine>
void take_object(object_tree& tree, const T& object, std::optional<T>& combined, Combine& combine) {
    T came = unpack<T>(tree.came());
    if (tree.is_result()) {
        combined.emplace(std::move(came));
        tree.pass_on();
    } else if (combined) {
        T both = std::invoke(combine, std::move(*combined), std::move(came));
        combined.emplace(std::move(both));
    } else {
        combined.emplace(std::invoke(combine, object, std::move(came)));
    }
}

template <class T, class Combine>
task<> run_reduce_object(const communicator& over, T& object, Combine combine, object_tree tree) {
    tree.check_root();
    std::optional<T> combined;
    while (tree.enter_next_level()) {
        if (tree.needs_message()) {
            tree.note(exception_of([&tree, &object, &combined] {
                bytes message;
                write(message, combined ? *combined : std::as_const(object));
                tree.write(std::move(message));
            }));
        }
        for (const object_tree::part p : object_tree::parts) co_await tree.pass(p, over);
        if (tree.has_come()) {
            tree.note(exception_of([&tree, &object, &combined, &combine] {
                take_object(tree, std::as_const(object), combined, combine);
            }));
        }
    }
    agreement done(tree.failure());
    co_await done.reach(over);
    done.check();
    if (combined && tree.gets_result()) object = std::move(*combined);
}

// Returns memory for the sizes of so many parts.
inline parted<std::byte> room_for_parts(int parts) {
    parted<std::byte> made;
    partition_access::resize(made.parts, static_cast<std::size_t>(parts));
    return made;
}

}  // namespace internal

// What combines two objects to one. Called with an lvalue only for the object of the program.
template <class F, class T>
concept combines_objects =
    std::move_constructible<F> && std::is_invocable_r_v<T, F&, const T&, T> &&
    std::is_invocable_r_v<T, F&, T, T>;

// Sends an object to a process, which receives it by receive_object(). The call reads the object,
// and its errors are thrown by the call. No stop ends the operation.
template <serializable T>
auto send_object(const communicator& over, const T& object, address to) {
    internal::bytes message;
    internal::write(message, object);
    return execution::unstoppable(internal::run_send_object(over, std::move(message), to));
}

// Receives the next message that matches as one object, and completes with its envelope; the count
// is 1. From MPI_PROC_NULL there is none, the count is 0, and `object` stays as it is. A stop or a
// deadline leaves the message to the next receive. If the message is no T, or there is no memory
// for the object, the message is lost, and `object` stays as it is. Lifetime: `object` outlives it.
template <serializable T>
task<envelope> receive_object(const communicator& over, T& object, address from) {
    return internal::run_receive_object<T>(over, object, from);
}

// Sends the object of process `root` to all others, whose objects become equal to it. Lifetime:
// `object` outlives the operation. No stop ends it.
template <serializable T>
auto broadcast_object(const communicator& over, T& object, int root) {
    internal::check_assignment<T>();
    return execution::unstoppable(internal::run_broadcast_object<T>(over, object, root));
}

// Collects the object of each process at process `root`, in order of the ranks. Elsewhere `all` is
// not used. Lifetime: `mine` and `all` outlive the operation. No stop ends it.
template <serializable T>
auto gather_objects(const communicator& over, const T& mine, std::vector<T>& all, int root) {
    return execution::unstoppable(internal::run_gather_objects<T>(
        over, mine, all, root, internal::room_for_parts(over.size())));
}

// Collects them likewise at every process.
template <serializable T>
auto all_gather_objects(const communicator& over, const T& mine, std::vector<T>& all) {
    return execution::unstoppable(internal::run_gather_objects<T>(
        over, mine, all, std::nullopt, internal::room_for_parts(over.size())));
}

// Gives object n of process `root` to process n. Elsewhere `objects` is not used, and may be empty.
// Errors: also invalid_count, if the root has not one object for each process. Lifetime: `objects`
// and `mine` outlive the operation. No stop ends it.
template <serializable T>
auto scatter_objects(const communicator& over, const std::vector<T>& objects, T& mine, int root) {
    internal::check_assignment<T>();
    return execution::unstoppable(internal::run_scatter_objects<T>(
        over, objects, mine, root, internal::room_for_parts(over.size()).parts,
        internal::room_for_parts(1)));
}

// Combines the objects of all processes, and makes the object of process `root` the result.
// Elsewhere `object` stays as it is.
//
// `combine` must be associative. It need not be commutative: it gets the combination of some ranks,
// and then that of the ranks that follow them. The processes of a tree call it, each one at a time,
// on the thread where the operation continues. A result that depends on the grouping, such as a
// sum of floating-point numbers, depends on the number of processes. One process alone calls
// nothing, and `object` stays as it is.
//
// Errors: also what `combine` throws; invalid_root, at all processes. Cost: each process sends its
// combination once. With n processes there are log2(n) levels of the tree, with three collective
// calls each, and one more to another root than process 0. Also the memory for two objects and two
// messages. Lifetime: `object` outlives the operation. No stop ends it.
template <serializable T, combines_objects<T> Combine>
auto reduce_object(const communicator& over, T& object, Combine combine, int root) {
    internal::check_assignment<T>();
    return execution::unstoppable(internal::run_reduce_object<T, Combine>(
        over, object, std::move(combine), internal::object_tree(over, root)));
}

// Combines likewise, and makes the objects of all processes the result. Cost: the result goes down
// the same tree, by as many calls again.
template <serializable T, combines_objects<T> Combine>
auto all_reduce_object(const communicator& over, T& object, Combine combine) {
    internal::check_assignment<T>();
    return execution::unstoppable(internal::run_reduce_object<T, Combine>(
        over, object, std::move(combine), internal::object_tree(over)));
}

}  // namespace coppice::mpi
