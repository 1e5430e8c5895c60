// shared_work: work that several waiters share; its holders, and how waiters arrive and leave.
#pragma once
// The work is started once and ends once. Its waiters register with a stop source, `ended_`, whose
// stop says that the work has ended. A stop source fits, because its callbacks may come and go at
// any time, and each runs at most once. A second source, `stop_`, stops the work.
//
//   holders_   handles and waiters. The last of them to leave stops the work, and drops its share.
//   owners_    shares of the memory: the holders have one together, the running work has one.
//
// A waiter ends by the end of the work, by its own stop, or while it still starts. Its word decides
// between them:
//
//   word_      actor                          next word    the waiter is completed by
//   starting   the end of the work            ended        the starter, when it has started
//   starting   a stop                         stopped      the starter, when it has started
//   starting   the starter, having started    waiting      the next actor, as below
//   waiting    the end of the work            ended        the end
//   waiting    a stop                         stopped      the stop
//
// Before the waiter is completed, both its callbacks are removed. That may wait for the callback of
// the other actor, which came second and no longer touches the waiter. Threads: any. Model:
// tests/model/shared_work_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/stop/inplace.hpp>

#include <cstdint>

namespace coppice::execution::internal {

class shared_work : immovable {
public:
    // relaxed: the caller's own share keeps the work
    void hold() noexcept { holders_.fetch_add(1, relaxed); }
    // Gives up a share. The work may be gone afterwards.
    void let_go() noexcept {
        // edge shared_work.let_go (acq_rel): the last holder sees what the others did
        if (holders_.fetch_sub(1, acq_rel) != 1) return;
        stop_.request_stop();
        drop();
    }
    // Returns true if the caller has the only share. No other thread can then make another one.
    bool has_one_holder() const noexcept {
        // relaxed: the caller only decides whether it waits for the end of the work
        return holders_.load(relaxed) == 1;
    }
    // Returns true if the caller has the only share of work that was started.
    bool would_leave_it_running() const noexcept {
        // edge shared_work.let_go (acquire): sees that a waiter which has left has started the work
        if (holders_.load(acquire) != 1) return false;
        // relaxed: comes after the edge
        return begun_.load(relaxed) != 0;
    }
    // Returns true for the one caller that must start the work.
    [[nodiscard]] bool begin() noexcept {
        // relaxed: what the work needs was written before there was a second holder
        if (begun_.exchange(1, relaxed) != 0) return false;
        if (!planted("shared_work.start_unheld")) owners_.fetch_add(1, relaxed);
        return true;
    }
    // Called when the result is stored. Completes the waiters. The work may be gone afterwards.
    void end() noexcept {
        ended_.request_stop();
        drop();
    }
    // Returns true if the result is stored.
    bool has_ended() const noexcept { return ended_.stop_requested(); }
    inplace_stop_token ended_token() const noexcept { return ended_.get_token(); }
    inplace_stop_token stop_token() const noexcept { return stop_.get_token(); }
    void request_stop() noexcept { stop_.request_stop(); }

protected:
    shared_work() noexcept = default;
    ~shared_work() = default;

private:
    virtual void destroy() noexcept = 0;
    void drop() noexcept {
        // edge shared_work.drop (acq_rel): the last owner sees what the other one did
        if (owners_.fetch_sub(1, acq_rel) == 1) destroy();
    }

