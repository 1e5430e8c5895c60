// sleeping_workers: the workers that sleep because their group has no work, and how to wake them.
#pragma once
// A worker that is about to sleep takes a seat, which has a futex word. Two signal trees know the
// seats: `vacant_` has the free ones, `asleep_` those whose worker may be woken.
//
//   worker           sit_down: arms the word, sets the seat's signal in asleep_
//                    looks for work once more, and whether its wait has ended
//                    sleep, if there is no work: until the word says woken
//                    stand_up: resets the seat's signal; if a waker took it, the worker was woken
//   waker            wake_one: if asleep_ is not empty, takes a signal, sets its word, wakes it
//
// Either-or. The waker makes work known, then looks whether asleep_ is empty. The worker sets its
// signal in asleep_, then looks for work. All four steps are seq_cst. Either the waker's look comes
// after the worker's signal; then the waker finds the signal, or another waker took it and wakes
// the worker. Or the worker's look comes after the work; then the worker finds the work. A worker
// that stands up for another reason while a wake-up was on its way passes the wake-up on, so none
// is lost. Model: tests/model/sleep_model.cpp.
//
// A late wake-up may reach the next worker on the same seat, which finds nothing and sits down
// again.
//
// Threads: wake_one() from any thread; the rest by each worker for itself. Source: ours.

#include <coppice/base/internal/futex.hpp>
#include <coppice/signal/signal_tree.hpp>

namespace coppice::internal {

class sleeping_workers : immovable {
public:
    // Makes seats for that many sleepers at once. A worker without a seat naps instead: see
    // blocking_group.hpp. Errors: what allocation throws. Cost: 4 bytes per seat, and a cache line
    // per 32 seats.
    explicit sleeping_workers(std::size_t seats)
        : asleep_(seats), vacant_(seats), seats_(std::make_unique<seat_word[]>(seats)) {
        vacant_.set_range(0, seats);
    }

    // Wakes one sleeping worker, if there is one. Blocks: never. Cost: one load if no worker
    // sleeps, otherwise a system call.
    void wake_one() noexcept {
        if (asleep_.empty()) return;
        if (const auto seat = asleep_.select_first()) wake(*seat);
    }

    // Takes the lowest free seat, so that few workers stay warm. Returns no_signal if there is
    // none.
    std::size_t take_seat() noexcept { return vacant_.select_first().value_or(no_signal); }
    void give_seat_back(std::size_t seat) noexcept { vacant_.set(seat); }

    // Waits until look() finds something, and returns that. Returns no_signal if look() finds
    // nothing and either end() was called or ended() returns true. sleep_on_seat() may return
    // spuriously.
    template <class Look, class Ended, class Sleep>
    std::size_t wait(std::size_t seat, Look look, Ended ended, Sleep sleep_on_seat) noexcept {
        for (;;) {
            sit_down(seat);
            std::size_t found = planted("sleep.look_before_sitting") ? no_signal : look();
            const bool over = found == no_signal && (is_over() || ended());
            if (found == no_signal && !over) sleep_on_seat();
            const bool woken = stand_up(seat);
            if (found != no_signal || over) {
                // The waker's work may not be what look() found, so this worker passes the wake-up
                // on.
                if (woken && !planted("sleep.keep_wake")) wake_one();
                return found;
            }
            found = look();
            if (found != no_signal) return found;
        }
    }

    // Blocks: until woken; may return spuriously.
    void sleep(std::size_t seat) noexcept { futex_wait(seats_[seat].woken, std::uint32_t{0}); }
    // Ends all waits, now and later.
    void end() noexcept {
        // edge sleep.end (seq_cst): either a worker sees this, or this sees its seat in asleep_
        over_.store(true, seq_cst);
        while (const auto seat = asleep_.select_first()) wake(*seat);
    }
    bool is_over() const noexcept {
        return over_.load(seq_cst);  // edge sleep.end (seq_cst): as in end()
    }
    // Wakes the worker on the seat, because its wait has ended.
    void wake(std::size_t seat) noexcept {
        // edge sleep.wake (release): what made the caller wake it; pairs with sit_down()
        seats_[seat].woken.store(1, release);
        if (!planted("sleep.forget_wake")) futex_wake_one(seats_[seat].woken);
    }

#if !defined(COPPICE_MODEL)
    // Sleeps like sleep(), but at most until `nanoseconds` of the monotonic clock.
    void sleep_until(std::size_t seat, std::int64_t nanoseconds) noexcept {
        futex_wait_until(seats_[seat].woken, std::uint32_t{0}, nanoseconds);
    }
#endif

private:
    struct seat_word {
        atomic<std::uint32_t> woken{0};  // 0 armed, 1 woken; written by its worker and by wakers
    };

    // Puts the worker on its seat. From here on wake_one() may choose the seat.
    void sit_down(std::size_t seat) noexcept {
        // edge sleep.wake (acquire): what the waker did before it called wake()
        seats_[seat].woken.exchange(0, acquire);
        asleep_.set(seat);
    }
    // Takes the worker off its seat. Returns true if a waker chose the seat; that waker relies on
    // the caller to look for work.
    bool stand_up(std::size_t seat) noexcept { return !asleep_.reset(seat); }

    signal_tree asleep_;  // set by workers; taken by wakers
    signal_tree vacant_;  // taken and set by workers
    atomic<bool> over_{false};
    std::unique_ptr<seat_word[]> seats_;
};

}  // namespace coppice::internal
