// The process's default pool, and the submission of calls to it.
#include <coppice/pool/default_pool.hpp>

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/pool/internal/default_worker.hpp>

#include <pthread.h>

#include <mutex>
#include <optional>

namespace coppice {

using namespace internal;

namespace {

// The pool is never destroyed: see the header. A child of fork() begins without a pool. It does not
// destroy the parent's pool either, because the workers of that pool do not exist in the child.
struct default_pool_state {
    default_pool_state() {
        ::pthread_atfork([] { of_process().mutex.lock(); },  // no thread is inside while it forks
                         [] { of_process().mutex.unlock(); },
                         [] {
                             of_process().pool.store(nullptr, relaxed);  // one thread only
                             of_process().mutex.unlock();
                         });
    }
    static default_pool_state& of_process() {
        static default_pool_state& instance = *new default_pool_state;
        return instance;
    }
    thread_pool& make() {
        const std::lock_guard lock(mutex);
        thread_pool* made = pool.load(relaxed);  // relaxed: under the lock
        if (made == nullptr) {
            made = new thread_pool(options.value_or(pool_options{}));
            // edge pool.default (release): the pool is made
            pool.store(made, release);
        }
        return *made;
    }
    void check_unused() const {
        COPPICE_CHECK(pool.load(relaxed) == nullptr,  // relaxed: under the lock
                      "set_default_pool() was called after the default pool was first used: call "
                      "it at the beginning of main()");
    }

    std::mutex mutex;
    std::optional<pool_options> options;  // under the mutex
    atomic<thread_pool*> pool{nullptr};   // written under the mutex; read by all
};

}  // namespace

thread_pool& default_pool() {
    default_pool_state& state = default_pool_state::of_process();
    // edge pool.default (acquire): the pool is made
    thread_pool* const made = state.pool.load(acquire);
    return made != nullptr ? *made : state.make();
}

void set_default_pool(const pool_options& options) {
    default_pool_state& state = default_pool_state::of_process();
    const std::lock_guard lock(state.mutex);
    state.check_unused();
    state.options = options;
}

void set_default_pool(thread_pool& pool) {
    default_pool_state& state = default_pool_state::of_process();
    const std::lock_guard lock(state.mutex);
    state.check_unused();
    // edge pool.default (release): the pool is made
    state.pool.store(&pool, release);
}

namespace internal {

bool submit_to_default_pool(work_item& item) noexcept {
    try {
        return default_pool().try_submit(item);
    } catch (...) {  // no memory, or no thread: the caller runs the item
        return false;
    }
}

bool submit_to_nearest_pool(work_item& item) noexcept {
    fork_deque* const mine = fork_deque::current();
    if (mine != nullptr && mine->team().enqueue(item)) return true;
    return submit_to_default_pool(item);
}

}  // namespace internal

}  // namespace coppice
