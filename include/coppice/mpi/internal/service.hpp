// service: a task that serves other processes as long as an object of this one exists.
#pragma once
// The processes make such objects together, and each first makes a communicator. A process that had
// no memory afterwards would leave the others with an object that this process does not have. So
// the object takes all memory before: then std::bad_alloc means that nothing has started, and the
// process may make the object again, for which the others wait.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/namespaces.hpp>
#include <coppice/task/task.hpp>

#include <exception>
#include <utility>

namespace coppice::mpi::internal {

// Handles the exception of a task that serves other processes. It makes the environment fail,
// unless that has failed already, if it watches for failures, and revokes the communicator if the
// environment recovers. Otherwise it ends the process, because the others would wait forever.
class end_service {
public:
    explicit end_service(const communicator& over) noexcept
        : owner_(&communicator_access::owner(over)), over_(over.native_handle()) {}
    void operator()(const std::exception_ptr& failure) const noexcept;

private:
    engine* owner_;
    MPI_Comm over_;
};

// Declared before the communicator that it serves.
class service : immovable {
    using scope_token = execution::counting_scope::token;
    using sender =
        decltype(execution::upon_error(std::declval<task<>>(), std::declval<end_service>()));

public:
    explicit service(task<> serving) noexcept : serving_(std::move(serving)) {}
    // Starts the task, in a scope that is joined before this is destroyed. Cost: no allocation.
    void start(const communicator& over, scope_token in) noexcept {
        execution::spawn(execution::upon_error(std::move(serving_), end_service(over)), in, slot_);
    }

private:
    task<> serving_;
    execution::spawn_slot<sender, scope_token> slot_;
};

}  // namespace coppice::mpi::internal
