// The model of the event log: a reader sees every event below the size that it read.
#include "model.hpp"

#include <coppice/trace/event_log.hpp>

namespace {

using namespace coppice;

constexpr const char* header = "include/coppice/trace/event_log.hpp";

// The writer records three events in a log that has room for two; the other thread reads.
struct writer_and_reader : model::test<writer_and_reader, 2> {
    trace::event_log log{2};

    void thread(unsigned index) {
        if (index == 0) {
            const bool begun = log.begin(1, "run");
            log.instant(2, "dropped");
            log.end(begun, 3);
        } else {
            const std::size_t size = log.size();
            for (std::size_t i = 0; i != size; ++i) {
                model::require(log.at(i).time_ns == (i == 0 ? 1 : 3), "a reader saw another event");
            }
        }
    }
    void after() { model::require(log.size() == 2 && log.dropped() == 1, "an end was dropped"); }
};

}  // namespace

int main() {
    model::report report("event_log");
    report.holds<writer_and_reader>("a reader sees every published event", {20'000, true});
    report.dies_weakened<writer_and_reader>(header, "trace.publish", {20'000, true});
    return report.finish();
}
