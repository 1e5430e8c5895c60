// The workers of pool/thread_pool.hpp, and what all pools share.
#include <coppice/pool/thread_pool.hpp>

#include <coppice/base/futex.hpp>
#include <coppice/pool/workers.hpp>

#include <thread>

namespace coppice {

template class basic_pool<thread_pool_queues>;

std::size_t hardware_threads() noexcept {
    const unsigned threads = std::thread::hardware_concurrency();
    return threads == 0 ? 1 : threads;
}

void blocking_call::wait() noexcept {
    std::uint32_t state = 0;
    // edge pool.call (acquire): the result is there
    if (!state_.compare_exchange_strong(state, 1, acquire, acquire)) return;
    // edge pool.call (acquire): the result is there
    while (state_.load(acquire) != 2) futex_wait(state_, std::uint32_t{1});
}

void blocking_call::finish() noexcept {
    // The caller may return at once: only the address is used below.
    // edge pool.call (release): the result is written
    if (state_.exchange(2, release) == 1) futex_wake_one(state_);
}

}  // namespace coppice
