// The model of contracts: runs and releases are never lost, doubled, or given to another contract.
#include "model.hpp"

#include <coppice/base/internal/gate.hpp>
#include <coppice/contract/internal/board.hpp>
#include <coppice/contract/internal/group_mode.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* board_header = "include/coppice/contract/internal/board.hpp";
constexpr const char* life_header = "include/coppice/contract/internal/life.hpp";

// How far the thread with the most steps has come. The other threads wait for a stage that the
// checker chooses, at their start and wherever a visit begins or ends; otherwise their few steps
// would always come first. Relaxed, so that nothing depends on its order.
struct stages {
    atomic<unsigned> reached{0};
    unsigned last = 0;  // 0: no thread waits
    void wait() {
        if (last == 0) return;
        const unsigned chosen = rl::rand(last + 1);
        while (reached.load(relaxed) < chosen) spin_hint();
    }
};

class staged_life : public life_word {
public:
    stages* visitors = nullptr;  // those of the second thread
    entered enter(std::uint64_t generation) { return staged(life_word::enter(generation)); }
    entered begin_release(std::uint64_t generation) {
        return staged(life_word::begin_release(generation));
    }
    left leave() { return staged(life_word::leave()); }

private:
    template <class Result>
    Result staged(Result result) {
        if (visitors != nullptr && rl::ctx().threadx_->index_ == 1) visitors->wait();
        return result;
    }
};

// A contract of the model. Its plain fields are data races if two threads run it at once.
struct slot {
    staged_life life;
    plain<int> owner;  // 1 + the generation of the contract in the slot
    plain<int> runs;
};
using board_type = contract_board<slot, 2>;

struct handle {
    std::size_t index = 0;
    std::uint64_t generation = 0;
};

template <class Derived, int Threads>
struct board_test : model::test<Derived, Threads> {
    board_type board{4, nullptr};
    int runs = 0;      // in total
    int releases = 0;  // in total

    handle create() {
        const auto index = board.take_vacant();
        model::require(index.has_value(), "a vacant slot was lost");
        slot& s = board[*index];
        s.runs.write(0);
        const std::uint64_t generation = s.life.open();
        s.owner.write(static_cast<int>(generation) + 1);
        return {*index, generation};
    }
    // Does what a group does with a claimed contract. `release` is what the run asks for.
    void run(std::size_t index, bool again, bool release) {
        slot& s = board[index];
        if (s.life.is_released()) {
            retire(index);
            return;
        }
        model::require(s.owner.read() != 0, "ran after its release");
        s.runs.write(s.runs.read() + 1);
        ++runs;
        if (release) s.life.release_running();
        board.finish(index, again || release);
    }
    void retire(std::size_t index) {
        slot& s = board[index];
        model::require(s.owner.read() != 0, "a contract was released twice");
        s.owner.write(0);
        ++releases;
        if (planted("contract.bury_early")) board.leave(index);
        (void)s.life.bury();
        if (!planted("contract.bury_early")) board.leave(index);
    }
    bool execute(signal_round& round) {
        const std::size_t index = board.claim(round);
        if (index == no_signal) return false;
        run(index, false, false);
        return true;
    }
    void execute_rest() {
        signal_round round;
        while (execute(round)) {
        }
    }
    // Requires that all slots are vacant again and that each can be taken once.
    void require_whole() {
        for (int i = 0; i != 4; ++i)
            model::require(board.take_vacant().has_value(), "a slot was lost");
        model::require(!board.take_vacant().has_value(), "a slot was vacant twice");
        model::require(board.idle(), "idle() is false for an idle board");
    }
};

// Two threads schedule one contract and both execute. It runs once or twice, on one thread at a
// time, and a run after a schedule sees what came before the schedule.
struct schedule_and_run : board_test<schedule_and_run, 2> {
    handle contract;
    plain<int> posted[2];
    void before() {
        board.grow(4);
        contract = create();
        posted[0].write(0);
        posted[1].write(0);
    }
    void thread(unsigned index) {
        posted[index].write(1);
        board.schedule(contract.index, contract.generation);
        signal_round round;
        execute(round);
    }
    void after() {
        execute_rest();
        model::require(runs >= 1 && runs <= 2, "a run was lost or doubled");
        model::require(board[contract.index].runs.read() == runs,
                       "two threads ran a contract at once");
    }
};

