// The model of a pool's timers: no sleeper misses the earliest one, and each ends exactly once.
#include "exec_model.hpp"

#include <coppice/base/internal/gate.hpp>
#include <coppice/pool/internal/parking.hpp>
#include <coppice/pool/internal/pool_timer_sender.hpp>
#include <coppice/pool/internal/pool_timers.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

constexpr const char* parking_file = "include/coppice/pool/internal/parking.hpp";
constexpr const char* timers_file = "include/coppice/pool/internal/pool_timers.hpp";
constexpr const char* lock_file = "include/coppice/base/internal/biased_lock.hpp";
constexpr const char* gate_file = "include/coppice/base/internal/gate.hpp";

// The ticks of the model. Time begins at 0, and a thread lets it pass.
constexpr std::uint64_t early = 5;
constexpr std::uint64_t late = 9;

// Sleeping workers, and a thread that arms two timers. Nothing wakes a sleeper but the protocol; so
// a timer that no worker watches is a deadlock.
//   earlier   the second timer is earlier than the first one, whose time never comes
//   later     the second timer is later, and is armed when the time of the first one has come
//   follows   the second timer is later. When the time of the first one comes, an item is added: a
//             sleeper that has promised may be claimed by a wake whose token another worker takes
//   busy      as `earlier`; another thread adds an item that ends only when the early timer has
//             ended, so that the worker that runs it cannot look. The item lets the time come
enum class armed_second { earlier, later, follows, busy };
template <int Workers, armed_second Second>
inline constexpr int threads_of = Workers + (Second == armed_second::busy ? 2 : 1);
template <int Workers, armed_second Second>
struct watched_timers : model::test<watched_timers<Workers, Second>, threads_of<Workers, Second>> {
    static constexpr bool is_busy = Second == armed_second::busy;
    static constexpr bool follows = Second == armed_second::follows;
    static constexpr bool is_later = Second == armed_second::later || follows;
    static constexpr unsigned first_worker = is_busy ? 2 : 1;
    static constexpr std::uint32_t items = is_busy || follows ? 3 : 2;
    // Items that are ready, as bits.
    static constexpr unsigned early_item = 1;
    static constexpr unsigned late_item = 2;
    static constexpr unsigned busy_item = 4;
    static constexpr unsigned plain_item = 8;

    struct timer : pool_timer {
        timer(watched_timers& t, unsigned bit) noexcept
            : pool_timer(nullptr, any_node), test(t), item(bit) {}
        watched_timers& test;
        const unsigned item;
    };
    parking_lots lots{1};
    pool_timers timers{Workers};
    timer early_timer{*this, early_item};
    timer late_timer{*this, late_item};
    atomic<unsigned> ready{0};
    atomic<std::uint32_t> fired{0};
    atomic<std::uint32_t> ended{0};  // items

    void pass_time(std::uint64_t to) { this->futexes.pass_time(pool_timers::nanoseconds_of(to)); }
    std::uint64_t now() const { return pool_timers::tick_at(this->futexes.time); }

