// coppice's locks, and the floors of a lock.
#include "rivals.hpp"

#include <coppice/base/internal/atomic.hpp>
#include <coppice/execution.hpp>
#include <coppice/io.hpp>
#include <coppice/sync.hpp>
#include <coppice/task.hpp>

#include <deque>
#include <mutex>

namespace bench_sync {

namespace {

using namespace coppice;
namespace ex = coppice::execution;

task<std::uint64_t> lock_and_unlock(async_mutex& mutex, std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != size; ++i) {
        const auto guard = co_await mutex.lock();
        sum += i;
        bench::keep(sum);
    }
    co_return sum;
}
task<std::uint64_t> swap_twice(internal::atomic<std::uint64_t>& word, std::size_t size) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != size; ++i) {
        std::uint64_t free = 0;
        word.compare_exchange_strong(free, 1, internal::acq_rel, internal::relaxed);
        sum += i;
        bench::keep(sum);
        std::uint64_t locked = 1;
        word.compare_exchange_strong(locked, 0, internal::acq_rel, internal::relaxed);
    }
    co_return sum;
}
template <class T>
T done(std::optional<std::tuple<T>> result) {
    return std::get<0>(*result);
}

// Locks repeatedly. The other task waits meanwhile, so every unlock hands the lock over.
task<> take_turns(async_mutex& mutex, std::size_t turns, std::uint64_t& sum) {
    for (std::size_t i = 0; i != turns; ++i) {
        const auto guard = co_await mutex.lock();
        ++sum;
    }
}
task<> release(async_mutex::guard guard) {
    guard.unlock();
    co_return;
}
task<> hop(io::context& loop, std::size_t turns, std::uint64_t& sum) {
    for (std::size_t i = 0; i != turns; ++i) {
        co_await loop.get_scheduler().schedule();
        ++sum;
    }
}

// Waits in a queue until its own source stops it.
class stopped_receiver {
public:
    using receiver_concept = ex::receiver_tag;
    stopped_receiver(const inplace_stop_source& source, std::uint64_t& ended) noexcept
        : token_(source.get_token()), ended_(&ended) {}
    void set_value(async_mutex::guard&&) noexcept {}
    void set_error(std::error_code&&) noexcept {}
    void set_stopped() noexcept { *ended_ = 1; }
    ex::prop<get_stop_token_t, inplace_stop_token> get_env() const noexcept {
        return ex::prop(get_stop_token, token_);
    }

private:
    inplace_stop_token token_;
    std::uint64_t* ended_;
};
struct stopped_waiter {
    explicit stopped_waiter(async_mutex& mutex)
        : operation(ex::connect(mutex.lock(), stopped_receiver(source, ended))) {}
    inplace_stop_source source;
    std::uint64_t ended = 0;
    ex::connect_result_t<decltype(std::declval<async_mutex&>().lock()), stopped_receiver> operation;
};

}  // namespace

std::uint64_t uncontended_coppice(std::size_t size) {
    async_mutex mutex;
    return bench::hash().add(done(this_thread::sync_wait(lock_and_unlock(mutex, size)))).value();
}
std::uint64_t uncontended_pair(std::size_t size) {
    internal::atomic<std::uint64_t> word{0};
    return bench::hash().add(done(this_thread::sync_wait(swap_twice(word, size)))).value();
}
std::uint64_t uncontended_std(std::size_t size) {
    std::mutex mutex;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != size; ++i) {
        const std::lock_guard guard(mutex);
        sum += i;
        bench::keep(sum);
    }
    return bench::hash().add(sum).value();
}

std::uint64_t hand_over_coppice(std::size_t size) {
    std::uint64_t sum = 0;
    async_mutex mutex;
    io::run([&](io::context&) -> task<> {
        auto guard = *mutex.try_lock();
        co_await ex::when_all(take_turns(mutex, size / 2, sum), take_turns(mutex, size / 2, sum),
                              release(std::move(guard)));
    });
    return bench::hash().add(sum).value();
}
std::uint64_t hand_over_resume(std::size_t size) {
    std::uint64_t sum = 0;
    io::run([&](io::context& loop) -> task<> {
        co_await ex::when_all(hop(loop, size / 2, sum), hop(loop, size / 2, sum));
    });
    return bench::hash().add(sum).value();
}

double stop_ns(std::size_t size) {
    async_mutex mutex;
    const auto held = mutex.try_lock();
    std::deque<stopped_waiter> waiters;
    for (std::size_t i = 0; i != size; ++i) ex::start(waiters.emplace_back(mutex).operation);
    const double began = bench::now(true);
    // From the middle on, far from both ends of the queue.
    for (std::size_t i = size / 2; i != size; ++i) waiters[i].source.request_stop();
    for (std::size_t i = size / 2; i != 0; --i) waiters[i - 1].source.request_stop();
    const double took = bench::now(true) - began;
    for (const stopped_waiter& w : waiters) bench::keep(w.ended);
    return took / static_cast<double>(size);
}

}  // namespace bench_sync
