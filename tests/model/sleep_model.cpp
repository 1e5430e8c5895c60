// The model of sleeping workers: every schedule is followed by a run, even if all workers slept.
#include "model.hpp"

#include <coppice/contract/internal/board.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* header = "include/coppice/contract/internal/sleeping_workers.hpp";

struct slot {
    life_word life;
    plain<int> runs;
};

// Each scheduler schedules one contract, and each worker waits for one run. If nothing is lost, all
// threads end and nothing is left to run. A lost wake-up is a deadlock.
template <int Schedulers, int Workers>
struct schedule_and_sleep
    : model::test<schedule_and_sleep<Schedulers, Workers>, Schedulers + Workers> {
    sleeping_workers sleepers{Workers};
    contract_board<slot, 2> board{4, &sleepers};
    std::size_t contracts[4];
    std::uint64_t generations[4];
    int runs = 0;
    // `pauses` counts how often a worker was about to sleep or had found something; `done` counts
    // the schedulers that are done. Schedulers wait for a number of pauses that the checker
    // chooses, and workers that have found something may wait for the schedulers; otherwise their
    // few steps would always come first. Relaxed, so that nothing depends on their order.
    atomic<unsigned> pauses{0};
    atomic<unsigned> done{0};

    void before() {
        board.grow(4);
        for (int i = 0; i != 4; ++i) {
            contracts[i] = board.take_vacant().value();
            board[contracts[i]].runs.write(0);
            generations[i] = board[contracts[i]].life.open();
        }
    }
    void run(std::size_t index) {
        board[index].runs.write(board[index].runs.read() + 1);
        ++runs;
        board.finish(index, false);
    }
    std::size_t wait() {
        signal_round round;
        const std::size_t seat = sleepers.take_seat();
        model::require(seat != no_signal, "a seat was lost");
        const std::size_t claimed = sleepers.wait(
            seat,
            [&] {
                const std::size_t found = board.claim(round);
                if (found != no_signal) {
                    pauses.fetch_add(1, relaxed);
                    const bool lingers = rl::rand(2) != 0;
                    while (lingers && done.load(relaxed) != Schedulers) spin_hint();
                }
                return found;
            },
            [] { return false; },
            [&] {
                pauses.fetch_add(1, relaxed);
                sleepers.sleep(seat);
            });
        sleepers.give_seat_back(seat);
        return claimed;
    }
    void thread(unsigned index) {
        if (index < Schedulers) {
            const unsigned chosen = rl::rand(Workers + 1);
            while (pauses.load(relaxed) < chosen) spin_hint();
            board.schedule(contracts[3 * index], generations[3 * index]);
            done.fetch_add(1, relaxed);
        } else {
            const std::size_t claimed = wait();
            model::require(claimed != no_signal, "a wait ended without work");
            run(claimed);
        }
    }
    void after() { model::require(runs == Workers, "the runs were counted wrongly"); }
};

// A contract is scheduled while, or after, one worker runs it that never comes back. Another
// worker, which may be asleep by then, gets the second run.
struct once_more : model::test<once_more, 3> {
    sleeping_workers sleepers{1};
    contract_board<slot, 2> board{2, &sleepers};
    std::size_t contract;
    std::uint64_t generation;
    void before() {
        board.grow(1);
        contract = board.take_vacant().value();
        board[contract].runs.write(0);
        generation = board[contract].life.open();
        board.set_ready(contract);
        signal_round round;
        model::require(board.claim(round) == contract, "a ready contract was not found");
    }
    void run(bool again) {
        board[contract].runs.write(board[contract].runs.read() + 1);
        board.finish(contract, again);
    }
    void thread(unsigned index) {
        if (index == 0) board.schedule(contract, generation);
        if (index == 1) run(false);
        if (index != 2) return;
        const std::size_t seat = sleepers.take_seat();
        signal_round round;
        const std::size_t claimed = sleepers.wait(
            seat, [&] { return board.claim(round); }, [] { return false; },
            [&] { sleepers.sleep(seat); });
        sleepers.give_seat_back(seat);
        model::require(claimed == contract, "a wait ended without work");
        run(false);
    }
    void after() {
        model::require(board[contract].runs.read() == 2, "two threads ran a contract at once");
    }
};

// A worker finds work as it sits down and absorbs the wake-up for another contract. It passes the
// wake-up on, so the other worker wakes even though the first one does not come back.
struct passed_on : model::test<passed_on, 4> {
    sleeping_workers sleepers{2};
    contract_board<slot, 2> board{4, &sleepers};
    std::size_t contracts[2];
    std::uint64_t generations[2];
    atomic<int> runs{0};
    void before() {
        board.grow(2);
        for (int i = 0; i != 2; ++i) {
            contracts[i] = board.take_vacant().value();
            generations[i] = board[contracts[i]].life.open();
        }
    }
    void thread(unsigned index) {
        if (index < 2) {
            board.schedule(contracts[index], generations[index]);
            return;
        }
        signal_round round;
        const std::size_t seat = sleepers.take_seat();
        const std::size_t claimed = sleepers.wait(
            seat, [&] { return board.claim(round); }, [] { return false; },
            [&] { sleepers.sleep(seat); });
        model::require(claimed != no_signal, "a wait ended without work");
        board.finish(claimed, false);
        runs.fetch_add(1, relaxed);
    }
    void after() { model::require(runs.load(relaxed) == 2, "a run was lost"); }
};

// A stop request ends the wait of its worker, and the end of the group ends every wait. The worker
// that leaves sees what was done before.
template <bool OfAll>
struct ended : model::test<ended<OfAll>, 3> {
    sleeping_workers sleepers{2};
    atomic<bool> stop{false};
    plain<int> cause;
    void before() { cause.write(0); }
    void thread(unsigned index) {
        if (index == 0) {
            cause.write(1);
            if (OfAll) {
                sleepers.end();
            } else {
                stop.store(true, relaxed);
                sleepers.wake(0);
                sleepers.wake(1);
            }
            return;
        }
        const std::size_t seat = sleepers.take_seat();
        const std::size_t found = sleepers.wait(
            seat, [] { return no_signal; }, [&] { return stop.load(relaxed); },
            [&] { sleepers.sleep(seat); });
        sleepers.give_seat_back(seat);
        model::require(found == no_signal, "a search found work in an empty group");
        if (OfAll) model::require(cause.read() == 1, "the cause came after the end");
    }
};

}  // namespace

int main() {
    model::report report("sleep");
    report.holds<schedule_and_sleep<1, 1>>("one scheduler, one worker", {50'000});
    report.holds<schedule_and_sleep<2, 2>>("two schedulers, two workers", {50'000});
    report.holds<passed_on>("two schedulers, two workers, one leaf", {50'000});
    report.holds<once_more>("a run that is due once more", {50'000});
    report.holds<ended<false>>("a stop request", {50'000});
    report.holds<ended<true>>("the end of a group", {50'000});
    report.dies_planted<schedule_and_sleep<1, 1>>("sleep.forget_wake", {400'000});
    report.dies_planted<schedule_and_sleep<1, 1>>("sleep.look_before_sitting");
    report.dies_planted<schedule_and_sleep<2, 2>>("sleep.keep_wake", {400'000});
    report.dies_planted<once_more>("contract.finish_quietly", {100'000});
    report.dies_weakened<ended<true>>(header, "sleep.end", {100'000});
    report.dies_weakened<ended<false>>(header, "sleep.wake", {100'000});
    return report.finish();
}
