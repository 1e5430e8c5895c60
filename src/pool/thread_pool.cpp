// The workers of pool/thread_pool.hpp.
#include <coppice/pool/thread_pool.hpp>

#include <coppice/base/check.hpp>
#include <coppice/base/futex.hpp>
#include <coppice/base/in_flight.hpp>
#include <coppice/pool/deque.hpp>
#include <coppice/pool/injector.hpp>
#include <coppice/pool/parking.hpp>
#include <coppice/trace/counter.hpp>

#include <pthread.h>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace coppice {

namespace {

constexpr std::size_t deque_capacity = 1024;
// A worker looks into the injector first once in so many items, so that work from outside is not
// starved by a worker that feeds itself.
constexpr std::uint64_t injector_interval = 61;
// How often an idle worker looks through all queues before it sleeps, pausing longer each time:
// about five microseconds in all, less than a sleep and wake cost.
constexpr unsigned search_rounds = 8;

}  // namespace

struct alignas(64) thread_pool::worker {
    explicit worker(thread_pool::shared& pool, std::size_t index) noexcept
        : owner(pool), random(index * 0x9E3779B97F4A7C15u + 1) {}

    thread_pool::shared& owner;
    bounded_deque<work_item, deque_capacity> deque;
    std::uint64_t random;  // xorshift state; the worker's own
    std::uint64_t turns = 0;
    trace::counter runs;
    trace::counter steals;
    trace::counter failed_steals;
    trace::counter parks;
    std::thread thread;

    void loop() noexcept;
    work_item* next() noexcept;
    work_item* search() noexcept;
    work_item* steal() noexcept;
    void run(work_item* item) noexcept {
        runs.add();
        item->run(item);
    }
};

struct thread_pool::shared {
    std::vector<std::unique_ptr<worker>> workers;
    injector outside;
    parking lot;
    in_flight calls;               // submissions that may still wake a worker
    atomic<bool> stopping{false};  // set once; read by workers before they sleep

    bool looks_idle() const noexcept {
        if (!outside.looks_empty()) return false;
        for (const auto& w : workers) {
            if (!w->deque.looks_empty()) return false;
        }
        return true;
    }
    void stop() noexcept {
        // Relaxed: ordered by the fences of parking, as work is. A worker that announces sleep sees
        // the flag, or wake_all() sees the worker.
        stopping.store(true, relaxed);
        lot.wake_all();
    }
    void join() noexcept {
        for (auto& w : workers) {
            if (w->thread.joinable()) w->thread.join();
        }
    }
};

namespace {

// The worker that this thread is, or nullptr.
void*& current_worker() noexcept {
    return thread_slot<thread_pool, void*>();
}

}  // namespace

// The worker's own newest item; in turn the oldest from outside.
work_item* thread_pool::worker::next() noexcept {
    if (++turns % injector_interval == 0) {
        if (work_item* const item = owner.outside.pop()) return item;
    }
    if (work_item* const item = deque.pop()) return item;
    return owner.outside.pop();
}

// One look at every other worker, from a random one on.
work_item* thread_pool::worker::steal() noexcept {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    const std::size_t count = owner.workers.size();
    std::size_t victim = static_cast<std::size_t>(random % count);
    for (std::size_t i = 0; i != count; ++i, victim = victim + 1 == count ? 0 : victim + 1) {
        if (owner.workers[victim].get() == this) continue;
        const stolen<work_item> got = owner.workers[victim]->deque.steal();
        if (got.outcome == steal_outcome::taken) {
            steals.add();
            return got.item;
        }
        if (got.outcome == steal_outcome::lost) failed_steals.add();
    }
    return nullptr;
}

work_item* thread_pool::worker::search() noexcept {
    for (unsigned round = 0; round != search_rounds; ++round) {
        if (work_item* const item = owner.outside.pop()) return item;
        if (work_item* const item = steal()) return item;
        for (unsigned pauses = 0; pauses != (4u << round) / 4; ++pauses) spin_hint();
    }
    return nullptr;
}

