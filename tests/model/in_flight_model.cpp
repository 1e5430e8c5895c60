// The model of in_flight: a call publishes work and then uses the object; the end waits for that.
#include "model.hpp"

#include <coppice/base/internal/in_flight.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* header = "include/coppice/base/internal/in_flight.hpp";

struct call_and_end : model::test<call_and_end, 2> {
    in_flight calls;
    atomic<int> work{0};
    plain<int> object;  // stands for what the call uses after its work is visible

    void before() { object.write(1); }
    void thread(unsigned index) {
        if (index == 0) {
            const in_flight::entry entry(calls);
            work.store(1, release);
            model::require(object.read() == 1, "the object ended under a call");
        } else {
            while (work.load(acquire) == 0) spin_hint();
            if (!planted("in_flight.forget_to_wait")) calls.wait();
            object.write(0);  // the end of the object
        }
    }
};

}  // namespace

int main() {
    model::report report("in_flight");
    report.holds<call_and_end>("the end waits for the call", {.iterations = 100'000});
    report.dies_weakened<call_and_end>(header, "in_flight.over");
    report.dies_planted<call_and_end>("in_flight.forget_to_wait");
    return report.finish();
}
