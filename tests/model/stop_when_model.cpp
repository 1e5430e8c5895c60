// stop_when: two threads stop one operation through two tokens concurrently, and a third destroys
// it as soon as it has completed. The function of the fused callback runs once.
#include "exec_model.hpp"

#include <coppice/exec/stop_when.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

struct stopped_twice : stop_test<stopped_twice, 3>, ending {
    using sender = decltype(ex::stop_when(stopped_inside(), std::declval<inplace_stop_token>()));
    inplace_stop_source other;
    manual_lifetime<ex::connect_result_t<sender, ending_receiver>> op;
    atomic<int> completions{0};

    void before() {
        completions.store(0, relaxed);
        op.construct_with([this] {
            return ex::connect(ex::stop_when(stopped_inside(), other.get_token()),
                               ending_receiver(*this));
        });
    }
    void completed() noexcept override { completions.fetch_add(1, release); }
    void run(unsigned index) {
        if (index == 0) {
            ex::start(op.get());
            while (completions.load(acquire) == 0) spin_hint();
            op.destroy();
        }
        if (index == 1) source.request_stop();
        if (index == 2) other.request_stop();
    }
    void after() { require(completions.load(relaxed) == 1, "not completed once"); }
};

}  // namespace

int main() {
    report report("stop_when");
    report.holds<stopped_twice>("two stops complete an operation once; a third thread destroys it",
                                far);
    report.dies_planted<stopped_twice>("fused.run_twice", far);
    return report.finish();
}
