// The model of ownership: a loop passes from thread to thread, and no waiter stays asleep.
#include "model.hpp"

#include <coppice/io/internal/ownership.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
constexpr const char* header = "include/coppice/io/internal/ownership.hpp";

// One thread runs the loop and leaves it; another takes over.
struct leave_and_take_over : model::test<leave_and_take_over, 2> {
    io::internal::ownership loop;
    plain<int> state;  // owned by the thread that runs the loop

    void before() { state.write(0); }
    void thread(unsigned) {
        block_latch never;
        model::require(loop.await_turn(never), "a latch that nobody sets was seen set");
        state.write(state.read() + 1);
        loop.leave();
    }
    void after() { model::require(state.read() == 2, "a turn was lost"); }
};

// The owner completes the operation of the sleeping thread, and leaves.
struct complete_and_leave : model::test<complete_and_leave, 2> {
    io::internal::ownership loop;
    block_latch* done = nullptr;
    plain<int> outcome;
    bool owned = false;

    void before() {
        done = new block_latch;
        owned = loop.try_take();
    }
    void thread(unsigned index) {
        if (index == 0) {
            outcome.write(42);
            done->set();
            loop.leave();
            return;
        }
        if (loop.await_turn(*done)) loop.leave();
        if (done->is_set()) model::require(outcome.read() == 42, "the outcome was not there");
        while (!done->is_set()) done->sleep();
        delete done;
    }
};

// One thread runs the loop and another blocks. The first has priority, and neither stays asleep.
struct run_and_block : model::test<run_and_block, 3> {
    io::internal::ownership loop;
    plain<int> state;

    void before() { state.write(0); }
    void thread(unsigned index) {
        if (index == 0) {
            loop.take([] {});
        } else {
            block_latch never;
            model::require(loop.await_turn(never), "a latch that nobody sets was seen set");
        }
        state.write(state.read() + 1);
        loop.leave();
    }
    void after() { model::require(state.read() == 3, "a turn was lost"); }
};

// Two threads sleep. The one that takes over leaves in turn.
struct two_sleepers : model::test<two_sleepers, 3> {
    io::internal::ownership loop;
    plain<int> state;

    void before() { state.write(0); }
    void thread(unsigned) {
        block_latch never;
        model::require(loop.await_turn(never), "a latch that nobody sets was seen set");
        state.write(state.read() + 1);
        loop.leave();
    }
    void after() { model::require(state.read() == 3, "a turn was lost"); }
};

}  // namespace

int main() {
    model::report report("ownership");
    report.holds<leave_and_take_over>("the loop passes from one to the other", {50'000});
    report.holds<complete_and_leave>("who sleeps has its outcome or the loop", {50'000});
    report.holds<two_sleepers>("three take turns", {100'000});
    report.holds<run_and_block>("who runs the loop goes first, nobody sleeps on", {100'000});
    report.dies_weakened<two_sleepers>(header, "ownership.taken", {20'000});
    report.dies_weakened<two_sleepers>(header, "ownership.list", {50'000});
    report.dies_planted<leave_and_take_over>("ownership.no_second_try", {20'000});
    report.dies_planted<two_sleepers>("block_latch.poke_once", {50'000});
    return report.finish();
}
