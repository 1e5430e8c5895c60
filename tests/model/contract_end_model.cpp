// The model of how contracts end: a slot never serves a handle of its former contract, what a
// release did is visible, and no run begins after a stop.
#include "contract_model.hpp"

#include <coppice/base/internal/gate.hpp>
#include <coppice/contract/internal/group_mode.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

// A contract releases itself, and its slot goes to another contract, which is never scheduled.
// Meanwhile a stale handle of the first one is scheduled, unscheduled, and released. The second
// contract never runs.
struct stranger : board_test<stranger, 2> {
    static constexpr unsigned last_stage = 4;
    handle first;
    stages stage;
    void reached(unsigned s) { stage.reached.store(s, relaxed); }
    void before() {
        board.grow(1);  // one slot, so that it is used again
        first = create();
        board.set_ready(first.index);
        board[0].life.visitors = &stage;
        stage.last = last_stage;
    }
    void thread(unsigned index) {
        if (index == 0) {
            signal_round round;
            const std::size_t claimed = board.claim(round);
            if (claimed != no_signal) run(claimed, false, true);
            reached(1);
            execute(round);  // runs the release
            reached(2);
            const auto slot_index = board.take_vacant();
            if (!slot_index) {  // a visitor is still inside, and frees the slot
                reached(last_stage);
                return;
            }
            slot& s = board[*slot_index];
            model::require(s.owner.read() == 0, "a slot with a contract was vacant");
            s.owner.write(static_cast<int>(s.life.open()) + 1);
            s.runs.write(100);
            reached(3);
            execute(round);
            reached(last_stage);
            execute(round);
            model::require(s.runs.read() == 100, "a stale handle ran another contract");
        } else {
            stage.wait();
            board.schedule(first.index, first.generation);
            board.begin_release(first.index, first.generation);
            board.unschedule(first.index, first.generation);
            // The slot may have been freed here; it is then used again here.
            if (const auto slot_index = board.take_vacant()) {
                plain<int>& owner = board[*slot_index].owner;
                model::require(owner.read() == 0, "a slot with a contract was vacant");
                owner.write(0);
                board.give_back(*slot_index);
            }
        }
    }
    void after() {
        stage.last = 0;
        execute_rest();
        model::require(releases == 1, "a stale handle released another contract");
        model::require(runs <= 1, "a stale handle ran another contract");
        model::require(!board[first.index].life.valid(first.generation),
                       "a handle was valid after its contract was gone");
    }
};

// A thread that learns that a contract is gone sees what its release did, and may destroy that. It
// learns so from its handle, from being told, or as a watcher that comes too late. A third thread
// may have put the next contract into the slot by then.
template <bool Watches>
struct gone : board_test<gone<Watches>, 3> {
    using base = board_test<gone<Watches>, 3>;
    using base::board;
    handle contract;
    plain<int> effect;
    void before() {
        board.grow(1);
        contract = this->create();
        effect.write(0);
        board.begin_release(contract.index, contract.generation);
    }
    bool is_gone() {
        life_word& life = board[contract.index].life;
        if (!Watches) return !life.valid(contract.generation);
        if (life.enter_watching(contract.generation) != life_word::entered::yes) return true;
        const bool alive = life.announce_watcher();
        board.leave(contract.index);
        return !alive;
    }
    void thread(unsigned index) {
        if (index == 0) {
            signal_round round;
            const std::size_t claimed = board.claim(round);
            effect.write(1);
            this->retire(claimed);
        } else if (index == 1) {
            for (int i = 0; i != 8; ++i) {
                spin_hint();
                if (const auto again = board.take_vacant()) {
                    board[*again].life.open();
                    break;
                }
            }
        } else {
            while (!is_gone()) spin_hint();
            model::require(effect.read() == 1, "a contract was gone before its release had run");
            effect.write(2);  // ends the lifetime of what the release wrote
        }
    }
};

// Slots pass from thread to thread.
struct slots_change_hands : board_test<slots_change_hands, 2> {
    void before() {
        board.grow(1);
        board[0].owner.write(0);
        for (std::size_t i = 0; i != board_type::extra; ++i)
            board[board.first_extra() + i].owner.write(0);
    }
    void thread(unsigned) {
        for (int round = 0; round != 2; ++round) {
            for (const bool is_extra : {false, true}) {
                const auto index = is_extra ? board.take_vacant_extra() : board.take_vacant();
                if (!index) continue;
                slot& s = board[*index];
                s.owner.write(s.owner.read() + 1);
                board.give_back(*index);
            }
        }
    }
};

