// The parking model: workers search and sleep, adders wake them; all work is done, none sleeps on.
#include "model.hpp"

#include <coppice/pool/parking.hpp>

namespace {

using namespace coppice;

constexpr const char* header = "include/coppice/pool/parking.hpp";

// Adders add one item each to a counter that stands for the queues; workers take all there are.
// The workers are dealt to the lots, from the second on; all adders are near the first.
template <int Adders, int Workers, int Lots = 1>
struct adders_and_workers
    : model::test<adders_and_workers<Adders, Workers, Lots>, Adders + Workers> {
    parking_lots lots{Lots};
    atomic<int> queued{0};
    atomic<int> done{0};

    bool take() {
        int n = queued.load(relaxed);
        while (n > 0) {
            if (queued.compare_exchange_weak(n, n - 1, relaxed, relaxed)) return true;
        }
        return false;
    }
    void worker(std::size_t near) {
        parking& lot = lots[near];
        lot.begin_search();
        for (;;) {
            if (take()) {
                if (lot.end_search() && queued.load(relaxed) > 0) lots.wake_one(near);
                if (done.fetch_add(1, relaxed) + 1 == Adders) lots.wake_all();
                lot.begin_search();
                continue;
            }
            lot.announce_sleep();
            if (queued.load(relaxed) > 0) {
                lot.cancel_sleep();
                continue;
            }
            if (done.load(relaxed) == Adders) return;
            lot.sleep();
        }
    }
    void thread(unsigned index) {
        if (index < Adders) {
            queued.fetch_add(1, relaxed);
            lots.wake_one(0);
        } else {
            worker((index - Adders + 1) % Lots);
        }
    }
    void after() { model::require(done.load(relaxed) == Adders, "work was left undone"); }
};

}  // namespace

int main() {
    model::report report("parking");
    report.holds<adders_and_workers<1, 1>>("one adder wakes one worker", {100'000});
    report.holds<adders_and_workers<2, 1>>("two adders, one worker", {100'000});
    report.holds<adders_and_workers<1, 2>>("one adder, two workers", {100'000});
    report.holds<adders_and_workers<2, 2>>("two adders, two workers", {200'000});
    report.holds<adders_and_workers<1, 1, 2>>("one adder far from one worker", {100'000});
    report.holds<adders_and_workers<2, 2, 2>>("two adders, two workers, two lots", {200'000});
    report.dies_planted<adders_and_workers<1, 1, 2>>("parking.wake_near_only", {100'000});
    report.dies_weakened<adders_and_workers<1, 1>>(header, "parking.recheck", {100'000});
    report.dies_planted<adders_and_workers<1, 1>>("parking.forget_wake", {100'000});
    return report.finish();
}
