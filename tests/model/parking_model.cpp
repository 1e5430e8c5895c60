// The model of parking: workers search and sleep, adders wake them; all work is done, none sleeps
// on.
#include "model.hpp"

#include <coppice/pool/internal/parking.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* header = "include/coppice/pool/internal/parking.hpp";

// Each adder adds one item to a counter that stands for the queues. Workers take one, as a pool's
// worker does. The workers are dealt to the lots, beginning with the second; all adders are near
// the first. Movers take all items out of the others' sight, and give back all but one.
enum class taking { one, share };
enum class adding { outside, on_worker };
template <int Adders, int Workers, int Lots = 1, taking Takes = taking::one,
          adding Adds = adding::outside>
struct adders_and_workers
    : model::test<adders_and_workers<Adders, Workers, Lots, Takes, Adds>, Adders + Workers> {
    parking_lots lots{Lots};
    atomic<int> queued{0};
    atomic<int> done{0};
    atomic<std::uint32_t> begun{0};

    bool take(std::size_t near) { return Takes == taking::one ? take_one() : take_share(near); }
    bool take_one() {
        int n = queued.load(relaxed);
        while (n > 0) {
            if (queued.compare_exchange_weak(n, n - 1, relaxed, relaxed)) return true;
        }
        return false;
    }
    bool take_share(std::size_t near) {
        if (queued.load(relaxed) == 0) return false;
        const int n = queued.exchange(0, relaxed);
        if (n == 0) return false;
        if (n > 1) {
            queued.fetch_add(n - 1, relaxed);
            if (!planted("parking.untold_rest")) lots.wake_one(near);
        }
        return true;
    }
    // If there is a worker for each item, an item ends only when all have begun. It does not help
    // that a worker that is awake would come to the others later.
    void run_one() {
        if (Adders == Workers) {
            if (begun.fetch_add(1, relaxed) + 1 == Adders) futex_wake_all(begun);
            std::uint32_t n = 0;
            while ((n = begun.load(relaxed)) != Adders) futex_wait(begun, n);
        }
        if (done.fetch_add(1, relaxed) + 1 == Adders) lots.wake_all();
    }
    bool search(parking& lot, std::size_t near) {
        lot.begin_search();
        while (!take(near)) {
            lot.announce_sleep();
            if (Adds == adding::on_worker && !planted("parking.sleep_lightly")) heavy_fence();
            if (queued.load(relaxed) > 0) {
                lot.cancel_sleep();
                continue;
            }
            if (done.load(relaxed) == Adders) return false;
            lot.sleep();
        }
        if (lot.end_search() && queued.load(relaxed) > 0) lots.wake_one(near);
        if (Adds == adding::on_worker && lots.has_sleepers() && !planted("parking.end_lightly")) {
            heavy_fence();
            if (queued.load(relaxed) > 0) lots.wake_one(near);
        }
        return true;
    }
    void worker(std::size_t near) {
        for (;;) {
            while (take(near)) run_one();
            if (!search(lots[near], near)) return;
            run_one();
        }
    }
    void thread(unsigned index) {
        if (index < Adders) {
            queued.fetch_add(1, relaxed);
            if (Adds == adding::on_worker) {
                lots.wake_one_lightly(0);
            } else {
                lots.wake_one(0);
            }
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
    report.holds<adders_and_workers<2, 2, 1, taking::share>>("two adders, two movers", {200'000});
    report.holds<adders_and_workers<3, 2, 1, taking::share>>("three adders, two movers", {200'000});
    using light_2_1 = adders_and_workers<2, 1, 1, taking::one, adding::on_worker>;
    using light_2_2 = adders_and_workers<2, 2, 1, taking::one, adding::on_worker>;
    using light_2_2_2 = adders_and_workers<2, 2, 2, taking::one, adding::on_worker>;
    report.holds<light_2_1>("two workers add, one worker", {100'000});
    report.holds<light_2_2>("two workers add, two workers", {200'000});
    report.holds<light_2_2_2>("two workers add, two workers, two lots", {200'000});
    report.dies_weakened<light_2_1>(header, "parking.light", {100'000});
    report.dies_planted<light_2_1>("parking.sleep_lightly", {100'000});
    report.dies_planted<light_2_2>("parking.end_lightly", {500'000});
    report.dies_planted<adders_and_workers<2, 2, 1, taking::share>>("parking.untold_rest",
                                                                    {500'000});
    report.dies_planted<adders_and_workers<1, 1, 2>>("parking.wake_near_only", {100'000});
    report.dies_weakened<adders_and_workers<1, 1>>(header, "parking.recheck", {100'000});
    report.dies_planted<adders_and_workers<1, 1>>("parking.forget_wake", {100'000});
    return report.finish();
}
