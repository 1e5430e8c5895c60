// The thesis's schedulers compared: an item for each call of fib.
#include "rivals.hpp"

#include <coppice/base/internal/futex.hpp>
#include <coppice/pool/queue_pool.hpp>
#include <coppice/pool/thread_pool.hpp>

namespace bench_pool {

namespace {

using namespace coppice;
using namespace coppice::internal;

// A call that waits for two children, like the thesis's barrier: the last child ends it.
template <class Pool>
struct call : work_item {
    call(Pool& p, call* up, std::uint64_t number) noexcept
        : work_item(&start), pool(p), parent(up), n(number) {}
    static void start(work_item* item) noexcept {
        call* const self = static_cast<call*>(item);
        if (self->n < 2) {
            self->sum.store(self->n, relaxed);
            return self->end();
        }
        Pool& pool = self->pool;
        const std::uint64_t n = self->n;
        pool.submit(*new call(pool, self, n - 1));
        pool.submit(*new call(pool, self, n - 2));
    }
    void end() noexcept {
        call* self = this;
        while (self->parent != nullptr) {
            call* const up = self->parent;
            up->sum.fetch_add(self->sum.load(relaxed), relaxed);
            delete self;
            if (up->left.fetch_sub(1, acq_rel) != 1) return;
            self = up;
        }
        self->over.store(1, release);
        futex_wake_one(self->over);
    }
    Pool& pool;
    call* const parent;
    const std::uint64_t n;
    atomic<std::uint64_t> sum{0};
    atomic<int> left{2};
    atomic<std::uint32_t> over{0};
};

template <class Pool>
std::uint64_t items(std::size_t threads, std::size_t size) {
    static std::unique_ptr<Pool> kept;
    if (kept == nullptr || kept->size() != threads) {
        kept.reset();
        kept = std::make_unique<Pool>(threads);
    }
    auto root = std::make_unique<call<Pool>>(*kept, nullptr, size);
    kept->submit(*root);
    while (root->over.load(acquire) == 0) futex_wait(root->over, std::uint32_t{0});
    const std::uint64_t sum = root->sum.load(relaxed);
    kept->run([] {});  // the worker that ended the root has left it
    kept.reset();
    return sum;
}

}  // namespace

std::uint64_t items_mutex_queue(std::size_t threads, std::size_t size) {
    return items<queue_pool<mutex_queue>>(threads, size);
}
std::uint64_t items_lockfree_queue(std::size_t threads, std::size_t size) {
    return items<queue_pool<lockfree_queue>>(threads, size);
}
std::uint64_t items_mutex_deques(std::size_t threads, std::size_t size) {
    return items<stealing_pool<mutex_deques>>(threads, size);
}
std::uint64_t items_bounded_deques(std::size_t threads, std::size_t size) {
    return items<thread_pool>(threads, size);
}
std::uint64_t items_kept_deques(std::size_t threads, std::size_t size) {
    return items<stealing_pool<kept_deques>>(threads, size);
}
std::uint64_t items_counted_deques(std::size_t threads, std::size_t size) {
    return items<stealing_pool<counted_deques>>(threads, size);
}

}  // namespace bench_pool