// Three items for two extra slots. An item that finds none waits, and the thread that frees one
// places it.
struct extras : board_test<extras, 3> {
    rl::mutex mutex;
    int waiting = 0;  // guarded by the mutex
    int placed = 0;
    atomic<int> done{0};

    void use(std::size_t index) {
        done.fetch_add(1, relaxed);
        board.give_back(index);
        if (board.extra_is_awaited(index) && !planted("contract.forget_waiting")) place_waiting();
    }
    void place_waiting() {
        std::size_t taken[2];
        int count = 0;
        mutex.lock(source_point().info);
        while (waiting != 0) {
            const auto index = board.take_vacant_extra();
            if (!index) break;
            --waiting;
            taken[count++] = *index;
        }
        if (waiting == 0) board.nobody_waits_for_extra();
        mutex.unlock(source_point().info);
        for (int i = 0; i != count; ++i) use(taken[i]);
    }
    void thread(unsigned) {
        if (const auto index = board.take_vacant_extra()) return use(*index);
        mutex.lock(source_point().info);
        ++waiting;
        const bool vacancy = board.wait_for_extra();
        mutex.unlock(source_point().info);
        if (vacancy) place_waiting();
    }
    void after() { model::require(done.load(relaxed) == 3, "an item waits forever"); }
};

// One thread stops a group that is being executed while others begin to drain it. No run begins
// after a call to stop() has returned, and each call that has returned has closed the gate.
template <int Drains>
struct stop_and_drain : board_test<stop_and_drain<Drains>, 2 + Drains> {
    using base = board_test<stop_and_drain<Drains>, 2 + Drains>;
    using base::board;
    group_mode mode;
    gate entry;
    handle contract;
    atomic<int> stopped{0};

    void before() {
        board.grow(4);
        contract = this->create();
        board.set_ready(contract.index);
    }
    void execute(signal_round& round) {
        const bool late = stopped.load(acquire) != 0;  // what a test's barrier would show
        const std::size_t index = board.claim(round);
        if (index == no_signal) return;
        if (mode.is_stopped()) {
            board.finish(index, false);
            return;
        }
        model::require(!late, "a run began after stop() had returned");
        this->run(index, !late && mode.is_open(), false);
    }
    void thread(unsigned index) {
        signal_round round;
        if (index == 0) {
            mode.stop();
            entry.close();
            model::require(mode.is_stopped(), "a stop was undone");
            stopped.store(1, release);
            execute(round);
        } else if (index <= Drains) {
            mode.begin_drain();
            entry.close();
            model::require(!mode.is_open() && !entry.enter(), "a call left the group open");
        } else {
            execute(round);
            const bool ended = !mode.is_open();
            const bool stands = mode.is_stopped();
            execute(round);
            model::require(!ended || !mode.is_open(), "a group was opened again");
            model::require(!stands || mode.is_stopped(), "a stop was undone");
        }
    }
    void after() {
        signal_round round;
        for (int i = 0; i != 3; ++i) execute(round);
        model::require(mode.is_stopped(), "a stop was undone");
        model::require(board.idle(), "a run is still pending");
    }
};

}  // namespace

int main() {
    model::report report("contract_end");
    report.holds<stranger>("a stale handle and the slot's next contract", {200'000});
    report.holds<gone<false>>("a contract that is gone has run its release", {50'000});
    report.holds<gone<true>>("a late watcher sees what the release did", {100'000});
    report.holds<slots_change_hands>("slots pass from thread to thread", {50'000});
    report.holds<extras>("items wait for slots", {100'000});
    report.holds<stop_and_drain<1>>("a drain does not undo a stop", {100'000});
    report.holds<stop_and_drain<2>>("two drains do not undo a stop", {100'000});
    report.dies_weakened<slots_change_hands>(board_header, "contract.extra");
    report.dies_weakened<stranger>(life_header, "contract.leave", {200'000});
    report.dies_weakened<gone<false>>(life_header, "contract.gone");
    report.dies_weakened<gone<true>>(life_header, "contract.gone");
    report.dies_planted<gone<true>>("contract.watch_relaxed", {100'000});
    report.dies_planted<gone<true>>("contract.open_relaxed", {100'000});
    report.dies_planted<gone<false>>("contract.open_relaxed", {100'000});
    report.dies_planted<stranger>("contract.ignore_generation", {200'000});
    report.dies_planted<stranger>("contract.schedule_outside", {400'000});
    report.dies_planted<extras>("contract.forget_waiting", {100'000});
    report.dies_planted<stop_and_drain<1>>("contract.check_then_drain", {100'000});
    report.dies_planted<stop_and_drain<2>>("contract.check_then_drain", {100'000});
    return report.finish();
}
