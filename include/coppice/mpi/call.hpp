// call: any other non-blocking call of MPI, as an operation.
#pragma once

#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/error.hpp>
#include <coppice/mpi/internal/initiation.hpp>

#include <mpi.h>
#include <concepts>
#include <type_traits>

namespace coppice::mpi {

namespace internal {

template <class F>
class function_request : public request {
public:
    struct arguments {
        engine* owner;
        F function;
    };
    using value_type = void;
    static constexpr const char* name = "call";
    static constexpr bool can_cancel = false;
    explicit function_request(const arguments& a) noexcept
        : request(*a.owner, MPI_COMM_NULL, can_cancel), function_(a.function) {}

protected:
    ~function_request() = default;

private:
    outcome start(handles& made) noexcept final {
        made.returned = function_(&made.each[0]);
        if (made.returned != MPI_SUCCESS) return outcome::failed;
        if (made.each[0] != MPI_REQUEST_NULL) return outcome::started;
        fail(errc::invalid_request);
        return outcome::failed;
    }
    F function_;
};

}  // namespace internal

// Calls f(&request) on the environment's thread, and completes when that request has. `f` makes one
// non-blocking call of MPI with that MPI_Request, and returns what the call returned:
//
//   co_await mpi::call(over, [=](MPI_Request* r) noexcept {
//       return MPI_Iscan(from, into, 1, MPI_INT, MPI_SUM, handle, r);
//   });
//
// The request must not be persistent. Nothing cancels it, so its sender has no set_stopped. `over`
// only names the environment. Errors: those of the call; invalid_request, if `f` has started none
// (Open MPI 4.1 and MPICH 4.0 start one also if there is nothing to do). Lifetime: `f` is kept
// until the end, and is copied before it is called. With a failure timeout, what MPI accesses must
// not be inside `f`: after the error process_failed, `f` is gone, and MPI may go on.
template <std::copy_constructible F, class Token = use_await_t>
    requires std::is_nothrow_invocable_r_v<int, F&, MPI_Request*> &&
             std::is_nothrow_copy_constructible_v<F>
auto call(const communicator& over, F f, Token&& token = Token()) {
    using request = internal::function_request<F>;
    return internal::initiate<request>(
        typename request::arguments{&internal::communicator_access::owner(over), f},
        static_cast<Token&&>(token));
}

}  // namespace coppice::mpi
