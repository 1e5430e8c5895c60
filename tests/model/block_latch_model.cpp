// The model of block_latch: a thread sleeps until its outcome is there, however it is disturbed.
#include "model.hpp"

#include <coppice/token/block_latch.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
constexpr const char* header = "include/coppice/token/block_latch.hpp";

// The latch ends as soon as the waiter has seen it set.
struct set_and_wait : model::test<set_and_wait, 2> {
    block_latch* latch = nullptr;
    plain<int> outcome;

    void before() { latch = new block_latch; }
    void thread(unsigned index) {
        if (index == 0) {
            outcome.write(42);
            latch->set();
            return;
        }
        while (!latch->is_set()) latch->sleep();
        model::require(outcome.read() == 42, "the outcome was seen before it was stored");
        delete latch;
    }
};

// Another thread frees what the waiter might use, and pokes it; the outcome never comes.
struct poke_and_look : model::test<poke_and_look, 2> {
    block_latch latch;
    plain<int> loop;

    void thread(unsigned index) {
        if (index == 0) {
            loop.write(42);
            latch.poke();
            return;
        }
        latch.sleep();
        model::require(loop.read() == 42, "what became free was seen before it was free");
    }
};

struct poke_set_and_wait : model::test<poke_set_and_wait, 3> {
    block_latch latch;
    plain<int> outcome;

    void thread(unsigned index) {
        if (index == 0) {
            outcome.write(42);
            latch.set();
        } else if (index == 1) {
            latch.poke();
        } else {
            while (!latch.is_set()) latch.sleep();
            model::require(outcome.read() == 42, "the outcome was seen before it was stored");
        }
    }
};

}  // namespace

int main() {
    model::report report("block_latch");
    report.holds<set_and_wait>("the waiter sees the outcome, and may end the latch", {50'000});
    report.holds<poke_and_look>("a poke wakes, and shows what became free", {50'000});
    report.holds<poke_set_and_wait>("a poke does not hide the outcome", {100'000});
    report.dies_weakened<set_and_wait>(header, "block_latch.done", {20'000});
    report.dies_weakened<poke_and_look>(header, "block_latch.poked", {20'000});
    report.dies_planted<set_and_wait>("block_latch.set_does_not_wake", {20'000});
    report.dies_planted<poke_set_and_wait>("block_latch.poke_over_done", {50'000});
    return report.finish();
}
