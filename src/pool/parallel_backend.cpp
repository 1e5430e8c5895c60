// The process's parallel scheduler: exec declares it, and the default pool implements it.
#include <coppice/pool/parallel_backend.hpp>

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/parallel_scheduler.hpp>
#include <coppice/pool/default_pool.hpp>

#include <exception>
#include <memory>
#include <mutex>
#include <utility>

namespace coppice::execution::parallel_scheduler_replacement {

namespace {

// Asks for the default pool each time: a child of fork() has another one.
class default_backend final : public parallel_scheduler_backend {
public:
    void schedule(receiver_proxy& r, std::span<std::byte> storage) noexcept override {
        on_pool(r, [&r, storage](parallel_backend& backend) { backend.schedule(r, storage); });
    }
    void schedule_bulk_chunked(std::size_t n, bulk_item_receiver_proxy& r,
                               std::span<std::byte> storage) noexcept override {
        on_pool(r, [n, &r, storage](parallel_backend& backend) {
            backend.schedule_bulk_chunked(n, r, storage);
        });
    }
    void schedule_bulk_unchunked(std::size_t n, bulk_item_receiver_proxy& r,
                                 std::span<std::byte> storage) noexcept override {
        on_pool(r, [n, &r, storage](parallel_backend& backend) {
            backend.schedule_bulk_unchunked(n, r, storage);
        });
    }

private:
    template <class Schedule>
    static void on_pool(receiver_proxy& r, Schedule schedule) noexcept {
        thread_pool* pool = nullptr;
        try {
            pool = &default_pool();
        } catch (...) {
            return r.set_error(std::current_exception());
        }
        parallel_backend backend(*pool);
        schedule(backend);
    }
};

// What set_parallel_scheduler_backend chose, for the whole process, as in the draft. Null: the
// default pool. Never destroyed: work may call std::exit, and destructors of static objects may use
// the scheduler.
struct registry {
    std::mutex mutex;
    std::shared_ptr<parallel_scheduler_backend> chosen;
    default_backend of_pool;
};
registry& the_registry() {
    static registry& instance = *new registry;
    return instance;
}

}  // namespace

void set_parallel_scheduler_backend(std::shared_ptr<parallel_scheduler_backend> backend) {
    registry& r = the_registry();
    const std::lock_guard lock(r.mutex);
    r.chosen.swap(backend);  // the old backend is released after the lock
}

[[gnu::weak]] std::shared_ptr<parallel_scheduler_backend> query_parallel_scheduler_backend() {
    registry& r = the_registry();
    {
        const std::lock_guard lock(r.mutex);
        if (r.chosen != nullptr) return r.chosen;
    }
    default_pool();  // throws here, and not when something is scheduled
    // Owns nothing, so that copies count nothing.
    return {std::shared_ptr<void>(), &r.of_pool};
}

}  // namespace coppice::execution::parallel_scheduler_replacement

namespace coppice::execution {

parallel_scheduler get_parallel_scheduler() {
    auto backend = parallel_scheduler_replacement::query_parallel_scheduler_backend();
    COPPICE_CHECK(backend != nullptr,
                  "there is no backend for the parallel scheduler: "
                  "query_parallel_scheduler_backend() returned none");
    return parallel_scheduler(std::move(backend));
}

}  // namespace coppice::execution
