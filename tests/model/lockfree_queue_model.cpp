// The ring of pool/lockfree_queue.hpp: every item is popped once, whole, or rejected.
#include "model.hpp"

#include <coppice/pool/lockfree_queue.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* header = "include/coppice/pool/internal/lockfree_ring.hpp";

struct item {
    plain<int> payload;
    atomic<int> taken{0};
    void take() {
        model::require(payload.read() == 42, "an item was read before it was written");
        model::require(taken.fetch_add(1, relaxed) == 0, "an item was taken twice");
    }
};

// Two threads push two items each into two cells, and pop as often. The rest is popped at the end.
struct pushers_and_poppers : model::test<pushers_and_poppers, 2> {
    lockfree_ring<item, 2> ring;
    item items[4];
    void thread(unsigned index) {
        for (unsigned i = 0; i != 2; ++i) {
            item& mine = items[index * 2 + i];
            mine.payload.write(42);
            if (!ring.push(&mine)) mine.take();
            if (item* const got = ring.pop()) got->take();
        }
    }
    void after() {
        while (item* const got = ring.pop()) got->take();
        for (item& each : items) model::require(each.taken.load(relaxed) == 1, "an item was lost");
    }
};

// One thread pushes through several laps of one cell, and two pop.
struct many_laps : model::test<many_laps, 3> {
    lockfree_ring<item, 1> ring;
    item items[3];
    void thread(unsigned index) {
        if (index == 0) {
            for (item& each : items) {
                each.payload.write(42);
                if (!ring.push(&each)) each.take();
            }
        } else {
            for (int tries = 0; tries != 2; ++tries) {
                if (item* const got = ring.pop()) got->take();
            }
        }
    }
    void after() {
        while (item* const got = ring.pop()) got->take();
        for (item& each : items) model::require(each.taken.load(relaxed) == 1, "an item was lost");
    }
};

}  // namespace

int main() {
    model::report report("lockfree_queue");
    report.holds<pushers_and_poppers>("two threads push and pop", {200'000});
    report.holds<many_laps>("one pushes, two pop, lap after lap", {200'000});
    report.dies_weakened<pushers_and_poppers>(header, "queue.publish", {200'000});
    return report.finish();
}
