// once_core: which get() makes the value of an async_once, and the queue of the others.
#pragma once
// The state of the word:
//
//   empty      no value, and no get() makes one
//   running    one get() makes the value
//   waiting    the same; waiters may be linked
//   done       the value is there
//
//   empty -> running            by a get()
//   running -> done             the value was made: all waiters are granted it
//   running -> empty            it failed: all waiters are granted the error
//   running -> running, empty   the get() that runs was stopped: the oldest waiter, if any, runs
//
// Model: tests/model/once_model.cpp.

#include <coppice/sync/internal/waiter.hpp>

#include <cstdint>
#include <exception>
#include <system_error>
#include <utility>

namespace coppice::internal {

// What a get() has been granted.
struct once_turn {
    enum class what : unsigned char { value, error, run };
    what kind = what::value;
    std::exception_ptr error;
};

class once_waiter : public waiter {
public:
    using waiter::waiter;
    once_turn* turn = nullptr;  // written by the thread that grants it; set before it is linked
};

class once_core {
public:
    constexpr once_core() noexcept = default;

    bool is_done() const noexcept { return lock_.look() == done; }
    // Returns true if the caller must make the value. May fail although no other get() makes it.
    bool try_run() noexcept {
        if (planted("once.run_twice")) return lock_.peek(relaxed) == empty;
        return lock_.try_change(empty, running);
    }

    // Called by the get() that runs: it has made the value, it has failed, or it gives up. Call the
    // functions of the waiters that they grant; then the object may be gone.
    void publish() noexcept { end(done, once_turn::what::value, nullptr); }
    void fail(const std::exception_ptr& error) noexcept {
        end(empty, once_turn::what::error, error);
    }
    void give_up() noexcept {
        granted_waiters next;
        lock_.lock();
        if (once_waiter* const w = waiters_.claim_front()) {
            w->turn->kind = once_turn::what::run;
            next.add(*w);
            lock_.set_state(waiters_.empty() ? running : waiting);
        } else {
            lock_.set_state(planted("once.give_up_for_good") ? running : empty);
        }
        lock_.unlock();
        next.call_all();
    }

    queue_lock& queue() noexcept { return lock_; }
    // Requires the lock of the queue.
    bool attempt(once_turn& turn) noexcept {
        if (lock_.state() == done) return true;
        if (lock_.state() != empty) return false;
        lock_.set_state(running);
        turn.kind = once_turn::what::run;
        return true;
    }
    void link(once_waiter& w, once_turn& turn) noexcept {
        w.turn = &turn;
        lock_.set_state(waiting);
        waiters_.push_back(w);
    }
    void unlink(once_waiter& w) noexcept {
        waiters_.erase(w);
        if (waiters_.empty()) lock_.set_state(running);
    }

private:
    static constexpr std::uint64_t empty = 0;
    static constexpr std::uint64_t running = queue_lock::unit;
    static constexpr std::uint64_t waiting = 2 * queue_lock::unit;
    static constexpr std::uint64_t done = 3 * queue_lock::unit;

    void end(std::uint64_t state, once_turn::what kind, const std::exception_ptr& error) noexcept {
        if (lock_.try_change(running, state)) return;
        granted_waiters all;
        lock_.lock();
        lock_.set_state(state);
        while (once_waiter* const w = waiters_.claim_front()) {
            w->turn->kind = kind;
            w->turn->error = error;
            all.add(*w);
        }
        lock_.unlock();
        all.call_all();
    }

    queue_lock lock_{empty};
    waiter_queue<once_waiter> waiters_;
};

// Waits for the value, for the error of the running get(), or for the turn to run.
struct once_request {
    using waiter_type = once_waiter;
    using result = once_turn;
    static constexpr const char* name = "async_once::get";

    queue_lock& lock() noexcept { return core->queue(); }
    bool try_now() noexcept {
        if (core->is_done()) return true;
        if (!core->try_run()) return false;
        turn.kind = once_turn::what::run;
        return true;
    }
    bool attempt(granted_waiters&) noexcept { return core->attempt(turn); }
    void link(once_waiter& w) noexcept { core->link(w, turn); }
    void unlink(once_waiter& w, granted_waiters&) noexcept { core->unlink(w); }
    std::error_code error() const noexcept { return {}; }
    once_turn take() noexcept { return std::move(turn); }
    once_turn nothing() noexcept { return {}; }

    once_core* core;
    once_turn turn{};
};

// Held by the get() that makes the value. If a stop ends that get(), the next waiter takes over.
class once_run {
public:
    explicit once_run(once_core& core) noexcept : core_(&core) {}
    once_run(const once_run&) = delete;
    once_run& operator=(const once_run&) = delete;
    ~once_run() {
        if (core_ != nullptr) core_->give_up();
    }
    void publish() noexcept { std::exchange(core_, nullptr)->publish(); }
    void fail(const std::exception_ptr& error) noexcept {
        std::exchange(core_, nullptr)->fail(error);
    }

private:
    once_core* core_;
};

}  // namespace coppice::internal
