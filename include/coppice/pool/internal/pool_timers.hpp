// pool_timers: the timers of a pool; each worker has a wheel, and one sleeper watches for all.
#pragma once
// A timer is in the wheel of the worker that armed it, or in a wheel for all other threads. Each
// wheel has a lock that is biased to its worker, so the worker arms and cancels its own timers with
// plain stores. Other threads take the lock: a thread that requests a stop, and a worker that finds
// the owner late.
//
//   next_    of a wheel: no timer of it is due before this tick. It falls when an earlier timer is
//            armed, and rises only when the wheel is served; canceling leaves it
//   watch_   the tick at which a sleeping worker has promised to wake and look; never if there is
//            no such promise
//
// A timer is watched if watch_ is not later than its tick, or a worker is awake and will look
// before it sleeps. A worker that is awake may compute for long. So while all workers are awake
// and none searches, a guard backs them: the timer of the process, which looks a little later.
//
//   guard_   the tick at which the guard looks; never if it does not. It only tells the receivers
//            of timers that are due (due_notice.hpp), and puts these timers into late_, from which
//            a worker takes them at its next look. So does a thread that is not a worker, if its
//            timer is due when it is started
//   looks_   true while the guard may have timers that are in no wheel, and not in late_ yet
//
// The protocol is that of parking, with a timer as the work:
//
//   armer     lowers next_               fence A     wakes a worker if watch_ is later
//   sleeper   announces its sleep        fence B     reads each next_, and promises the earliest
//                                                    unless watch_ is that early already
//   promiser  wakes, takes back watch_   fence C     as the last searcher to find work, wakes
//                                                    another worker if a timer is unwatched
//   guard     takes back guard_          fence D     reads each next_ and watch_, and sets guard_
//                                                    again if a timer is unwatched
//
// An armer or a promiser that would wake a worker, but finds only busy ones, sets the guard.
//
// Either-or. Either A comes before B, and the sleeper sees the timer; or the armer sees the sleeper
// and the promises that are older than its sleep. Either A comes before C, and the promiser sees
// the timer; or the armer sees that the promise is gone. Either B comes before C, and the promiser
// sees the sleeper that relied on it; or the sleeper sees that the promise is gone. With D it is
// alike: either the guard sees the timer, or that the promise is gone; or the armer or the promiser
// sees that guard_ is. Model: tests/model/pool_timers_model.cpp.
//
// The end of a timer. Its phase is guarded by the lock of its wheel. The thread that moves it to
// `ended` enqueues the timer, which is an item of the pool; the item completes the operation. If
// the time has come, the thread gives the receiver's notice before, without a lock.
//
//   idle -> armed     start
//   idle -> ended     start: a stop has come before, or the time has; enqueued at once
//   armed -> ended    a worker that finds it due, or the end of the pool; or a stop request
//
// Source: ours.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/biased_lock.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/internal/timer_wheel.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/pool/internal/pool_timer.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace coppice::internal {

using item_chain = intrusive_queue<work_item, &work_item::next>;

// Takes the timers whose receivers want no notice out of `ended`, in their order. They must not
// wait for the notices of the others, which run stop callbacks of users.
inline item_chain take_without_notice(item_chain& ended) noexcept {
    item_chain without;
    item_chain others;
    while (work_item* const item = ended.pop_front()) {
        const bool wants = static_cast<pool_timer*>(item)->wants_notice();
        (wants ? others : without).push_back(item);
    }
    ended.append(static_cast<item_chain&&>(others));
    return without;
}

// The thread that uses a wheel: its worker, or another thread.
enum class wheel_user : bool { other, owner };

// A wheel with its lock. Threads: any; `user` says which. Blocks: for the short lock.
class alignas(64) timer_shard : immovable {
public:
    using tick_type = std::uint64_t;
    static constexpr tick_type never = ~tick_type{0};

    explicit timer_shard(biased_lock::initially bias) noexcept : lock_(bias) {}

    tick_type next() const noexcept { return next_.load(relaxed); }

