// share: what a process does for all, on its pool, and whether all have succeeded.
#pragma once
// Between the steps of an algorithm the processes agree. A process that has failed would otherwise
// leave the others in a collective call that it never makes.

#include <coppice/exec/scheduler.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/namespaces.hpp>
#include <coppice/pool/default_pool.hpp>
#include <coppice/task/task.hpp>

#include <cstddef>
#include <exception>
#include <system_error>
#include <utility>

namespace coppice::mpi::internal {

// Returns a sender that calls f() on a worker of the default pool, and sends its exception, or a
// null one.
template <class F>
auto on_default_pool(F f) {
    return execution::schedule(default_pool().get_scheduler()) |
           execution::then([f = std::move(f)]() mutable noexcept -> std::exception_ptr {
               try {
                   f();
                   return nullptr;
               } catch (...) {
                   return std::current_exception();
               }
           }) |
           execution::upon_stopped([]() noexcept {
               return std::make_exception_ptr(std::system_error(
                   std::make_error_code(std::errc::operation_canceled),
                   "mpi: the default pool has ended, so this process cannot do its share"));
           });
}

// Completes when all processes have called it. Throws `own` if it is not null, and the error
// failed_elsewhere if that of another process is not.
task<> agree(const communicator& over, std::exception_ptr own);
// Throws likewise; `is_bad` says that a process has failed.
void throw_if_failed(const std::exception_ptr& own, bool is_bad);

// Handles the exception of a task that serves other processes. It makes the environment fail,
// unless that has failed already, if it watches for failures. If not, it ends the process, because
// the others would wait forever.
class end_service {
public:
    explicit end_service(const communicator& over) noexcept
        : owner_(&communicator_access::owner(over)) {}
    void operator()(const std::exception_ptr& failure) const noexcept;

private:
    engine* owner_;
};

// The indices of [0, n) that a process works on.
struct index_range {
    std::size_t first;
    std::size_t last;
};
inline index_range share_of(const communicator& over, std::size_t n) noexcept {
    const std::size_t size = static_cast<std::size_t>(over.size());
    const std::size_t rank = static_cast<std::size_t>(over.rank());
    const std::size_t each = n / size, more = n % size;
    const std::size_t first = rank * each + (rank < more ? rank : more);
    return {first, first + each + (rank < more ? 1 : 0)};
}

}  // namespace coppice::mpi::internal