    void add(unsigned item) {
        ready.fetch_or(item, release);
        lots.wake_one(0);
    }
    unsigned take() {
        unsigned all = ready.load(acquire);
        while (all != 0) {
            const unsigned one = all & (0 - all);
            if (ready.compare_exchange_weak(all, all - one, acq_rel, acquire)) return one;
        }
        return 0;
    }
    void arm(timer& t, std::uint64_t due, timer_shard& shard, wheel_user user) {
        t.shard = &shard;
        t.due = due;
        const timer_shard::armed how = timers.arm(t, now(), user);
        if (how == timer_shard::armed::ended) add(t.item);
        if (how != timer_shard::armed::earliest) return;
        if (timers.must_wake(due) && !planted("pool_timers.arm_unseen")) lots.wake_one(0);
    }
    void serve(std::size_t worker) {
        item_chain due;
        for (std::size_t i = 0; i != timers.count(); ++i) {
            if (timers[i].next() > now()) continue;
            timers[i].take_due(now(), i == worker ? wheel_user::owner : wheel_user::other, due);
        }
        bool some = false;
        while (work_item* const item = due.pop_front()) {
            ready.fetch_or(static_cast<timer*>(item)->item, release);
            some = true;
        }
        if (some) lots.wake_one(0);
    }
    void run(unsigned item) {
        if (item == early_item) {
            model::require(early_timer.phase.read() == timer_phase::ended, "early: not ended");
            fired.store(1, release);
            futex_wake_all(fired);
            if (is_later) {
                // Its time comes.
            } else if (late_timer.shard->cancel(late_timer, wheel_user::other)) {
                add(late_item);
            }
        } else if (item == late_item) {
            model::require(late_timer.stopped.read() != is_later, "late: ended in the wrong way");
        } else if (item == busy_item) {
            pass_time(early);
            while (fired.load(acquire) == 0) futex_wait(fired, std::uint32_t{0});
        }
        if (ended.fetch_add(1, acq_rel) + 1 == items) lots.wake_all();
        if (follows) futex_wake_all(ended);
    }
    void worker(std::size_t index) {
        for (;;) {
            while (const unsigned item = take()) run(item);
            parking& lot = lots[0];
            lot.begin_search();
            unsigned found = 0;
            for (;;) {
                serve(index);
                if ((found = take()) != 0) break;
                lot.announce_sleep();
                if (ready.load(relaxed) != 0) {
                    lot.cancel_sleep();
                    continue;
                }
                if (ended.load(relaxed) == items) return;
                const std::uint64_t promised = timers.promise();
                if (promised == pool_timers::never) {
                    lot.sleep();
                } else {
                    lot.sleep_or_wake_at(pool_timers::nanoseconds_of(promised));
                    timers.take_back(promised);
                }
            }
            const bool unwatched = lot.end_search() &&
                                   (ready.load(relaxed) != 0 ||
                                    (timers.are_unwatched() && !planted("pool_timers.left_alone")));
            if (unwatched) lots.wake_one(0);
            run(found);
        }
    }
    void thread(unsigned index) {
        if (index == 0 && follows) {
            arm(early_timer, early, timers[0], wheel_user::other);
            arm(late_timer, late, timers.outside(), wheel_user::other);
            pass_time(early);
            add(plain_item);
            for (std::uint32_t n = 0; (n = ended.load(acquire)) < 2;) futex_wait(ended, n);
            pass_time(late);
        } else if (index == 0) {
            if (!is_later) arm(late_timer, late, timers.outside(), wheel_user::other);
            arm(early_timer, early, timers[0], wheel_user::other);
            if (!is_busy) pass_time(early);
            if (is_later) {
                arm(late_timer, late, timers.outside(), wheel_user::other);
                pass_time(late);
            }
        } else if (index < first_worker) {
            add(busy_item);
        } else {
            worker(index - first_worker);
        }
    }
    void after() { model::require(ended.load(relaxed) == items, "an item was lost"); }
};

// A pool of two workers without sleep, as pool_members.hpp treats its timers. Worker 0 starts a
// timer, thread 2 requests its stop, and the time comes, or the pool is told to end. The receiver
// destroys the operation. If Outside, thread 2 starts the timer, and a worker requests the stop.
enum class finish { by_time, by_end };
template <finish Finish, bool Outside = false>
struct lives : stop_test<lives<Finish, Outside>, 3>, ending {
    struct scheduler {
        using scheduler_concept = ex::scheduler_tag;
        using item_type = work_item;
        using timer_type = pool_timer;
        lives* pool_;
        std::size_t node_ = pool_timer::any_node;
        auto schedule() const noexcept { return ex::internal::scheduled_sender<scheduler>(*this); }
        void enqueue(work_item& item) const noexcept { pool_->enqueue(item); }
        ex::forward_progress_guarantee query(ex::get_forward_progress_guarantee_t) const noexcept {
            return ex::forward_progress_guarantee::parallel;
        }
        template <class Tag>
        scheduler query(ex::get_completion_scheduler_t<Tag>) const noexcept {
            return *this;
        }
        bool operator==(const scheduler&) const noexcept = default;
    };
    using sender = pool_timer_sender<scheduler>;