    // The result of arming a timer. `earliest`: the timer waits, and the caller must ensure that it
    // is watched. `ended`: the caller enqueues the timer.
    enum class armed { waits, earliest, ended };
    [[nodiscard]] armed arm(pool_timer& timer, tick_type now, wheel_user user) noexcept {
        const hold held(lock_, user);
        timer.number = ++armed_;
        if (timer.stopped.read() || timer.due <= now) {
            timer.phase.write(timer_phase::ended);
            return armed::ended;
        }
        timer.phase.write(timer_phase::armed);
        timer.expire = &expire;
        if (wheel_.size() == 0) wheel_.advance(now);
        wheel_.arm(timer, timer.due);
        if (timer.due >= next_.load(relaxed)) return armed::waits;
        next_.store(timer.due, relaxed);  // relaxed: fence A orders it
        return armed::earliest;
    }
    // Called for a stop. Returns true if the timer was armed; the caller then enqueues it. A timer
    // that is not armed yet ends when it is armed.
    [[nodiscard]] bool cancel(pool_timer& timer, wheel_user user) noexcept {
        const hold held(lock_, user);
        if (timer.phase.read() == timer_phase::ended) return false;
        timer.stopped.write(true);
        if (timer.phase.read() == timer_phase::idle) return false;
        wheel_.cancel(timer);
        timer.phase.write(timer_phase::ended);
        return true;
    }
    // Adds the timers that are due to `out`, earliest first, about `batch` at most. Releases the
    // lock now and then, so that another thread waits for a few microseconds at most.
    void take_due(tick_type now, wheel_user user, item_chain& out) noexcept {
        take_due(now, user, out, [](item_chain&) noexcept {});
    }
    // Does the same. Calls inside(chain) for what it takes in each hold, before another thread can
    // find the wheel without these timers.
    template <class Inside>
    void take_due(tick_type now, wheel_user user, item_chain& out, Inside inside) noexcept {
        std::size_t taken = 0;
        while (take_some_due(now, user, out, taken, inside) && taken < batch) {
            spin_hint();  // gives waiting threads a chance to take the lock
        }
    }
    // Adds all timers to `out`, as stopped.
    void take_all(wheel_user user, item_chain& out) noexcept {
        const hold held(lock_, user);
        stops_all_ = true;
        wheel_.expire_all();
        stops_all_ = false;
        next_.store(never, release);  // edge pool_timers.taken (release): a taker has begun
        take(out);
    }

    // Called by the worker whose wheel this is, around taking timers of any wheel, or late ones,
    // until it has enqueued them: see has_any_for().
    void begin_taking() noexcept {
        // relaxed: next_ or late_ publishes it
        if (!planted("pool_timers.take_unseen")) takes_.store(true, relaxed);
    }
    void end_taking() noexcept {
        takes_.store(false, relaxed);  // relaxed: its worker runs what it left
    }
    bool is_taking() const noexcept {
        return takes_.load(relaxed);  // relaxed: the caller has fenced
    }

private:
    static constexpr std::size_t batch = 256;
    static constexpr std::size_t steps_at_once = 64;  // timers that a hold takes or moves

    // Adds to `taken` how many it took. Returns true if something is left to do.
    template <class Inside>
    bool take_some_due(tick_type now, wheel_user user, item_chain& out, std::size_t& taken,
                       Inside& inside) noexcept {
        const hold held(lock_, user);
        const std::size_t before = wheel_.size();
        const bool more = wheel_.advance_some(now, steps_at_once);
        taken += before - wheel_.size();
        inside(ended_);
        // It only rises; a lower value is read as a hint.
        next_.store(next_tick(), release);  // edge pool_timers.taken (release): as below
        take(out);
        return more;
    }

    class hold : immovable {
    public:
        hold(biased_lock& lock, wheel_user user) noexcept : lock_(lock), user_(user) {
            if (user == wheel_user::owner) {
                by_bias_ = lock.enter_as_owner();
            } else {
                lock.lock();
            }
        }
        ~hold() {
            if (user_ == wheel_user::owner) {
                lock_.leave_as_owner(by_bias_);
            } else {
                lock_.unlock();
            }
        }

    private:
        biased_lock& lock_;
        const wheel_user user_;
        bool by_bias_ = false;
    };

