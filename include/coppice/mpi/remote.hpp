// remote: calls a function in another process, and sends its result.
#pragma once
// The functions are named by a type, so that a number means the same function in every process:
//
//   using functions = mpi::remote_functions<&area, &name_of>;
//   functions calls(environment.world());                      // in every process
//   double a = co_await mpi::remote<&area>(calls, 2, shape{1, 2});
//
// Arguments and results are of any type that serializer.hpp can write. They are passed as copies.

#include <coppice/base/lifetime.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/remote_service.hpp>
#include <coppice/mpi/serializer.hpp>
#include <coppice/task/task.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace coppice::mpi {

template <auto... Functions>
class remote_functions;

// The exception of a function in another process, if it is no std::bad_alloc, and no
// std::system_error of a category that all processes know with a code that is not 0. what() is that
// of the exception.
class remote_error : public std::runtime_error {
public:
    // Makes the exception of a function that process `rank` has called.
    remote_error(const std::string& what, int rank) : std::runtime_error(what), rank_(rank) {}
    // Returns the process whose function has failed.
    int rank() const noexcept { return rank_; }

private:
    int rank_;
};

namespace internal {

template <class F>
struct function_of;
template <class R, class... Args>
struct function_of<R (*)(Args...)> {
    static_assert((std::is_void_v<R> || serializable<std::decay_t<R>>) &&
                      (serializable<std::decay_t<Args>> && ...),
                  "mpi::remote: arguments and results are transferable, or have a serializer");
    static_assert(((!std::is_lvalue_reference_v<Args> ||
                    std::is_const_v<std::remove_reference_t<Args>>) &&
                   ...),
                  "mpi::remote: a change of an argument would be lost, so references are const");
    using result = std::decay_t<R>;
    static bytes pack(const std::decay_t<Args>&... args) {
        bytes packed;
        write(packed, args...);
        return packed;
    }
    // An argument is moved into a parameter that is a value, and a reference sees it.
    static R apply(R (*f)(Args...), std::tuple<std::decay_t<Args>...>& args) {
        return std::apply(
            [f](std::decay_t<Args>&... a) -> R { return f(static_cast<Args&&>(a)...); }, args);
    }
    static void call(R (*f)(Args...), std::span<const std::byte> from, bytes& into) {
        // braces evaluate from left to right
        std::tuple<std::decay_t<Args>...> args{read<std::decay_t<Args>>(from)...};
        check_end(from);
        if constexpr (std::is_void_v<R>) {
            apply(f, args);
        } else {
            const result made = apply(f, args);
            write(into, made);
        }
    }
};
template <class R, class... Args>
struct function_of<R (*)(Args...) noexcept> : function_of<R (*)(Args...)> {};

template <auto F>
void call_with_bytes(std::span<const std::byte> arguments, bytes& result) {
    function_of<decltype(F)>::call(F, arguments, result);
}

template <auto... Fs>
inline constexpr remote_service::function table_of[] = {&call_with_bytes<Fs>...};

template <auto F, auto G>
consteval bool are_same() noexcept {
    if constexpr (std::is_same_v<decltype(F), decltype(G)>) {
        return F == G;
    } else {
        return false;
    }
}

// Returns the index of F; the number of functions, if it is not there.
template <auto F, auto... Fs>
consteval std::uint32_t index_of() noexcept {
    std::uint32_t at = 0;
    (void)((are_same<F, Fs>() || (++at, false)) || ...);
    return at;
}

struct remote_access {
    template <auto... Fs>
    static remote_service& service(remote_functions<Fs...>& f) noexcept {
        return f.service_;
    }
};

template <class Result>
task<Result> run_remote(remote_service& service, int rank, std::uint32_t index, bytes arguments) {
    const bytes reply = co_await service.call(rank, index, std::move(arguments));
    if constexpr (!std::is_void_v<Result>) {
        co_return unpack<Result>(reply);
    }
}

}  // namespace internal

// Lets all processes of a communicator call these functions in each other.
//
// A worker of the default pool of the called process calls the function (pool/default_pool.hpp), so
// functions may run at the same time, and one that blocks holds a worker. A function that waits for
// a call of its own waits forever if that leads back here, also through other processes, and no
// worker is free. Threads: any may call, concurrently. Lifetime: the environment outlives it, and
// it outlives its calls. While it exists, the environment looks for calls at least once in 1 ms.
template <auto... Functions>
class remote_functions : immovable {
public:
    // Collective: every process names the same functions. Blocks: as communicator::duplicate().
    // Errors: std::system_error; std::bad_alloc, after which the process has started nothing, and
    // may call it again, for which the others wait. Threads: any but the environment's own.
    explicit remote_functions(const communicator& over)
        : service_(over, internal::table_of<Functions...>) {}
    // Serves the others until all processes have come as far, and waits for the functions that run,
    // also for those whose calls were stopped: a reply that is left could reach the next object. If
    // the environment watches for failures and a process fails, it waits only for the functions
    // that run here. Collective and blocking, as the constructor. This process's calls have
    // completed, except those of functions that others have called. Such a function returns only
    // when no call that it has stopped is still under way: its reply is not waited for.
    ~remote_functions() = default;

private:
    friend internal::remote_access;
    internal::remote_service service_;
};

// Returns a sender of F(args...), called in process `rank`, which may be this one.
//
// A stop or a deadline ends the wait for the reply, and the sender is stopped. The function may
// have been called or not, and its result is lost. `calls` stays usable. Arguments of more than
// some kilobytes are sent only when the other process takes them, and no stop ends that.
//
// Errors: std::system_error, if the function has thrown one of the categories generic, system, or
// mpi, with a code that is not 0; with not_enough_memory, if it has thrown std::bad_alloc, or the
// other process has no memory for the arguments or the result; with value_too_large, if the
// arguments or the result have more than 2^31 - 1 bytes; with invalid_rank, also for any_source and
// MPI_PROC_NULL; with no_resources, for more than 16383 calls at once, where a call that was
// stopped counts until its late reply has come; with operation_canceled, if the default pool of the
// other process has ended; with the error of MPI, if that cannot send the result. remote_error for
// any other exception of the function. Cost: allocations on both sides; a message each way, which a
// process that has long been idle finds up to 1 ms late. How many calls wait makes none of them
// slower.
template <auto F, auto... Fs, class... Args>
    requires(internal::index_of<F, Fs...>() < sizeof...(Fs))
auto remote(remote_functions<Fs...>& calls, int rank, const Args&... args) {
    using function = internal::function_of<decltype(F)>;
    return internal::run_remote<typename function::result>(internal::remote_access::service(calls),
                                                           rank, internal::index_of<F, Fs...>(),
                                                           function::pack(args...));
}

}  // namespace coppice::mpi