    inplace_stop_source ended_;  // stopped by the thread that ends the work
    inplace_stop_source stop_;
    atomic<std::uint32_t> holders_{1};
    atomic<std::uint32_t> owners_{1};
    atomic<std::uint32_t> begun_{0};  // 1: a waiter has started the work
};

// A share of some work. Threads: those of a pointer.
template <class Work>
class shared_handle {
public:
    // Takes over a share.
    explicit shared_handle(Work& work) noexcept : work_(&work) {}
    shared_handle(const shared_handle& other) noexcept : work_(other.work_) {
        if (work_ != nullptr) work_->hold();
    }
    shared_handle(shared_handle&& other) noexcept : work_(std::exchange(other.work_, nullptr)) {}
    shared_handle& operator=(shared_handle other) noexcept {
        std::swap(work_, other.work_);
        return *this;
    }
    ~shared_handle() { reset(); }
    void reset() noexcept {
        if (Work* const work = std::exchange(work_, nullptr)) work->let_go();
    }
    explicit operator bool() const noexcept { return work_ != nullptr; }
    Work* operator->() const noexcept { return work_; }
    Work& operator*() const noexcept { return *work_; }

private:
    Work* work_;
};

enum class shared_event : std::uint8_t { none, ended, stopped };

// One wait for some work, which the derived class keeps. Token is that of the waiter.
template <class Token>
class shared_wait : immovable {
protected:
    explicit shared_wait(shared_work& work) noexcept : work_(&work) {}
    ~shared_wait() {
        COPPICE_CHECK(
            !is_waiting_,
            "a waiter of a shared_task was destroyed while it waited: keep it until it completes");
    }
    // Starts to wait. Calls start(), which starts the work unless another waiter did. Returns what
    // has happened until then, and the caller completes the waiter. After `none`, woken() does so,
    // on any thread; this object may be gone.
    template <class Start>
    [[nodiscard]] shared_event wait(const Token& token, Start start) noexcept {
        // The last holder does not leave running work: it registers, which stops the work at once.
        if (token.stop_requested() &&
            (!work_->would_leave_it_running() || planted("shared_wait.leave_running"))) {
            return shared_event::stopped;
        }
        is_waiting_ = true;
        on_end_.engage(work_->ended_token(), end_of_work(*this));
        start();
        on_stop_.engage(token, stop_of_waiter(*this));
        word expected = starting;
        // relaxed on failure: settle() takes the callbacks back, so it comes after what they did
        // edge shared_wait.begun (release): both callbacks are registered
        if (word_.compare_exchange_strong(expected, waiting, release, relaxed)) {
            return shared_event::none;
        }
        return settle(expected);
    }
    // Called once after wait() has returned `none`: the waiter is to be completed.
    virtual void woken(shared_event event) noexcept = 0;

private:
    enum word : std::uint8_t { starting, waiting, claimed_by_end, claimed_by_stop };

    class end_of_work {
    public:
        explicit end_of_work(shared_wait& waiter) noexcept : waiter_(&waiter) {}
        void operator()() noexcept { waiter_->claim(claimed_by_end); }

    private:
        shared_wait* waiter_;
    };
    class stop_of_waiter {
    public:
        explicit stop_of_waiter(shared_wait& waiter) noexcept : waiter_(&waiter) {}
        void operator()() noexcept {
            if (waiter_->work_->has_one_holder()) {
                waiter_->work_->request_stop();  // the work may end inside, and the waiter with it
            } else {
                waiter_->claim(claimed_by_stop);
            }
        }

    private:
        shared_wait* waiter_;
    };

    // Completes the waiter, if nothing else does. It may be gone afterwards.
    void claim(word by) noexcept {
        // relaxed: the exchange looks again
        word seen = word_.load(relaxed);
        do {
            if (seen != starting && seen != waiting && !planted("shared_wait.claim_twice")) return;
            // edge shared_wait.begun (acquire): both callbacks are registered
        } while (!word_.compare_exchange_weak(seen, by, acquire, relaxed));
        if (seen != starting || planted("shared_wait.complete_early")) woken(settle(by));
    }
    // Removes the callbacks. Called by the thread that completes the waiter.
    shared_event settle(word by) noexcept {
        on_stop_.reset();
        on_end_.reset();
        is_waiting_ = false;
        return by == claimed_by_end ? shared_event::ended : shared_event::stopped;
    }

    shared_work* work_;
    atomic<word> word_{starting};
    bool is_waiting_ = false;  // written by the starter, and by the thread that completes
    stop_registration<inplace_stop_token, end_of_work> on_end_;
    [[no_unique_address]] stop_registration<Token, stop_of_waiter> on_stop_;
};

}  // namespace coppice::execution::internal