    tick_type next_tick() const noexcept { return wheel_.next_tick().value_or(never); }
    void take(item_chain& out) noexcept { out.append(static_cast<item_chain&&>(ended_)); }
    // Called by the wheel.
    static void expire(timer_entry* entry) noexcept {
        pool_timer& timer = *static_cast<pool_timer*>(entry);
        timer.shard->end(timer);
    }
    void end(pool_timer& timer) noexcept {
        if (stops_all_) {
            timer.stopped.write(true);
        } else if (timer.due > wheel_.now()) {  // farther away than the wheel reaches
            wheel_.arm(timer, timer.due);
            return;
        }
        timer.phase.write(timer_phase::ended);
        ended_.push_back(&timer);
    }

    atomic<tick_type> next_{never};  // see above; written under the lock, read by all workers
    atomic<bool> takes_{false};      // written by its worker
    biased_lock lock_;
    bool stops_all_ = false;   // guarded by the lock, as all below
    std::uint64_t armed_ = 0;  // how many timers were armed
    item_chain ended_;
    timer_wheel wheel_;
};

// Threads: any, for every member.
class pool_timers : immovable {
public:
    using tick_type = timer_shard::tick_type;
    static constexpr tick_type never = timer_shard::never;
    static constexpr unsigned tick_bits = 16;  // a tick has 65,536 ns

    // Rounds up: a timer is not early.
    static tick_type tick_of(std::int64_t nanoseconds) noexcept {
        if (nanoseconds <= 0) return 0;
        return ((static_cast<tick_type>(nanoseconds) - 1) >> tick_bits) + 1;
    }
    // Rounds down: a tick that has come.
    static tick_type tick_at(std::int64_t now) noexcept {
        return static_cast<tick_type>(now) >> tick_bits;
    }
    // Returns the time of a tick. The last tick, that of instant::never(), is beyond all times: its
    // time is the latest one.
    static std::int64_t nanoseconds_of(tick_type tick) noexcept {
        constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max();
        if (tick > static_cast<tick_type>(latest) >> tick_bits) return latest;
        return static_cast<std::int64_t>(tick << tick_bits);
    }

    explicit pool_timers(std::size_t workers) : count_(workers + 1) {
        for (std::size_t i = 0; i != workers; ++i) {
            shards_.push_back(std::make_unique<timer_shard>(biased_lock::initially::biased));
        }
        shards_.push_back(std::make_unique<timer_shard>(biased_lock::initially::shared));
    }

    // The wheels: 0 to count() - 2 belong to the workers, the last one to the other threads.
    std::size_t count() const noexcept { return count_; }
    timer_shard& operator[](std::size_t i) noexcept { return *shards_[i]; }
    timer_shard& outside() noexcept { return *shards_[count_ - 1]; }

    // Returns true from the first timer on that has waited in this pool. A worker that must not
    // miss the first one calls a fence before.
    bool are_used() const noexcept { return used_.load(relaxed); }

    // Arms the timer in the wheel that it names. If it returns `earliest`, the caller wakes a
    // worker if must_wake().
    [[nodiscard]] timer_shard::armed arm(pool_timer& timer, tick_type now,
                                         wheel_user user) noexcept {
        // relaxed: fence A orders it
        if (!used_.load(relaxed)) used_.store(true, relaxed);
        return timer.shard->arm(timer, now, user);
    }
    // Called by the armer of the earliest timer, which is due at `tick`. Returns true if no sleeper
    // has promised to look by then.
    [[nodiscard]] bool must_wake(tick_type tick) const noexcept {
        fence(seq_cst);  // edge pool_timers.watch (seq_cst): fence A
        return tick < watch_.load(relaxed);
    }
    // Called by a searcher that has found work, after fence B of the last searcher. Returns true if
    // no sleeper has promised to look at the earliest timer in time.
    bool are_unwatched() const noexcept { return are_used() && earliest() < watch_.load(relaxed); }

    // Called by a worker that has announced its sleep, after fence B. Returns the tick at which it
    // must wake and call take_back(); never if it need not.
    [[nodiscard]] tick_type promise() noexcept {
        if (!are_used()) return never;
        const tick_type mine = earliest();
        tick_type promised = watch_.load(relaxed);
        do {
            if (mine >= promised) return never;
        } while (!watch_.compare_exchange_weak(promised, mine, relaxed, relaxed));
        return mine;
    }
    // Called by a worker that has promised, when it is awake.
    void take_back(tick_type promised) noexcept {
        // Fails if another sleeper has promised an earlier look. relaxed: fence C orders it.
        if (!planted("pool_timers.keep_promise")) {
            watch_.compare_exchange_strong(promised, never, relaxed, relaxed);
        }
        fence(seq_cst);  // edge pool_timers.watch (seq_cst): fence C
    }