void thread_pool::worker::loop() noexcept {
    current_worker() = this;
    parking& lot = owner.lot;
    for (;;) {
        while (work_item* const item = next()) run(item);
        lot.begin_search();
        for (;;) {
            if (work_item* const item = search()) {
                if (lot.end_search() && !owner.looks_idle()) lot.wake_one();
                run(item);
                break;
            }
            lot.announce_sleep();
            if (!owner.looks_idle()) {
                lot.cancel_sleep();
                continue;
            }
            if (owner.stopping.load(relaxed)) {
                // Nothing is queued; whoever still runs looks after what it submits.
                lot.cancel_sleep();
                (void)lot.end_search();
                if (owner.looks_idle()) return;
                lot.begin_search();
                continue;
            }
            parks.add();
            lot.sleep();
        }
    }
}

std::size_t thread_pool::hardware() noexcept {
    const unsigned threads = std::thread::hardware_concurrency();
    return threads == 0 ? 1 : threads;
}

thread_pool::thread_pool(std::size_t threads) : shared_(std::make_unique<shared>()) {
    if (threads == 0) throw std::invalid_argument("coppice::thread_pool: no threads asked for");
    for (std::size_t i = 0; i != threads; ++i) {
        shared_->workers.push_back(std::make_unique<worker>(*shared_, i));
    }
    try {
        for (std::size_t i = 0; i != threads; ++i) {
            worker& w = *shared_->workers[i];
            w.thread = std::thread([&w] { w.loop(); });
            const std::string name = "coppice-pool/" + std::to_string(i % 100);
            ::pthread_setname_np(w.thread.native_handle(), name.c_str());
        }
    } catch (...) {
        shared_->stop();
        shared_->join();
        throw;
    }
}

thread_pool::~thread_pool() {
    COPPICE_CHECK(!is_current(), "a thread_pool was destroyed on one of its own workers");
    shared_->stop();
    shared_->join();
    shared_->calls.wait();
    // Only what came after request_stop() and found every worker gone can be left.
    while (work_item* const item = shared_->outside.pop()) item->run(item);
}

void thread_pool::submit(work_item& item) noexcept {
    worker* const mine = static_cast<worker*>(current_worker());
    if (mine != nullptr && &mine->owner == shared_.get()) {
        if (!mine->deque.push(&item)) shared_->outside.push(&item);
        shared_->lot.wake_one();
        return;
    }
    shared& s = *shared_;
    const in_flight::entry call(s.calls);  // item may run, and end the pool, before this returns
    s.outside.push(&item);
    s.lot.wake_one();
}

void thread_pool::request_stop() noexcept {
    shared_->stop();
}

std::size_t thread_pool::size() const noexcept {
    return shared_->workers.size();
}

worker_counts thread_pool::counts(std::size_t index) const noexcept {
    COPPICE_CHECK(index < size(), "thread_pool::counts: no such worker");
    const worker& w = *shared_->workers[index];
    return {w.runs.read(), w.steals.read(), w.failed_steals.read(), w.parks.read()};
}

bool thread_pool::is_current() const noexcept {
    const worker* const mine = static_cast<const worker*>(current_worker());
    return mine != nullptr && &mine->owner == shared_.get();
}

void thread_pool::blocking_call::submit_and_wait(thread_pool& pool) noexcept {
    pool.submit(*this);
    std::uint32_t state = 0;
    // edge pool.call (acquire): the result is there
    if (!state_.compare_exchange_strong(state, 1, acquire, acquire)) return;
    // edge pool.call (acquire): the result is there
    while (state_.load(acquire) != 2) futex_wait(state_, std::uint32_t{1});
}

void thread_pool::blocking_call::finish() noexcept {
    // The caller may return at once: only the address is used below.
    // edge pool.call (release): the result is written
    if (state_.exchange(2, release) == 1) futex_wake_one(state_);
}

}  // namespace coppice
