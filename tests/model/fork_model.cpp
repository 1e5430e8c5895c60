// The model of fork_deque: each forked call runs once, and no worker sleeps while a call waits.
#include "model.hpp"

#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/pool/internal/parking.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* header = "include/coppice/base/internal/fork_deque.hpp";
constexpr const char* slot = "include/coppice/base/internal/fork_slot.hpp";

// One forked call. What it reads was written before the push; what it writes is read after the
// join.
struct call {
    plain<int> argument;
    plain<int> result;
    atomic<int> runs{0};
    void work() {
        model::require(argument.read() == 1, "a call ran before it was written");
        model::require(runs.fetch_add(1, relaxed) == 0, "a call ran twice");
        result.write(2);
    }
    static void joined(void* frame, fork_slot& slot) noexcept {
        static_cast<call*>(frame)->work();
        slot.finish();
    }
    static void detached(void* frame, fork_slot&) noexcept { static_cast<call*>(frame)->work(); }
};

struct quiet_team : fork_team {
    void published() noexcept override {}
    bool help(fork_deque&, const fork_slot&, std::uint32_t, bool) noexcept override {
        return false;
    }
};

void steal_some(fork_deque& deque, unsigned thief, int tries) {
    taken_call taken;
    for (unsigned i = 0; i != static_cast<unsigned>(tries); ++i) {
        if (deque.steal(taken, thief) == fork_steal::taken) {
            taken.run();
        } else if ((thief + i) % 2 == 0) {
            deque.ask();
        } else {
            deque.grab();
        }
    }
}

// The owner forks `Depth` calls deep, twice, while thieves ask and steal.
template <int Thieves, int Depth, bool FreeFences = true>
struct forks_and_joins : model::test<forks_and_joins<Thieves, Depth, FreeFences>, 1 + Thieves> {
    const bool free = this->fences.light_is_free = FreeFences;
    quiet_team team;
    fork_deque deque{team, 0};
    call calls[2 * Depth];

    void fork(call* each, int depth) {
        if (depth == 0) return;
        each->argument.write(1);
        fork_slot* const slot = deque.push(&call::joined, each);
        if (slot == nullptr) {
            each->work();
            fork(each + 1, depth - 1);
            return;
        }
        fork(each + 1, depth - 1);
        if (deque.pop(slot)) {
            each->work();
        } else {
            deque.join(slot);
        }
        model::require(each->result.read() == 2, "a joined call has not ended");
    }
    void thread(unsigned index) {
        if (index == 0) {
            fork(calls, Depth);
            fork(calls + Depth, Depth);
        } else {
            steal_some(deque, index, 4);
        }
    }
    void after() {
        for (call& each : calls) {
            model::require(each.runs.load(relaxed) == 1, "a call was lost");
        }
        model::require(deque.looks_empty(), "the deque was not empty at the end");
    }
};

// The owner does not wait for stolen calls: it reuses the slot of a call for another one.
template <int Thieves, bool FreeFences = true>
struct let_go : model::test<let_go<Thieves, FreeFences>, 1 + Thieves> {
    const bool free = this->fences.light_is_free = FreeFences;
    quiet_team team;
    fork_deque deque{team, 0};
    call calls[6];

    void fork(call* each, int depth) {
        if (depth == 0) return;
        each->argument.write(1);
        fork_slot* const slot = deque.push(&call::detached, each);
        fork(each + 1, depth - 1);
        if (slot == nullptr || deque.pop(slot)) {
            each->work();
        } else {
            deque.let_go(slot);
        }
    }
    void thread(unsigned index) {
        if (index != 0) return steal_some(deque, index, 3);
        fork(calls, 2);
        fork(calls + 2, 1);
        fork(calls + 3, 3);
    }
    void after() {
        for (call& each : calls) {
            model::require(each.runs.load(relaxed) == 1, "a call was lost");
        }
        model::require(deque.looks_empty(), "the deque was not empty at the end");
    }
};

