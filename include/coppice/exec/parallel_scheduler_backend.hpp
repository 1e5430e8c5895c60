// parallel_scheduler_backend: what implements a parallel_scheduler; derive from it to replace it.
#pragma once
// The scheduler hands two kinds of proxies to a backend, so that backends are ordinary code:
//
//   receiver_proxy             completes one schedule or bulk operation
//   bulk_item_receiver_proxy   also runs ranges of a bulk operation's indices
//
// It also lends the backend storage inside the operation, so that scheduling allocates nothing.
// Source: [exec.parschedrepl]; set_parallel_scheduler_backend is ours.

#include <coppice/exec/receiver_proxy.hpp>

#include <cstddef>
#include <memory>
#include <span>

namespace coppice::execution::parallel_scheduler_replacement {

// Runs the work. The proxy and the storage live until the proxy is completed.
// Lifetime: kept alive by each scheduler, sender, and operation that refers to it, and during each
// call of schedule and schedule_bulk_*. The last of these may end inside a completion, so the
// destructor may run on a thread of the backend. It must not wait for that thread.
struct parallel_scheduler_backend {
    virtual ~parallel_scheduler_backend() = default;
    // Completes r on one of its threads.
    virtual void schedule(receiver_proxy& r, std::span<std::byte> storage) noexcept = 0;
    // Executes [0, n) in disjoint ranges, then completes r.
    virtual void schedule_bulk_chunked(std::size_t n, bulk_item_receiver_proxy& r,
                                       std::span<std::byte> storage) noexcept = 0;
    // Executes [i, i + 1) for every i below n, then completes r.
    virtual void schedule_bulk_unchunked(std::size_t n, bulk_item_receiver_proxy& r,
                                         std::span<std::byte> storage) noexcept = 0;
};

// Returns the current backend. Replaceable: a program may define it. The backend that it returned
// last is not destroyed when the process exits, because destructors of static objects may still
// schedule, and the work may call std::exit.
std::shared_ptr<parallel_scheduler_backend> query_parallel_scheduler_backend();
// Sets what query_parallel_scheduler_backend() returns from now on; null sets the default pool, as
// at the beginning. Existing schedulers, senders, and operations keep their backend and keep it
// alive. Threads: any.
void set_parallel_scheduler_backend(std::shared_ptr<parallel_scheduler_backend> backend);

// Bytes that an operation lends its backend: enough for an intrusive item and some counters.
inline constexpr std::size_t backend_storage_size = 64;

}  // namespace coppice::execution::parallel_scheduler_replacement

namespace coppice::execution::internal {

// The storage that an operation lends its backend.
class backend_storage {
public:
    std::span<std::byte> get() noexcept { return bytes_; }

private:
    alignas(
        std::max_align_t) std::byte bytes_[parallel_scheduler_replacement::backend_storage_size];
};

}  // namespace coppice::execution::internal
