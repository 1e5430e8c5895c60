// The state of spawn_future: where the spawned operation and its future meet.
#pragma once
// The two share one allocation, the state. Two things can happen to it from each side, in any
// order, and one word decides between them:
//
//   running    neither side has acted
//   stopped    the consumer's stop came before the consumer registered; consume() completes it as
//              stopped
//   waiting    a consumer is registered
//   completed  the result is stored
//   over       no consumer will come; complete() only ends
//
// The table has the next state and the action. "-" leaves the state, "never" cannot happen.
//
//   found      complete        consume              try_set_stopped      abandon
//   running    completed       waiting              stopped              over
//   stopped    completed       over, set_stopped    -                    over
//   waiting    over, deliver   never                over, set_stopped    never
//   completed  never           deliver              -                    -
//   over       -               never                -                    never
//
// The state has up to three holders: the operation until it has completed, the future until it has
// been consumed or abandoned, and a stop callback while it runs, because the operation may complete
// inside it. The last holder destroys the state, and then leaves the scope. Source:
// [exec.spawn.future]. Model: tests/model/spawn_future_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/internal/alternatives.hpp>

#include <utility>

namespace coppice::execution::internal {

// Where the two sides of a spawn_future meet. Threads: one operation, one consumer, one stop
// callback.
class future_meeting : immovable {
public:
    enum class found : unsigned char { running, stopped, waiting, completed, over };

    // Each returns the state that it found, and moves on from it as the table says.
    [[nodiscard]] found complete() noexcept {
        return move_on([](found seen) {
            if (seen == found::running || seen == found::stopped) return found::completed;
            return planted("future.keep_waiting") ? seen : found::over;
        });
    }
    [[nodiscard]] found consume() noexcept {
        return move_on([](found seen) {
            if (seen == found::running) return found::waiting;
            return seen == found::stopped ? found::over : seen;
        });
    }
    [[nodiscard]] found try_set_stopped() noexcept {
        return move_on([](found seen) {
            if (seen == found::running) return found::stopped;
            return seen == found::waiting ? found::over : seen;
        });
    }
    [[nodiscard]] found abandon() noexcept {
        return move_on([](found seen) { return seen == found::completed ? seen : found::over; });
    }

    // Adds a holder. The caller is one already.
    // relaxed: the caller's own share keeps the state
    void hold() noexcept { holders_.fetch_add(1, relaxed); }
    // Returns true if that was the last holder; the caller must destroy the state.
    [[nodiscard]] bool let_go() noexcept {
        // edge future.let_go (release), edge future.let_go (acquire): the last sees all work
        return holders_.fetch_sub(1, acq_rel) == 1;
    }

private:
    template <class Next>
    found move_on(Next next) noexcept {
        found seen = state_.load(relaxed);
        while (
            // edge future.meet (release), edge future.meet (acquire): the result, or the consumer
            !state_.compare_exchange_weak(seen, next(seen), acq_rel, relaxed)) {
        }
        return seen;
    }

    atomic<found> state_{found::running};
    atomic<unsigned> holders_{2};  // the operation and the future
};

template <class Sigs>
class future_state_base : public future_meeting {
public:
    // The reader of the result. Either call may destroy it.
    class consumer {
    public:
        virtual void deliver(completion_store<Sigs>& result) noexcept = 0;
        virtual void stopped() noexcept = 0;

    protected:
        ~consumer() = default;
    };

    // Called by the spawned operation after the result is stored.
    void operation_completed() noexcept {
        if (complete() == found::waiting) {
            consumer_->deliver(result);
            release();  // the future's share
        }
        release();
    }
    // Called by the future, once: registers a consumer or completes it.
    void consume(consumer& reader) noexcept {
        consumer_ = &reader;
        const found seen = future_meeting::consume();
        if (seen == found::running) return;
        if (seen == found::completed) {
            reader.deliver(result);
        } else {
            reader.stopped();
        }
        release();
    }
    // Called by the future if there will be no consumer.
    void abandon() noexcept {
        if (future_meeting::abandon() != found::completed) stop_operation();
        release();
    }
    // Called by the consumer's stop callback.
    void try_cancel() noexcept {
        const bool held = !planted("future.cancel_unheld");
        if (held) hold();
        stop_operation();
        if (try_set_stopped() == found::waiting) {
            consumer_->stopped();
            release();  // the future's share
        }
        if (held) release();
    }

    completion_store<Sigs> result;  // written by the operation

protected:
    ~future_state_base() = default;

private:
    virtual void stop_operation() noexcept = 0;
    virtual void destroy() noexcept = 0;
    void release() noexcept {
        if (let_go()) destroy();
    }

    consumer* consumer_ = nullptr;  // written by the future before it is registered
};

// Owns the future's share of the state. Abandons it if it was not released to a consumer.
template <class Sigs>
class future_handle {
public:
    explicit future_handle(future_state_base<Sigs>& state) noexcept : state_(&state) {}
    future_handle(future_handle&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
    future_handle& operator=(future_handle&&) = delete;
    ~future_handle() {
        if (state_ != nullptr) state_->abandon();
    }
    future_state_base<Sigs>* get() const noexcept { return state_; }
    future_state_base<Sigs>* release() noexcept { return std::exchange(state_, nullptr); }

private:
    future_state_base<Sigs>* state_;
};

}  // namespace coppice::execution::internal