// A worker waits for a call that a thief runs, and helps the thief. The thief forks below that
// call, and again afterwards for itself. The waiting worker must not take what the thief forks
// afterwards.
template <bool FreeFences>
struct leapfrog : model::test<leapfrog<FreeFences>, 2> {
    const bool free = this->fences.light_is_free = FreeFences;
    struct helping_team : quiet_team {
        leapfrog* model;
        bool help(fork_deque& helper, const fork_slot& awaited, std::uint32_t,
                  bool urgent) noexcept override {
            return &helper == &model->waiting && model->help(awaited, urgent);
        }
    };
    struct big_call : call {
        leapfrog* model;
        static void run(void* frame, fork_slot& slot) noexcept {
            big_call& self = *static_cast<big_call*>(frame);
            self.model->fork(self.model->below);
            self.work();
            slot.finish();
        }
    };
    helping_team team;
    fork_deque waiting{team, 0};
    fork_deque busy{team, 1};
    big_call awaited;
    call below, after_it;
    atomic<int> stolen{0};

    void before() { team.model = awaited.model = this; }
    bool help(const fork_slot& slot, bool urgent) {
        taken_call taken;
        if (busy.steal_below(slot, taken, 0) == fork_steal::taken) {
            model::require(taken.frame == &below, "a join ran an unrelated call");
            waiting.run(taken);
            return true;
        }
        if (urgent) {
            busy.grab();
        } else {
            busy.ask();
        }
        return false;
    }
    void fork(call& each) {
        each.argument.write(1);
        fork_slot* const slot = busy.push(&call::joined, &each);
        for (int i = 0; i != 12; ++i) spin_hint();
        if (busy.pop(slot)) {
            each.work();
        } else {
            busy.join(slot);
        }
    }
    void thread(unsigned index) {
        if (index == 0) {
            awaited.argument.write(1);
            fork_slot* const slot = waiting.push(&big_call::run, &awaited);
            while (stolen.load(relaxed) == 0) spin_hint();
            model::require(!waiting.pop(slot), "a call that a thief has was popped");
            waiting.join(slot);
            model::require(awaited.result.read() == 2, "a joined call has not ended");
        } else {
            taken_call taken;
            while (waiting.steal(taken, 1) != fork_steal::taken) waiting.grab();
            stolen.store(1, relaxed);
            busy.run(taken);
            fork(after_it);
        }
    }
    void after() { model::require(after_it.runs.load(relaxed) == 1, "a call was lost"); }
};

// Workers search, ask, and sleep as those of a pool do (pool/internal/worker_search.hpp). The first
// functions of a forker wait until the forked ones have run, so it returns to its deque only if a
// worker came.
template <int Workers, int Forks, bool FreeFences = true>
struct sleepers : model::test<sleepers<Workers, Forks, FreeFences>, 1 + Workers> {
    const bool free = this->fences.light_is_free = FreeFences;
    struct waking_team : quiet_team {
        parking* lot;
        void published() noexcept override {
            if (!planted("fork.publish_in_silence")) lot->wake_one();
        }
    };
    parking lot;
    waking_team team;
    fork_deque deque{team, 0};
    call calls[Forks];
    atomic<int> over{0};

    void before() { team.lot = &lot; }
    bool looks_idle() const { return deque.looks_empty() && deque.looks_done(); }
    void ask() {
        if (!planted("fork.sleep_without_asking")) deque.ask();
        heavy_fence();
    }
    void forker() {
        for (int round = 0; round != Forks; round += Workers) {
            fork_slot* slots[Workers];
            for (int i = 0; i != Workers; ++i) {
                calls[round + i].argument.write(1);
                slots[i] = deque.push(&call::joined, &calls[round + i]);
                model::require(slots[i] != nullptr, "the deque was full");
            }
            for (int i = 0; i != Workers; ++i) {
                while (calls[round + i].runs.load(relaxed) == 0) spin_hint();
            }
            for (int i = Workers; i-- != 0;) {
                model::require(!deque.pop(slots[i]), "a call that a thief ran was popped");
                deque.join(slots[i]);
            }
        }
        over.store(1, relaxed);
        lot.wake_all();
    }
    // Each call keeps its worker until all calls of the round run.
    void run(const taken_call& taken) {
        taken.run();
        const int which = static_cast<int>(static_cast<call*>(taken.frame) - calls);
        const int round = which / Workers * Workers;
        for (int i = 0; i != Workers; ++i) {
            while (calls[round + i].runs.load(relaxed) == 0) spin_hint();
        }
    }
    bool search(taken_call& taken, unsigned index) {
        for (int round = 0; round != 2; ++round) {
            if (deque.steal(taken, index) == fork_steal::taken) return true;
            if (round == 0) deque.grab();
        }
        return false;
    }
    void worker(unsigned index) {
        lot.begin_search();
        for (;;) {
            taken_call taken;
            if (search(taken, index)) {
                if (lot.end_search() && !looks_idle()) lot.wake_one();
                if (lot.has_sleepers() && !planted("fork.do_not_rouse")) {
                    ask();
                    if (!looks_idle()) lot.wake_one();
                }
                run(taken);
                lot.begin_search();
                continue;
            }
            lot.announce_sleep();
            ask();
            if (!looks_idle()) {
                lot.cancel_sleep();
                continue;
            }
            if (over.load(relaxed) != 0) return;
            lot.sleep();
        }
    }
    void thread(unsigned index) {
        if (index == 0) {
            forker();
        } else {
            worker(index);
        }
    }
    void after() {
        for (call& each : calls) {
            model::require(each.runs.load(relaxed) == 1, "a call was lost");
        }
    }
};

}  // namespace

