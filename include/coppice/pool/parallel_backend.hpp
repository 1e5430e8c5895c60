// parallel_backend: parallel_scheduler on a thread_pool; for set_parallel_scheduler_backend.
#pragma once
// Without it parallel_scheduler runs on the process's default pool, by the same means.
//
// The items are placed in the storage that the operations lend, so scheduling allocates nothing.
// Bulk work is a parallel_for on the worker that takes the item. A stop request of the operation
// ends it between two ranges. It then completes with set_stopped; it completes with set_value only
// if every index was executed. Source: [exec.par.scheduler].

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/parallel_scheduler.hpp>
#include <coppice/pool/internal/default_worker.hpp>
#include <coppice/pool/internal/work_item.hpp>
#include <coppice/pool/parallel.hpp>
#include <coppice/pool/thread_pool.hpp>

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace coppice {

// Lifetime: the pool outlives the backend and everything that is scheduled on it.
class parallel_backend final
    : public execution::parallel_scheduler_replacement::parallel_scheduler_backend {
    using receiver_proxy = execution::parallel_scheduler_replacement::receiver_proxy;
    using bulk_proxy = execution::parallel_scheduler_replacement::bulk_item_receiver_proxy;

public:
    // Runs everything on `pool`.
    explicit parallel_backend(thread_pool& pool) noexcept : pool_(pool) {}

    void schedule(receiver_proxy& r, std::span<std::byte> storage) noexcept override {
        pool_.submit(place<single>(storage, r));
    }
    void schedule_bulk_chunked(std::size_t n, bulk_proxy& r,
                               std::span<std::byte> storage) noexcept override {
        pool_.submit(place<many>(storage, r, n));
    }
    void schedule_bulk_unchunked(std::size_t n, bulk_proxy& r,
                                 std::span<std::byte> storage) noexcept override {
        pool_.submit(place<many>(storage, r, n));
    }

private:
    struct single : internal::work_item {
        explicit single(receiver_proxy& r) noexcept : internal::work_item(&run), receiver(r) {}
        static void run(internal::work_item* item) noexcept {
            receiver_proxy& r = static_cast<single*>(item)->receiver;
            if (stopped(r)) {
                r.set_stopped();
            } else {
                r.set_value();
            }
        }
        receiver_proxy& receiver;
    };
    struct many : internal::work_item {
        many(bulk_proxy& r, std::size_t n) noexcept
            : internal::work_item(&run), receiver(r), count(n) {}
        static void run(internal::work_item* item) noexcept {
            bulk_proxy& r = static_cast<many*>(item)->receiver;
            if (stopped(r)) {
                r.set_stopped();
                return;
            }
            const internal::in_order_here if_no_worker;  // after the pool's end
            // The operation's own token applies, whichever token this thread has.
            const auto [all] = fork_join(token(r), [&r, count = static_cast<many*>(item)->count] {
                return parallel_for(
                    std::size_t{0}, count,
                    [&r](std::size_t first, std::size_t last) { r.execute(first, last); });
            });
            if (all) {
                r.set_value();
            } else {
                r.set_stopped();
            }
        }
        bulk_proxy& receiver;
        const std::size_t count;
    };
    static inplace_stop_token token(receiver_proxy& r) noexcept {
        return r.try_query<inplace_stop_token>(get_stop_token).value_or(inplace_stop_token());
    }
    static bool stopped(receiver_proxy& r) noexcept { return token(r).stop_requested(); }
    template <class Item, class... Args>
    static Item& place(std::span<std::byte> storage, Args&... args) noexcept {
        static_assert(sizeof(Item) <=
                      execution::parallel_scheduler_replacement::backend_storage_size);
        COPPICE_CHECK(storage.size() >= sizeof(Item), "the lent storage is too small");
        return *::new (static_cast<void*>(storage.data())) Item(args...);
    }
    thread_pool& pool_;
};

}  // namespace coppice
