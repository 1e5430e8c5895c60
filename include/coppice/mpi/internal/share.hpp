// share: what a process does for all, on its pool, and whether all have succeeded.
#pragma once
// Between the steps of an algorithm the processes agree. A process that has failed would otherwise
// leave the others in a collective call that it never makes.

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/let.hpp>
#include <coppice/exec/then.hpp>
#include <coppice/mpi/collective.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/namespaces.hpp>
#include <coppice/pool/default_pool.hpp>
#include <coppice/task/task.hpp>
#include <coppice/token/completion.hpp>
#include <coppice/token/transform.hpp>

#include <array>
#include <cstddef>
#include <exception>
#include <system_error>
#include <type_traits>
#include <utility>

namespace coppice::mpi::internal {

// An initiation that completes on a worker of the pool. Once the pool was told to end, it fails
// with operation_canceled, where schedule() would go on with the thread that starts it.
class start_on_worker : work_item {
public:
    static constexpr const char* name = "work on the default pool";
    using never_stops = void;

    explicit start_on_worker(thread_pool& pool) noexcept : work_item(&arrive), pool_(&pool) {}
    start_on_worker(const start_on_worker& other) noexcept : start_on_worker(*other.pool_) {}
    void operator()(completion<> done) noexcept {
        done_ = done;
        if (pool_->try_submit(*this)) return;  // *this may be gone
        std::move(done)(std::make_error_code(std::errc::operation_canceled));
    }

private:
    static void arrive(work_item* item) noexcept {
        completion<> done = static_cast<start_on_worker*>(item)->done_;
        std::move(done)(no_error);
    }
    thread_pool* pool_;
    completion<> done_;
};

// Returns the exception of a process whose default pool has ended: operation_canceled.
std::exception_ptr pool_has_ended() noexcept;

struct failure_of_pool {
    std::exception_ptr operator()(std::exception_ptr e) const noexcept { return e; }
    std::exception_ptr operator()(std::error_code) const noexcept { return pool_has_ended(); }
};

// Returns a sender that calls f() on a worker of the default pool, and sends its exception, or a
// null one. If there is no worker, f() is not called. Throws nothing: an exception of the pool's
// start is sent likewise, and that of a pool that has ended, on the thread that has started it.
template <class F>
auto on_default_pool(F f) noexcept(std::is_nothrow_move_constructible_v<F>) {
    return execution::just() | execution::let_value([] {
               return completion_token_transform<void(std::error_code)>(
                   use_await, start_on_worker(default_pool()));
           }) |
           execution::then([f = std::move(f)]() mutable noexcept -> std::exception_ptr {
               try {
                   f();
                   return nullptr;
               } catch (...) {
                   return std::current_exception();
               }
           }) |
           execution::upon_error(failure_of_pool());
}

// Throws `own` if it is not null, and the error failed_elsewhere if only `is_bad` says that a
// process has failed.
void throw_if_failed(const std::exception_ptr& own, bool is_bad);

// Return senders of a collective call in the middle of an algorithm. The other processes wait for
// this one, so it takes spare memory.
template <kind K, class From, class Into>
auto take_part(const communicator& over, const From& from, const Into& into,
               integer_reduction op = reduction::maximum) noexcept {
    call_arguments a(over, K);
    a.op = op;
    a.from = memory_of(span_of(from));
    a.into = memory_of(span_of(into));
    a.holds_others = true;
    return initiate<named_request<K>>(a, use_await);
}
template <class Objects>
auto take_part_in_broadcast(const communicator& over, const Objects& objects, int root) noexcept {
    call_arguments a(over, kind::broadcast);
    a.into = memory_of(span_of(objects));
    a.to_rank = root;
    a.holds_others = true;
    return initiate<named_request<kind::broadcast>>(a, use_await);
}

// Tells all processes whether one has failed. No part of it allocates, because a process that
// cannot take part would hold the others.
class agreement : immovable {
public:
    explicit agreement(std::exception_ptr own) noexcept
        : own_(std::move(own)), failed_{own_ ? 1 : 0} {}
    // Completes when all processes have come as far.
    auto reach(const communicator& over) noexcept {
        return take_part<kind::all_reduce>(over, failed_, failed_);
    }
    // Throws as throw_if_failed(), once it is reached.
    void check() const { throw_if_failed(own_, failed_[0] != 0); }

private:
    std::exception_ptr own_;
    std::array<int, 1> failed_;
};

// The indices of [0, n) that a process works on.
struct index_range {
    std::size_t first;
    std::size_t last;
};
inline index_range share_of(const communicator& over, std::size_t n) noexcept {
    const std::size_t size = size_of(over);
    const std::size_t rank = static_cast<std::size_t>(over.rank());
    const std::size_t each = n / size, more = n % size;
    const std::size_t first = rank * each + (rank < more ? rank : more);
    return {first, first + each + (rank < more ? 1 : 0)};
}

}  // namespace coppice::mpi::internal