    gate entry;
    manual_lifetime<pool_timers> timers;
    manual_lifetime<ex::connect_result_t<sender, ending_receiver>> op;
    atomic<work_item*> queue{nullptr};
    atomic<int> completions{0};
    atomic<int> workers_left{2};
    static unsigned& self() {
        return thread_slot<lives, unsigned>();  // 1 + index
    }
    static bool is_current() { return self() < 3; }
    timer_shard& mine() { return timers.get()[self() - 1]; }

    void before() {
        timers.construct(std::size_t{2});
        op.construct_with([this] {
            const auto when = ex::instant(pool_timers::nanoseconds_of(1));
            return ex::connect(sender(scheduler{this}, when), ending_receiver(*this));
        });
    }
    void completed() noexcept override {
        op.destroy();
        completions.fetch_add(1, release);
    }
    void enqueue(work_item& item) noexcept {
        work_item* const before = queue.exchange(&item, release);
        require(before == nullptr, "an item was enqueued twice");
    }
    // What pool_members.hpp does.
    bool begin_timer(pool_timer& timer) noexcept {
        if (is_current()) {
            timer.shard = &mine();
            return true;
        }
        if (entry.enter()) {
            timer.shard = &timers.get().outside();
            return true;
        }
        timer.stopped.write(true);
        timer.run(&timer);
        return false;
    }
    void arm_timer(pool_timer& timer, std::int64_t when, std::int64_t now) noexcept {
        const bool inside = !is_current();
        timer.due = pool_timers::tick_of(when);
        const auto how = timers.get().arm(timer, pool_timers::tick_at(now),
                                          inside ? wheel_user::other : wheel_user::owner);
        if (how == timer_shard::armed::ended) enqueue(timer);
        if (inside) entry.leave();
    }
    void stop_timer(pool_timer& timer) noexcept {
        if (is_current()) {
            const auto user = timer.shard == &mine() ? wheel_user::owner : wheel_user::other;
            if (timer.shard->cancel(timer, user)) enqueue(timer);
            return;
        }
        if (!planted("pool_timers.stop_past_the_gate") && !entry.enter()) return;
        if (timer.shard->cancel(timer, wheel_user::other)) enqueue(timer);
        if (!planted("pool_timers.stop_past_the_gate")) entry.leave();
    }
    // A worker: what is due, or everything at the end; and the items.
    void work() {
        for (;;) {
            item_chain due;
            const bool ends = entry.is_closed();
            for (unsigned i = 0; i != 3; ++i) {
                timer_shard& shard = timers.get()[i];
                const auto user = i + 1 == self() ? wheel_user::owner : wheel_user::other;
                if (shard.next() == pool_timers::never) continue;
                if (ends) {
                    shard.take_all(user, due);
                } else if (Finish == finish::by_time) {
                    shard.take_due(1, user, due);
                }
            }
            while (work_item* const item = due.pop_front()) enqueue(*item);
            if (queue.load(relaxed) != nullptr) {
                if (work_item* const item = queue.exchange(nullptr, acquire)) item->run(item);
            }
            // by_time: the pool is told to end when the timer has completed.
            if (Finish == finish::by_time && completions.load(acquire) != 0) entry.close();
            if (entry.is_quiet() && queue.load(relaxed) == nullptr &&
                mine().next() == pool_timers::never &&
                timers.get().outside().next() == pool_timers::never) {
                break;
            }
            thread_yield();
        }
        if (workers_left.fetch_sub(1, acq_rel) == 1) {
            entry.wait();
            timers.destroy();
        }
    }
    void run(unsigned index) {
        self() = index + 1;
        if (index == 2) {
            if (Outside) {
                ex::start(op.get());
                if (Finish == finish::by_end) entry.close();
            } else {
                source.request_stop();
            }
            return;
        }
        if (index == 0 && !Outside) {
            ex::start(op.get());
            if (Finish == finish::by_end) entry.close();
        }
        if (index == 1 && Outside) source.request_stop();
        work();
    }
    void after() { require(completions.load(relaxed) == 1, "not completed once"); }
};

