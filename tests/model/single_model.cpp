// The model of the single source: one slot that is its own flag.
#include "stop_model.hpp"

#include <coppice/stop/single.hpp>

namespace {

using namespace coppice;
using namespace coppice::protocol_model;
using namespace model;

struct single {
    using source = single_inplace_stop_source;
    using token = single_inplace_stop_token;
    static token token_of(const source& s) { return s.get_token(); }
};

constexpr const char* slot = "include/coppice/stop/internal/slot.hpp";
constexpr const char* waiting = "include/coppice/stop/internal/sleepers.hpp";

}  // namespace

int main() {
    report report("single");
    report.holds<register_and_remove<single>>("register and remove against request", far);
    report.holds<no_stop_is_lost<single>>("no stop is lost", far);
    report.holds<late_callback<single>>("a late callback runs in its constructor", far);
    report.holds<racing_requests<single>>("one of racing requests wins", far);
    report.holds<remove_while_running<single>>("removal waits for a running callback", far);
    report.holds<self_removal<single>>("a callback removes itself", far);
    report.holds<source_dies_inside<single>>("a callback destroys the source", far);
    report.holds<forward_and_destroy<single, single>>("the last completion frees everything", far);
    report.holds<forward_and_destroy<single, single, false>>(
        "the same when only the stop completes", far);

    report.dies_weakened<register_and_remove<single>>(slot, "stop.callback", far);
    report.dies_weakened<register_and_remove<single>>(slot, "stop.requested", far);
    report.dies_weakened<remove_while_running<single>>(slot, "stop.done", far);
    report.dies_weakened<remove_while_running<single>>(waiting, "stop.done", far);
    report.dies_weakened<remove_while_running<single>>(waiting, "stop.sleep", far);
    report.dies_planted<remove_while_running<single>>("stop.do_not_wait", far);
    report.dies_planted<remove_while_running<single>>("stop.forget_wake", far);
    report.dies_planted<remove_while_running<single>>("stop.sleep_unannounced", far);
    report.dies_planted<remove_while_running<single>>("stop.wake_before_done", far);
    report.dies_planted<self_removal<single>>("stop.wait_for_oneself", far);
    report.dies_planted<source_dies_inside<single>>("stop.touch_dead_callback", far);
    return report.finish();
}