    // Returns a tick before which no worker has to look: no timer is due, and none is late.
    tick_type earliest() const noexcept { return are_late() ? 0 : earliest_in_wheels(); }
    // Returns a tick before which no timer is due.
    tick_type earliest_in_wheels() const noexcept {
        tick_type found = never;
        for (const auto& each : shards_) {
            const tick_type next = each->next();
            if (next < found) found = next;
        }
        return found;
    }

    // The guard. The caller serializes the calls that change guard_: set_guard(), begin_look().
    static constexpr tick_type patience = 16;  // ticks by which it is later than the timer: 1 ms
    // Returns true if the guard must be set for `tick`. Called after fence A, B, or D.
    bool guards_later_than(tick_type tick) const noexcept { return guard_.load(relaxed) > tick; }
    void set_guard(tick_type tick) noexcept { guard_.store(tick, relaxed); }
    // Called when the guard looks. It then sets the guard again if are_unwatched().
    void begin_look() noexcept {
        guard_.store(never, relaxed);
        looks_.store(true, relaxed);
        fence(seq_cst);  // edge pool_timers.watch (seq_cst): fence D
    }
    // Called when it has put what it took from the wheels.
    void end_look() noexcept {
        looks_.store(false, release);  // edge pool_timers.looked (release): the late timers
    }
    // Called by the guard, and by a thread that starts a timer whose time has come. The timers have
    // ended, and their receivers have been told. The caller then wakes a worker.
    void put_late(item_chain& told) noexcept {
        while (work_item* const item = told.pop_front()) {
            work_item* top = late_.load(relaxed);
            do {
                item->next = top;
                // edge pool_timers.late (release): what the receiver was told
            } while (!late_.compare_exchange_weak(top, item, release, relaxed));
        }
    }
    bool are_late() const noexcept { return late_.load(relaxed) != nullptr; }
    // Called by a worker: adds these timers to `out`, in the order in which they were put.
    void take_late(item_chain& out) noexcept {
        if (!are_late()) return;
        item_chain first_put;
        fence(release);  // edge pool_timers.taken (release): a taker has begun
        // edge pool_timers.late (acquire): what the receiver was told
        work_item* top = late_.exchange(nullptr, acquire);
        while (top != nullptr) {
            work_item* const below = top->next;
            first_put.push_front(top);
            top = below;
        }
        out.append(static_cast<item_chain&&>(first_put));
    }

    // Called by a worker that ends, when no other thread can arm a timer. True if timers wait in
    // its own wheel or in that of the other threads, or if the guard or another worker has taken
    // some that no worker has enqueued yet: a stop callback that it runs may wait for one of them.
    // Its wheel is empty when it ends, and nothing is armed there later.
    bool has_any_for(std::size_t worker) noexcept {
        if (shards_[worker]->next() != never || outside().next() != never) return true;
        fence(seq_cst);  // edge pool_timers.looked (seq_cst): it has taken them, so it looks
        // edge pool_timers.looked (acquire): the late timers
        if (looks_.load(acquire)) return true;
        if (are_late()) return true;
        fence(acquire);  // edge pool_timers.taken (acquire): a taker has begun
        for (std::size_t i = 0; i + 1 != count_; ++i) {
            if (i != worker && shards_[i]->is_taking()) return true;
        }
        return false;
    }

private:
    const std::size_t count_;
    std::vector<std::unique_ptr<timer_shard>> shards_;
    alignas(64) atomic<bool> used_{false};  // set once; read by all workers, as the next
    atomic<work_item*> late_{nullptr};      // see above; changed by the guard and its next worker
    atomic<tick_type> guard_{never};        // see above; changed by armers and the guard, rarely
    atomic<bool> looks_{false};             // see above; changed by the guard
    alignas(64) atomic<tick_type> watch_{never};  // see above; changed by sleepers
};

}  // namespace coppice::internal
