// start_race: an operation that completes on another thread while, or after, its start returns.
#include "exec_model.hpp"

#include <coppice/exec/internal/start_race.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

constexpr const char* race_file = "include/coppice/exec/internal/start_race.hpp";

// The starter hands the operation over inside start(). The side that continues reads what both have
// written, and destroys the race.
struct handed_over : test<handed_over, 2> {
    manual_lifetime<ex::internal::start_race> race;
    atomic<int> handed{0};
    plain<int> result;
    plain<int> started;
    plain<int> gone_on;

    void before() {
        race.construct();
        gone_on.write(0);
    }
    void go_on() {
        require(result.read() == 1 && started.read() == 1, "continued before both sides had acted");
        require(gone_on.read() == 0, "both sides continued");
        gone_on.write(1);
        race.destroy();
    }
    void thread(unsigned index) {
        if (index == 0) {
            race.get().open();
            handed.store(1, release);
            started.write(1);
            if (race.get().returned()) go_on();
        } else {
            while (handed.load(acquire) == 0) spin_hint();
            result.write(1);
            if (race.get().completed()) go_on();
        }
    }
    void after() { require(gone_on.read() == 1, "neither side continued"); }
};

}  // namespace

int main() {
    report report("start_race");
    report.holds<handed_over>("exactly one side continues, and sees everything",
                              {.full_search = true});
    report.dies_weakened<handed_over>(race_file, "start_race.completed", {.full_search = true});
    report.dies_weakened<handed_over>(race_file, "start_race.returned", {.full_search = true});
    return report.finish();
}
