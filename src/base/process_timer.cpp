// The thread that calls the nodes of the process's timer; process_timer.hpp describes its life.
#include <coppice/base/internal/process_timer.hpp>

#include <coppice/base/clock.hpp>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include <pthread.h>

namespace coppice::internal {

class process_timer : immovable {
public:
    // Never destroyed, because nodes with static lifetime may end after everything else.
    static process_timer& instance() noexcept {
        static process_timer& timer = *new (storage()) process_timer;
        return timer;
    }

    void outlive_caller() noexcept {
        const std::lock_guard lock(mutex_);
        install_handlers();
    }

    bool arm(process_timer_node& node, std::int64_t due) {
        const std::lock_guard lock(mutex_);
        if (ended_) return false;
        start();
        if (node.queued_) erase(node);
        node.due_ = due;
        node.queued_ = true;
        node.pending_.store(true, relaxed);  // relaxed: the caller still keeps the node
        put(root_, merge(std::exchange(root_, nullptr), &node));
        if (root_ == &node) earlier_.notify_one();
        return true;
    }

    void disarm(process_timer_node& node) noexcept {
        std::unique_lock lock(mutex_);
        take_back(node, lock);
    }

    void retire(process_timer_node& node) noexcept {
        std::unique_lock lock(mutex_);
        take_back(node, lock);
        if (node.queued_) erase(node);  // its function may have armed it while this waited
        // On the timer's own thread, inside the delivery: the delivery must not touch it again.
        if (delivering_ == &node) delivering_ = nullptr;
    }

private:
    static void* storage() noexcept {
        alignas(process_timer) static std::byte bytes[sizeof(process_timer)];
        return bytes;
    }

    bool on_timer_thread() const noexcept {
        return started_ && ::pthread_equal(thread_, ::pthread_self()) != 0;
    }

    void take_back(process_timer_node& node, std::unique_lock<std::mutex>& lock) noexcept {
        if (node.queued_) erase(node);
        // edge process_timer.delivered (release): what the function does, if it disarms itself
        node.pending_.store(false, release);
        if (on_timer_thread()) return;
        while (delivering_ == &node) delivered_.wait(lock);
    }

    // Call this and all below with the mutex.
    void install_handlers() noexcept {
        if (handlers_installed_) return;
        std::atexit([] { instance().end(); });
        ::pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                         [] { instance().begin_child(); });
        handlers_installed_ = true;
    }

    // The thread blocks all signals; they are for the program.
    void start() {
        if (started_) return;
        install_handlers();
        sigset_t all;
        sigset_t before;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before);
        const int failed = ::pthread_create(
            &thread_, nullptr,
            [](void* timer) -> void* {
                static_cast<process_timer*>(timer)->run();
                return nullptr;
            },
            this);
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
        if (failed != 0) {
            throw std::system_error(failed, std::generic_category(), "the timer of the process");
        }
        started_ = true;
        ::pthread_setname_np(thread_, "coppice-timer");
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
        process_timer_node& node = *root_;
        erase(node);
        delivering_ = &node;
        lock.unlock();
        node.called_(node);
        lock.lock();
        if (delivering_ == nullptr) return;  // the node is gone
        delivering_ = nullptr;
        // edge process_timer.delivered (release): what the function has done
        if (!node.queued_) node.pending_.store(false, release);
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
    void begin_child() noexcept {
        started_ = false;
        delivering_ = nullptr;
        forget_nodes();
        new (&earlier_) std::condition_variable;
        new (&delivered_) std::condition_variable;
        mutex_.unlock();
    }

    // Takes the nodes that are forgotten in a child out of the heap.
    void forget_nodes() noexcept {
        process_timer_node* kept = nullptr;  // linked by sibling_
        while (root_ != nullptr) {
            process_timer_node& node = *root_;
            erase(node);
            if (node.inherited_ == process_timer_node::in_child::is_forgotten) {
                // relaxed: the child has no other thread
                node.pending_.store(false, relaxed);
            } else {
                node.queued_ = true;
                node.sibling_ = std::exchange(kept, &node);
            }
        }
        put(root_, merge_chain(kept));
    }

    static std::int64_t now() noexcept {
        return monotonic_clock().now().time_since_epoch().count();
    }

    // The pairing heap. Each tree hangs at a link: root_, a parent's child_, or a sibling's
    // sibling_.
    static void put(process_timer_node*& link, process_timer_node* tree) noexcept {
        link = tree;
        if (tree != nullptr) tree->link_ = &link;
    }
    // Merges two trees without siblings into one.
    static process_timer_node* merge(process_timer_node* a, process_timer_node* b) noexcept {
        if (a == nullptr) return b;
        if (b == nullptr) return a;
        if (b->due_ < a->due_) std::swap(a, b);
        put(b->sibling_, a->child_);
        put(a->child_, b);
        return a;
    }
    // Merges a chain of siblings into one tree: first in pairs, then all pairs.
    static process_timer_node* merge_chain(process_timer_node* chain) noexcept {
        process_timer_node* pairs = nullptr;  // linked by sibling_, the last pair first
        while (chain != nullptr) {
            process_timer_node* const a = std::exchange(chain, chain->sibling_);
            process_timer_node* const b = chain;
            if (b != nullptr) chain = b->sibling_;
            a->sibling_ = nullptr;
            if (b != nullptr) b->sibling_ = nullptr;
            process_timer_node* const pair = merge(a, b);
            pair->sibling_ = pairs;
            pairs = pair;
        }
        process_timer_node* tree = nullptr;
        while (pairs != nullptr) {
            process_timer_node* const next = std::exchange(pairs->sibling_, nullptr);
            tree = merge(tree, pairs);
            pairs = next;
        }
        return tree;
    }
    void erase(process_timer_node& node) noexcept {
        put(*node.link_, node.sibling_);
        node.sibling_ = nullptr;
        process_timer_node* const orphans = merge_chain(std::exchange(node.child_, nullptr));
        put(root_, merge(std::exchange(root_, nullptr), orphans));
        node.queued_ = false;
    }

    std::mutex mutex_;
    std::condition_variable earlier_;    // wakes the thread: the earliest changed, or the end
    std::condition_variable delivered_;  // wakes take_back(): delivering_ changed
    process_timer_node* root_ = nullptr;
    process_timer_node* delivering_ = nullptr;  // its function runs, without the mutex
    bool started_ = false;
    bool ended_ = false;
    bool handlers_installed_ = false;
    pthread_t thread_{};
};

void process_timer_node::outlive_caller() noexcept {
    process_timer::instance().outlive_caller();
}

bool process_timer_node::arm(std::int64_t due) {
    return process_timer::instance().arm(*this, due);
}

void process_timer_node::disarm() noexcept {
    process_timer::instance().disarm(*this);
}

void process_timer_node::retire() noexcept {
    process_timer::instance().retire(*this);
}

}  // namespace coppice::internal
