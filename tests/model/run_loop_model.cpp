// run_loop: pushes, sleeps, finish; and a loop that is destroyed as soon as run() returns.
#include "exec_model.hpp"

#include <coppice/exec/run_loop.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

constexpr const char* loop_file = "include/coppice/exec/internal/run_loop_queue.hpp";

struct job final : ex::run_loop::item {
    plain<int> payload{0};
    std::vector<int>* order = nullptr;
    int number = 0;
    void execute() noexcept override {
        require(payload.read() == 1, "ran before it was ready");
        order->push_back(number);
    }
};

// Two threads push, the later one finishes, and the runner destroys the loop when run() has
// returned.
struct pushed_by_two : test<pushed_by_two, 3> {
    manual_lifetime<ex::run_loop> loop;
    job jobs[2];
    std::vector<int> order;
    atomic<int> pushing{2};
    plain<int> said_at_the_end;

    void before() {
        loop.construct();
        order.clear();
        for (int i = 0; i != 2; ++i) {
            jobs[i].order = &order;
            jobs[i].number = i;
        }
    }
    void thread(unsigned index) {
        if (index == 2) {
            loop.get().run();
            require(order.size() == 2, "a job was lost");
            require(said_at_the_end.read() == 1, "the finish did not show what came before it");
            loop.destroy();
            return;
        }
        jobs[index].payload.write(1);
        loop.get().push_back(jobs[index]);
        if (pushing.fetch_sub(1, acq_rel) != 1) return;
        said_at_the_end.write(1);
        loop.get().finish();
    }
};

// The pushes of one thread run in order, while the runner may sleep in between.
struct in_order : test<in_order, 2> {
    ex::run_loop loop;
    job jobs[3];
    std::vector<int> order;

    void before() {
        order.clear();
        for (int i = 0; i != 3; ++i) {
            jobs[i].order = &order;
            jobs[i].number = i;
        }
    }
    void thread(unsigned index) {
        if (index == 1) {
            loop.run();
            return;
        }
        for (job& j : jobs) {
            j.payload.write(1);
            loop.push_back(j);
        }
        loop.finish();
    }
    void after() { require(order == std::vector<int>{0, 1, 2}, "out of order"); }
};

// A timer that is due, and a stop from another thread. One of them completes the timer, when none
// of its items is queued.
struct timer_and_stop : stop_test<timer_and_stop, 2>, ending {
    using sender =
        decltype(ex::schedule_at(std::declval<ex::run_loop::scheduler&>(), ex::instant()));
    manual_lifetime<ex::run_loop> loop;
    manual_lifetime<ex::connect_result_t<sender, ending_receiver>> op;
    int completions = 0;

    void before() {
        completions = 0;
        loop.construct();
        op.construct_with([this] {
            return ex::connect(ex::schedule_at(loop.get().get_scheduler(), ex::instant(0)),
                               ending_receiver(*this));
        });
        ex::start(op.get());
    }
    void completed() noexcept override {
        ++completions;
        op.destroy();
        loop.get().finish();
    }
    void run(unsigned index) {
        if (index == 0) {
            loop.get().run();
        } else {
            source.request_stop();
        }
    }
    void after() {
        require(completions == 1, "not completed once");
        loop.destroy();
    }
};

}  // namespace

int main() {
    report report("run_loop");
    report.holds<pushed_by_two>("no item is lost, and no thread touches a destroyed loop");
    report.holds<in_order>("first in, first out");
    report.holds<timer_and_stop>("a timer and its stop complete once", far);
    report.dies_weakened<pushed_by_two>(loop_file, "run_loop.push");
    report.dies_weakened<pushed_by_two>(loop_file, "run_loop.finish");
    report.dies_planted<in_order>("run_loop.push_asleep");
    report.dies_planted<pushed_by_two>("run_loop.finish_asleep");
    report.dies_planted<timer_and_stop>("run_loop.cancel_unseen", far);
    return report.finish();
}
