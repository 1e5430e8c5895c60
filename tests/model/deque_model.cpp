// The model of the deque: an owner and two thieves; every item is taken exactly once, and whole.
#include "model.hpp"

#include <coppice/pool/internal/deque.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* header = "include/coppice/pool/internal/deque.hpp";

struct item {
    plain<int> payload;
    atomic<int> taken{0};
    void take() {
        model::require(payload.read() == 42, "an item was read before it was written");
        model::require(taken.fetch_add(1, relaxed) == 0, "an item was taken twice");
    }
};

// The owner pushes three items into two slots, and pops when full. Thieves steal.
template <int Thieves>
struct owner_and_thieves : model::test<owner_and_thieves<Thieves>, 1 + Thieves> {
    bounded_deque<item, 2> deque;
    item items[3];

    void thread(unsigned index) {
        if (index == 0) {
            for (item& i : items) {
                i.payload.write(42);
                while (!deque.push(&i)) {
                    if (item* const mine = deque.pop()) mine->take();
                }
            }
            while (item* const mine = deque.pop()) mine->take();
        } else {
            for (int tries = 0; tries != 2; ++tries) {
                const stolen<item> got = deque.steal();
                if (got.outcome == steal_outcome::taken) got.item->take();
            }
        }
    }
    void after() {
        for (item& i : items) model::require(i.taken.load(relaxed) == 1, "an item was lost");
        model::require(deque.looks_empty(), "the deque ends empty");
    }
};

// The owner reuses a slot that a thief has just emptied.
struct slot_reuse : model::test<slot_reuse, 2> {
    bounded_deque<item, 1> deque;
    item items[2];
    void thread(unsigned index) {
        if (index == 0) {
            for (item& i : items) {
                i.payload.write(42);
                while (!deque.push(&i)) spin_hint();
            }
        } else {
            for (int got = 0; got != 2;) {
                const stolen<item> s = deque.steal();
                if (s.outcome != steal_outcome::taken) {
                    spin_hint();
                    continue;
                }
                s.item->take();
                ++got;
            }
        }
    }
    void after() {
        for (item& i : items) model::require(i.taken.load(relaxed) == 1, "an item was lost");
    }
};

}  // namespace

int main() {
    model::report report("deque");
    report.holds<owner_and_thieves<1>>("an owner and a thief take each item once", {200'000});
    report.holds<owner_and_thieves<2>>("an owner and two thieves take each item once", {200'000});
    report.holds<slot_reuse>("a freed slot is reused", {50'000});
    report.dies_weakened<owner_and_thieves<2>>(header, "deque.publish", {200'000});
    report.dies_weakened<owner_and_thieves<2>>(header, "deque.last", {200'000});
    report.dies_planted<owner_and_thieves<2>>("deque.skip_last_item_race", {200'000});
    report.survives_weakened<slot_reuse>(
        header, "deque.reuse",
        "the edge keeps a thief's load of a slot from returning what the owner stores there after "
        "the theft; relacy runs each thread's loads in order and never lets one see a later store",
        {50'000});
    return report.finish();
}