// One thread runs a contract that reschedules itself once; another schedules and executes.
struct reschedule : board_test<reschedule, 2> {
    handle contract;
    bool missed = false;
    void before() {
        board.grow(4);
        contract = create();
        board.set_ready(contract.index);
    }
    void thread(unsigned index) {
        signal_round round;
        if (index == 0) {
            const std::size_t claimed = board.claim(round);
            if (claimed != no_signal) run(claimed, true, false);
            // It is available now, unless the other thread took it.
            missed = !execute(round);
        } else {
            if (board.claim(round) == contract.index) run(contract.index, true, false);
            execute(round);
        }
    }
    void after() {
        const int before_rest = runs;
        execute_rest();
        model::require(!missed || before_rest == runs, "an available contract was not found");
        model::require(runs >= 2, "a run was lost");
        model::require(board[contract.index].runs.read() == runs,
                       "two threads ran a contract at once");
    }
};

// One thread releases a handle while another schedules it and a third executes. The release runs
// once, no run comes after it, and the slot is vacant at the end.
template <int Threads>
struct release_and_run : board_test<release_and_run<Threads>, Threads> {
    using base = board_test<release_and_run<Threads>, Threads>;
    using base::board;
    handle contract;
    plain<int> told;
    void before() {
        board.grow(4);
        contract = this->create();
        told.write(0);
        board.set_ready(contract.index);
    }
    void thread(unsigned index) {
        signal_round round;
        if (index == 0) {
            told.write(1);
            board.begin_release(contract.index, contract.generation);
            if (Threads == 2) this->execute(round);
        } else if (index == 1) {
            if (Threads == 2) {
                const std::size_t claimed = board.claim(round);
                if (claimed != no_signal) {
                    if (board[claimed].life.is_released()) told.read();
                    this->run(claimed, false, false);
                }
            }
            board.schedule(contract.index, contract.generation);
        } else {
            this->execute(round);
            this->execute(round);
        }
    }
    void after() {
        this->execute_rest();
        model::require(this->releases == 1, "a release was lost or doubled");
        model::require(this->runs <= 2, "a run was doubled");
        model::require(!board[contract.index].life.valid(contract.generation),
                       "a handle was valid after its contract was gone");
        this->require_whole();
    }
};

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

// unschedule() withdraws a run, but never the release.
struct unschedule : board_test<unschedule, 3> {
    handle contract;
    bool withdrawn = false;
    void before() {
        board.grow(4);
        contract = create();
        board.set_ready(contract.index);
    }
    void thread(unsigned index) {
        signal_round round;
        if (index == 0) withdrawn = board.unschedule(contract.index, contract.generation);
        if (index == 1) board.begin_release(contract.index, contract.generation);
        if (index == 2) execute(round);
    }
    void after() {
        execute_rest();
        model::require(releases == 1, "a release was lost or doubled");
        model::require(!withdrawn || runs == 0, "a withdrawn run happened");
        require_whole();
    }
};

// Two busy threads go through a leaf with finish_and_claim while a third schedules. Every schedule
// is followed by a run.
struct fused : board_test<fused, 3> {
    handle contracts[2];
    plain<int> posted;
    void before() {
        board.grow(4);
        for (handle& c : contracts) c = create();
        posted.write(0);
        board.set_ready(contracts[0].index);
        board.set_ready(contracts[1].index);
    }
    void thread(unsigned index) {
        if (index == 0) {
            posted.write(1);
            board.schedule(contracts[1].index, contracts[1].generation);
            return;
        }
        signal_round round;
        std::size_t claimed = board.claim(round);
        std::uint64_t seen = claimed == no_signal ? 0 : board.look(claimed);
        for (int i = 0; i != 2 && claimed != no_signal; ++i) {
            slot& s = board[claimed];
            s.runs.write(s.runs.read() + 1);
            ++runs;
            const bool again = index == 1 && i == 0;
            if (i == 1) {
                board.finish(claimed, again);
                claimed = no_signal;
            } else {
                claimed = board.finish_and_claim(claimed, again, seen, round);
            }
        }
        if (claimed != no_signal) board.finish(claimed, false);
    }
    void after() {
        execute_rest();
        model::require(runs >= 2 && runs <= 4, "a run was lost or doubled");
        const int each =
            board[contracts[0].index].runs.read() + board[contracts[1].index].runs.read();
        model::require(each == runs, "two threads ran a contract at once");
        model::require(board.idle(), "idle() is false for an idle board");
    }
};