// A worker runs an item that tells the pool to end, and then makes work that runs until the end
// stops a timer of an hour. Another worker, which may have looked for timers before the end, takes
// it.
struct made_after_end : model::test<made_after_end, 2> {
    gate entry;
    pool_timers timers{2};
    pool_timer timer{nullptr, pool_timer::any_node};
    atomic<int> made{0};
    atomic<std::uint32_t> stopped{0};  // the timer
    atomic<std::uint32_t> ended{0};    // the work

    void before() {
        timer.shard = &timers[0];
        timer.due = late;
        (void)timers.arm(timer, 0, wheel_user::owner);
    }
    void look() {
        if (!timers.are_used() || !entry.is_closed()) return;
        item_chain due;
        timers[0].take_all(wheel_user::other, due);
        if (due.pop_front() == nullptr) return;
        stopped.store(1, release);
        futex_wake_all(stopped);
    }
    void thread(unsigned index) {
        if (index == 0) {
            entry.close();
            made.store(1, release);
            while (ended.load(acquire) == 0) futex_wait(ended, std::uint32_t{0});
            return;
        }
        do {
            look();
        } while (made.exchange(0, acquire) == 0);
        if (!planted("pool_timers.look_only_before")) look();
        while (stopped.load(acquire) == 0) futex_wait(stopped, std::uint32_t{0});
        ended.store(1, release);
        futex_wake_all(ended);
    }
};

using earlier_for_one = watched_timers<1, armed_second::earlier>;
using earlier_for_two = watched_timers<2, armed_second::earlier>;
using later_for_one = watched_timers<1, armed_second::later>;
using later_for_two = watched_timers<2, armed_second::later>;
using one_follows = watched_timers<2, armed_second::follows>;
using one_is_busy = watched_timers<2, armed_second::busy>;
using by_time = lives<finish::by_time>;
using by_end = lives<finish::by_end>;

}  // namespace

int main() {
    model::report report("pool_timers");
    report.holds<earlier_for_one>("an earlier timer wakes the one sleeper", {200'000});
    report.holds<earlier_for_two>("an earlier timer wakes a sleeper", {200'000});
    report.holds<later_for_one>("a timer that follows one that is due is seen", {200'000});
    report.holds<later_for_two>("the same with two workers", {200'000});
    report.holds<one_follows>("a promise is kept though another took the token", {500'000});
    report.holds<one_is_busy>("a worker that promised and is busy is replaced", {300'000});
    report.holds<by_time>("start, expiry, and a stop: completed once", far);
    report.holds<by_end>("start, the end of the pool, and a stop: completed once", far);
    report.holds<lives<finish::by_time, true>>("the first, started outside", far);
    report.holds<lives<finish::by_end, true>>("the second, started outside", far);
    report.holds<made_after_end>("the end stops the timer of work that was made after it", far);
    report.dies_planted<made_after_end>("pool_timers.look_only_before", far);
    report.dies_planted<earlier_for_one>("pool_timers.arm_unseen", {200'000});
    report.dies_planted<one_follows>("parking.cancel_by_token", {2'000'000});
    report.dies_planted<one_is_busy>("pool_timers.left_alone", {300'000});
    report.dies_planted<one_is_busy>("pool_timers.keep_promise", {300'000});
    report.dies_weakened<later_for_one>(timers_file, "pool_timers.watch", {500'000});
    report.dies_weakened<earlier_for_one>(parking_file, "parking.recheck", {300'000});
    report.dies_weakened<by_time>(lock_file, "biased_lock.revoke", far);
    report.dies_weakened<by_time>(lock_file, "biased_lock.inside", far);
    report.dies_weakened<by_end>(gate_file, "gate.left", far);
    report.dies_planted<by_end>("pool_timers.stop_past_the_gate", far);
    return report.finish();
}
