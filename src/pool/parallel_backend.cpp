// The default backend of parallel_scheduler: a team of threads that share one queue under a lock.
#include <coppice/exec/parallel_scheduler.hpp>

#include <coppice/base/internal/check.hpp>
#include <coppice/base/intrusive.hpp>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

namespace coppice::execution::parallel_scheduler_replacement {

namespace {

// What the threads of a team share. Each thread keeps it alive, so that no thread need be joined.
class team_state {
public:
    // Threads: any.
    void push(std::span<std::byte> storage, receiver_proxy& r, bulk_item_receiver_proxy* bulk,
              std::size_t n, std::size_t chunk) noexcept {
        push(new_item(storage, r, bulk, n, chunk));
    }
    // Runs items until the team has ended and no item is left.
    void work() noexcept {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return front_ != nullptr || stopping_; });
            if (front_ == nullptr) return;
            run_part_of(*front_, lock);
        }
    }
    // Lets the threads leave when nothing is left to do.
    void stop() noexcept {
        {
            const std::lock_guard lock(mutex_);
            stopping_ = true;
        }
        changed_.notify_all();
    }

private:
    // One operation, in the storage that it lent. mutex_ guards the fields that change.
    struct item {
        receiver_proxy* receiver;
        bulk_item_receiver_proxy* bulk;  // nullptr if the item is only to be completed
        std::size_t count;
        std::size_t chunk;
        inplace_stop_token token;
        std::size_t claimed = 0;
        unsigned running = 0;  // threads that execute a range
        bool stopped = false;  // ranges were skipped because of a stop
        item* next = nullptr;
    };
    static_assert(sizeof(item) <= backend_storage_size);

    static item& new_item(std::span<std::byte> storage, receiver_proxy& r,
                          bulk_item_receiver_proxy* bulk, std::size_t n,
                          std::size_t chunk) noexcept {
        COPPICE_CHECK(storage.size() >= sizeof(item), "the lent storage is too small");
        const auto token = r.try_query<inplace_stop_token>(get_stop_token);
        return *::new (static_cast<void*>(storage.data()))
            item{&r, bulk, n, chunk, token.value_or(inplace_stop_token())};
    }
    void push(item& pushed) noexcept {
        const bool for_all = pushed.bulk != nullptr;
        {
            const std::lock_guard lock(mutex_);
            queue_.push_back(&pushed);
            if (front_ == nullptr) front_ = queue_.pop_front();
        }
        // A bulk item is work for all threads. The item itself may be gone already.
        if (for_all) {
            changed_.notify_all();
        } else {
            changed_.notify_one();
        }
    }

    // Claims one range of the item at the front and runs it without the lock. Completes the item if
    // that was its last range. A stop skips the ranges that are not claimed yet.
    void run_part_of(item& claimed, std::unique_lock<std::mutex>& lock) noexcept {
        const std::size_t begin = claimed.claimed;
        if (claimed.token.stop_requested()) claimed.stopped = true;
        // Compares widths, not ends, because begin + chunk may overflow.
        const std::size_t left = claimed.count - begin;
        const std::size_t end = begin + (claimed.stopped ? left : std::min(left, claimed.chunk));
        const bool runs = claimed.bulk != nullptr && begin != end && !claimed.stopped;
        claimed.claimed = end;
        ++claimed.running;
        if (end == claimed.count) front_ = queue_.pop_front();
        lock.unlock();
        if (runs) claimed.bulk->execute(begin, end);
        lock.lock();
        if (--claimed.running != 0 || claimed.claimed != claimed.count) return;
        receiver_proxy* const receiver = claimed.receiver;
        const bool stopped = claimed.stopped;
        lock.unlock();
        if (stopped) {
            receiver->set_stopped();
        } else {
            receiver->set_value();
        }
        lock.lock();  // the item is gone
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    item* front_ = nullptr;  // the item that is being claimed from; no longer in the queue
    intrusive_queue<item, &item::next> queue_;
    bool stopping_ = false;
};

// Simple on purpose: programs with higher needs register their own pool. The last owner of a team
// may be an operation that ends on one of the team's threads, or one that such a thread waits for.
// So the destructor joins no thread; each leaves by itself.
class thread_team final : public parallel_scheduler_backend {
public:
    // Starts `threads` threads, or fewer if memory or the system runs short. Errors: what starting
    // the first thread throws.
    explicit thread_team(std::size_t threads) : state_(std::make_shared<team_state>()) {
        for (; size_ != threads; ++size_) {
            try {
                std::thread([state = state_] { state->work(); }).detach();
            } catch (...) {
                if (size_ == 0) throw;
                break;
            }
        }
    }
    thread_team(thread_team&&) = delete;
    ~thread_team() override { state_->stop(); }

    void schedule(receiver_proxy& r, std::span<std::byte> storage) noexcept override {
        state_->push(storage, r, nullptr, 1, 1);
    }
    void schedule_bulk_chunked(std::size_t n, bulk_item_receiver_proxy& r,
                               std::span<std::byte> storage) noexcept override {
        // Several chunks per thread even out chunks that take longer.
        const std::size_t pieces = size_ * 4;
        state_->push(storage, r, &r, n, std::max<std::size_t>(1, n / pieces));
    }
    void schedule_bulk_unchunked(std::size_t n, bulk_item_receiver_proxy& r,
                                 std::span<std::byte> storage) noexcept override {
        state_->push(storage, r, &r, n, 1);
    }

private:
    const std::shared_ptr<team_state> state_;
    std::size_t size_ = 0;  // number of threads that were started
};

// What set_parallel_scheduler_backend chose, for the whole process, as in the draft. Never
// destroyed: work may call std::exit, and destructors of static objects may use the scheduler. The
// process ends while the team's threads wait or still work.
struct registry {
    std::mutex mutex;
    std::shared_ptr<parallel_scheduler_backend> chosen;
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
    const std::lock_guard lock(r.mutex);
    if (r.chosen == nullptr) {
        r.chosen = std::make_shared<thread_team>(
            std::max<std::size_t>(1, std::thread::hardware_concurrency()));
    }
    return r.chosen;
}

}  // namespace coppice::execution::parallel_scheduler_replacement

namespace coppice::execution {

parallel_scheduler get_parallel_scheduler() {
    auto backend = parallel_scheduler_replacement::query_parallel_scheduler_backend();
    COPPICE_CHECK(backend != nullptr, "there is no backend for the parallel scheduler");
    return parallel_scheduler(std::move(backend));
}

}  // namespace coppice::execution