// Several contracts are claimed at once and finished at once while they are scheduled.
struct batch : board_test<batch, 2> {
    handle contracts[2];
    void before() {
        board.grow(4);
        for (handle& c : contracts) {
            c = create();
            board.set_ready(c.index);
        }
    }
    void thread(unsigned index) {
        if (index == 0) {
            board.schedule(contracts[0].index, contracts[0].generation);
            board.schedule(contracts[1].index, contracts[1].generation);
            signal_round round;
            execute(round);
            return;
        }
        signal_round round;
        const std::size_t claimed = board.claim(round);
        if (claimed == no_signal) return;
        std::uint64_t bits = board_type::ready(claimed) | board.claim_behind(claimed, 8);
        for (const handle& c : contracts) {
            if ((bits & board_type::ready(c.index)) == 0) continue;
            slot& s = board[c.index];
            s.runs.write(s.runs.read() + 1);
            ++runs;
        }
        board.finish_all(claimed, bits, bits & 1);
    }
    void after() {
        execute_rest();
        const int each =
            board[contracts[0].index].runs.read() + board[contracts[1].index].runs.read();
        model::require(each == runs, "two threads ran a contract at once");
        model::require(runs >= 2 && runs <= 5, "a run was lost or doubled");
        model::require(board.idle(), "idle() is false for an idle board");
    }
};

// One thread schedules a contract twice and executes; another only executes. Both end with a search
// that finds nothing. Then nothing may be left: the thread that made the contract available last
// searched after that, and the contract stayed available during its search.
struct sight : board_test<sight, 2> {
    handle contract;
    void before() {
        board.grow(4);
        for (int i = 0; i != 4; ++i) contract = create();  // the last one is not in the first leaf
    }
    void thread(unsigned index) {
        signal_round round;
        for (int i = 0; i != 2 && index == 0; ++i) {
            board.schedule(contract.index, contract.generation);
            execute(round);
        }
        for (int none = 0; none != 2;) none = execute(round) ? 0 : none + 1;
    }
    void after() {
        model::require(board.available(contract.index / 2) == 0, "a ready contract was not found");
        model::require(runs >= 1 && runs <= 2, "a run was lost or doubled");
        model::require(board.idle(), "idle() is false for an idle board");
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
    model::report report("contract");
    report.holds<schedule_and_run>("schedule and run, two threads", {100'000});
    report.holds<reschedule>("a contract reschedules itself, two threads", {100'000});
    report.holds<release_and_run<2>>("schedule, release and run, two threads", {100'000});
    report.holds<release_and_run<3>>("schedule, release and run, three threads", {100'000});
    report.holds<stranger>("a stale handle and the slot's next contract", {200'000});
    report.holds<unschedule>("unschedule, release and run, three threads", {100'000});
    report.holds<fused>("finishing and claiming in one exchange, three threads", {100'000});
    report.holds<batch>("several contracts claimed at once", {100'000});
    report.holds<sight>("a scheduled contract is found", {100'000});
    report.holds<gone<false>>("a contract that is gone has run its release", {50'000});
    report.holds<gone<true>>("a late watcher sees what the release did", {100'000});
    report.holds<slots_change_hands>("slots pass from thread to thread", {50'000});
    report.holds<extras>("items wait for slots", {100'000});
    report.holds<stop_and_drain<1>>("a drain does not undo a stop", {100'000});
    report.holds<stop_and_drain<2>>("two drains do not undo a stop", {100'000});
    report.dies_weakened<schedule_and_run>(board_header, "contract.run");
    report.dies_weakened<slots_change_hands>(board_header, "contract.extra");
    report.dies_weakened<release_and_run<2>>(life_header, "contract.release", {200'000});
    report.dies_weakened<stranger>(life_header, "contract.leave", {200'000});
    report.dies_weakened<sight>(board_header, "contract.look", {200'000});
    report.dies_weakened<gone<false>>(life_header, "contract.gone");
    report.dies_weakened<gone<true>>(life_header, "contract.gone");
    report.dies_planted<gone<true>>("contract.watch_relaxed", {100'000});
    report.dies_planted<gone<true>>("contract.open_relaxed", {100'000});
    report.dies_planted<gone<false>>("contract.open_relaxed", {100'000});
    report.dies_planted<stranger>("contract.ignore_generation", {200'000});
    report.dies_planted<stranger>("contract.schedule_outside", {400'000});
    report.dies_planted<extras>("contract.forget_waiting", {100'000});
    report.dies_planted<unschedule>("contract.take_release", {200'000});
    report.dies_planted<stop_and_drain<1>>("contract.check_then_drain", {100'000});
    report.dies_planted<stop_and_drain<2>>("contract.check_then_drain", {100'000});
    return report.finish();
}
