// The thread that delivers the deadlines of stop sources; deadline.hpp describes its life.
#include <coppice/stop/deadline.hpp>

#include <coppice/base/clock.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/stop/shared.hpp>

#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include <pthread.h>

namespace coppice {

using namespace internal;

namespace internal {

class deadline_timer : immovable {
public:
    // Never destroyed, because sources with static lifetime may end after everything else.
    static deadline_timer& instance() noexcept {
        static deadline_timer& timer = *new (storage()) deadline_timer;
        return timer;
    }

    void arm(stop_deadline& deadline, std::int64_t due) {
        const std::lock_guard lock(mutex_);
        if (ended_) return;
        start();
        if (deadline.queued_) erase(deadline);
        deadline.due_ = due;
        deadline.queued_ = true;
        deadline.pending_.store(true, relaxed);  // relaxed: a source still exists
        put(root_, merge(std::exchange(root_, nullptr), &deadline));
        if (root_ == &deadline) earlier_.notify_one();
    }

    void disarm(stop_deadline& deadline) noexcept {
        std::unique_lock lock(mutex_);
        take_back(deadline, lock);
    }

    void destroy(stop_deadline& deadline) noexcept {
        {
            std::unique_lock lock(mutex_);
            take_back(deadline, lock);
            // On the timer's own thread, inside the delivery: the delivery must not touch it again.
            if (delivering_ == &deadline) delivering_ = nullptr;
        }
        delete &deadline;
    }

private:
    static void* storage() noexcept {
        alignas(deadline_timer) static std::byte bytes[sizeof(deadline_timer)];
        return bytes;
    }

    bool on_timer_thread() const noexcept {
        return started_ && ::pthread_equal(thread_, ::pthread_self()) != 0;
    }

    void take_back(stop_deadline& deadline, std::unique_lock<std::mutex>& lock) noexcept {
        if (deadline.queued_) erase(deadline);
        // edge stop.delivered (release): the stop, if this thread is delivering it now
        deadline.pending_.store(false, release);
        if (on_timer_thread()) return;
        while (delivering_ == &deadline) delivered_.wait(lock);
    }

    // Call this and all below with the mutex. The thread blocks all signals; they are for the
    // program.
    void start() {
        if (started_) return;
        if (!handlers_installed_) {
            std::atexit([] { instance().end(); });
            ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                             [] { instance().forget_thread(); });
            handlers_installed_ = true;
        }
        sigset_t all;
        sigset_t before;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        const int failed = ::pthread_create(
            &thread_, nullptr,
            [](void* timer) -> void* {
                static_cast<deadline_timer*>(timer)->run();
                return nullptr;
            },
            this);
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (failed != 0) {
            throw std::system_error(failed, std::generic_category(), "the timer of stop sources");
        }
        started_ = true;
        ::pthread_setname_np(thread_, "coppice-stop");
    }

    void run() {
        std::unique_lock lock(mutex_);
        while (!ended_) {
            if (root_ == nullptr) {
                earlier_.wait(lock);
            } else if (const std::int64_t due = root_->due_; due > now()) {
                earlier_.wait_until(
                    lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(due)));
            } else {
                deliver(lock);
            }
        }
    }

    void deliver(std::unique_lock<std::mutex>& lock) noexcept {
        stop_deadline& deadline = *root_;
        erase(deadline);
        delivering_ = &deadline;
        lock.unlock();
        deadline.state_->request(
            stop_cause{ETIMEDOUT, "the time of request_stop_after has passed"});
        lock.lock();
        if (delivering_ == nullptr) return;  // the deadline is gone
        delivering_ = nullptr;
        // edge stop.delivered (release): the stop that was requested above
        if (!deadline.queued_) deadline.pending_.store(false, release);
        delivered_.notify_all();
    }

    void end() noexcept {
        {
            const std::lock_guard lock(mutex_);
            ended_ = true;
            if (!started_ || on_timer_thread()) return;
            earlier_.notify_one();
        }
        ::pthread_join(thread_, nullptr);
    }

    // Called in the child of a fork, whose only thread holds the mutex.
    void forget_thread() noexcept {
        started_ = false;
        delivering_ = nullptr;
        new (&earlier_) std::condition_variable;
        new (&delivered_) std::condition_variable;
        mutex_.unlock();
    }

    static std::int64_t now() noexcept {
        return monotonic_clock().now().time_since_epoch().count();
    }

    // The pairing heap. Each tree hangs at a link: root_, a parent's child_, or a sibling's
    // sibling_.
    static void put(stop_deadline*& link, stop_deadline* tree) noexcept {
        link = tree;
        if (tree != nullptr) tree->link_ = &link;
    }
    // Merges two trees without siblings into one.
    static stop_deadline* merge(stop_deadline* a, stop_deadline* b) noexcept {
        if (a == nullptr) return b;
        if (b == nullptr) return a;
        if (b->due_ < a->due_) std::swap(a, b);
        put(b->sibling_, a->child_);
        put(a->child_, b);
        return a;
    }
    // Merges a chain of siblings into one tree: first in pairs, then all pairs.
    static stop_deadline* merge_chain(stop_deadline* chain) noexcept {
        stop_deadline* pairs = nullptr;  // linked by sibling_, the last pair first
        while (chain != nullptr) {
            stop_deadline* const a = std::exchange(chain, chain->sibling_);
            stop_deadline* const b = chain;
            if (b != nullptr) chain = b->sibling_;
            a->sibling_ = nullptr;
            if (b != nullptr) b->sibling_ = nullptr;
            stop_deadline* const pair = merge(a, b);
            pair->sibling_ = pairs;
            pairs = pair;
        }
        stop_deadline* tree = nullptr;
        while (pairs != nullptr) {
            stop_deadline* const next = std::exchange(pairs->sibling_, nullptr);
            tree = merge(tree, pairs);
            pairs = next;
        }
        return tree;
    }
    void erase(stop_deadline& deadline) noexcept {
        put(*deadline.link_, deadline.sibling_);
        deadline.sibling_ = nullptr;
        stop_deadline* const orphans = merge_chain(std::exchange(deadline.child_, nullptr));
        put(root_, merge(std::exchange(root_, nullptr), orphans));
        deadline.queued_ = false;
    }

    std::mutex mutex_;
    std::condition_variable earlier_;    // wakes the thread: the first deadline changed, or the end
    std::condition_variable delivered_;  // wakes take_back(): delivering_ changed
    stop_deadline* root_ = nullptr;
    stop_deadline* delivering_ = nullptr;  // the thread is requesting its stop, without the mutex
    bool started_ = false;
    bool ended_ = false;
    bool handlers_installed_ = false;
    pthread_t thread_{};
};

void disarm(stop_deadline& deadline) noexcept {
    deadline_timer::instance().disarm(deadline);
}

void destroy(stop_deadline& deadline) noexcept {
    deadline_timer::instance().destroy(deadline);
}

}  // namespace internal

bool stop_source::request_stop_after(std::chrono::nanoseconds time) {
    if (state_ == nullptr || state_->stop_requested()) return false;
    stop_deadline* deadline = state_->deadline();
    if (deadline == nullptr) {
        auto first = std::make_unique<stop_deadline>(*state_);
        deadline = state_->install(*first);
        if (deadline == nullptr) deadline = first.release();
    }
    const std::int64_t now = monotonic_clock().now().time_since_epoch().count();
    const std::int64_t wait = std::max<std::int64_t>(time.count(), 0);
    deadline_timer::instance().arm(*deadline, saturating_add(now, wait));
    return true;
}

}  // namespace coppice
