// The model of running contracts: a run is never lost, doubled, or left to two threads.
#include "contract_model.hpp"

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

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

}  // namespace

int main() {
    model::report report("contract");
    report.holds<schedule_and_run>("schedule and run, two threads", {100'000});
    report.holds<reschedule>("a contract reschedules itself, two threads", {100'000});
    report.holds<release_and_run<2>>("schedule, release and run, two threads", {100'000});
    report.holds<release_and_run<3>>("schedule, release and run, three threads", {100'000});
    report.holds<unschedule>("unschedule, release and run, three threads", {100'000});
    report.holds<fused>("finishing and claiming in one exchange, three threads", {100'000});
    report.holds<batch>("several contracts claimed at once", {100'000});
    report.holds<sight>("a scheduled contract is found", {100'000});
    report.dies_weakened<schedule_and_run>(board_header, "contract.run");
    report.dies_weakened<release_and_run<2>>(life_header, "contract.release", {200'000});
    report.dies_weakened<sight>(board_header, "contract.look", {200'000});
    report.dies_planted<unschedule>("contract.take_release", {200'000});
    return report.finish();
}
