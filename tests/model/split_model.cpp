// split: consumers start while the child completes; the last holder destroys the state.
#include "exec_model.hpp"

#include <coppice/exec/split.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

constexpr const char* split_file = "include/coppice/exec/internal/split_state.hpp";

// A consumer that destroys its operation when it is completed.
template <class Sndr, class Rcvr>
struct consumer : ending {
    using operation = ex::connect_result_t<Sndr, Rcvr>;
    std::optional<Sndr> sndr;
    manual_lifetime<operation> op;
    int completions = 0;
    void connect() {
        op.construct_with([this] { return ex::connect(std::move(*sndr), Rcvr(*this)); });
        sndr.reset();
    }
    void completed() noexcept override {
        ++completions;
        op.destroy();
    }
};

// Two threads start a consumer each, and a third completes the child.
struct two_consumers : stop_test<two_consumers, 3> {
    using sender = decltype(ex::split(std::declval<hand::sender>()));
    hand child;
    consumer<sender, unstoppable_ending_receiver> consumers[2];

    void before() {
        child.reset();
        sender shared = ex::split(child.get());
        for (auto& c : consumers) {
            c.sndr.emplace(shared);
            c.completions = 0;
            c.connect();
        }
    }
    void run(unsigned index) {
        if (index == 2) {
            child.wait_for_start();
            child.started->value();
        } else {
            ex::start(consumers[index].op.get());
        }
    }
    void after() {
        require(consumers[0].completions == 1 && consumers[1].completions == 1,
                "a consumer was not completed once");
        require(child.ended.load(relaxed) == 1, "the state was not destroyed once");
    }
};

// A consumer's stop completes the child inside the request, while another consumer starts.
struct stop_of_one : stop_test<stop_of_one, 3> {
    using sender = decltype(ex::split(stopped_inside()));
    consumer<sender, ending_receiver> consumers[2];

    void before() {
        sender shared = ex::split(stopped_inside());
        for (auto& c : consumers) {
            c.sndr.emplace(shared);
            c.completions = 0;
            c.connect();
        }
    }
    void run(unsigned index) {
        if (index == 2) {
            consumers[0].source.request_stop();
        } else {
            ex::start(consumers[index].op.get());
        }
    }
    void after() {
        require(consumers[0].completions == 1 && consumers[1].completions == 1,
                "a consumer was not completed once");
    }
};

}  // namespace

int main() {
    report report("split");
    report.holds<two_consumers>("each consumer is completed once", far);
    report.holds<stop_of_one>("the stop of one consumer reaches the child, and all complete", far);
    report.dies_weakened<two_consumers>(split_file, "split.add", far);
    report.dies_weakened<two_consumers>(split_file, "split.done", far);
    report.dies_weakened<two_consumers>(split_file, "split.let_go", far);
    report.dies_planted<two_consumers>("split.start_unheld", far);
    return report.finish();
}