int main() {
    model::report report("fork");
    report.holds<forks_and_joins<1, 2>>("an owner and a thief run each call once", {200'000});
    report.holds<forks_and_joins<1, 3>>("the same three deep", {200'000});
    report.holds<forks_and_joins<2, 2>>("an owner and two thieves", {200'000});
    report.holds<forks_and_joins<2, 3>>("the same three deep", {200'000});
    report.holds<let_go<1>>("stolen calls without a waiter, one thief", {100'000});
    report.holds<let_go<2>>("stolen calls without a waiter, two thieves", {200'000});
    report.holds<sleepers<1, 2>>("no forked call waits while the worker sleeps", {100'000});
    report.holds<sleepers<2, 2>>("no forked call waits while a worker sleeps", {200'000});
    report.holds<leapfrog<true>>("a join runs only what the awaited call has forked", {200'000});
    report.holds<leapfrog<false>>("the same without membarrier", {200'000});
    report.holds<forks_and_joins<2, 2, false>>("joins without membarrier", {100'000});
    report.holds<let_go<2, false>>("calls without a waiter, without membarrier", {100'000});
    report.holds<sleepers<1, 2, false>>("sleep without membarrier", {100'000});
    report.holds<sleepers<2, 2, false>>("sleep of two without membarrier", {100'000});
    report.dies_weakened<forks_and_joins<1, 2, false>>(header, "fork.lock", {200'000});
    report.dies_planted<forks_and_joins<2, 2, false>>("fork.ignore_theft", {200'000});
    report.dies_weakened<forks_and_joins<1, 2>>(header, "fork.publish", {200'000});
    report.dies_weakened<forks_and_joins<1, 2>>(header, "fork.grabbed", {200'000});
    report.dies_weakened<forks_and_joins<1, 2>>(header, "fork.grab", {200'000});
    report.dies_weakened<forks_and_joins<1, 2>>(header, "fork.lock", {200'000});
    report.dies_weakened<forks_and_joins<1, 2>>(header, "fork.done", {200'000});
    report.dies_weakened<forks_and_joins<1, 2>>(slot, "fork.done", {200'000});
    report.dies_weakened<let_go<2>>(header, "fork.read", {200'000});
    report.dies_weakened<sleepers<1, 2>>(header, "fork.request", {200'000});
    report.dies_planted<forks_and_joins<2, 3>>("fork.ignore_theft", {200'000});
    report.dies_planted<let_go<2>>("fork.skip_reader", {200'000});
    report.dies_planted<leapfrog<false>>("fork.help_late", {300'000});
    report.dies_planted<leapfrog<false>>("fork.run_uncounted", {300'000});
    report.dies_planted<sleepers<1, 2>>("fork.publish_in_silence", {100'000});
    report.dies_planted<sleepers<1, 2>>("fork.sleep_without_asking", {100'000});
    report.dies_planted<sleepers<2, 2>>("fork.do_not_rouse", {200'000});
    return report.finish();
}
