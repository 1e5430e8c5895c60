// The model of a graph's counters: a node starts once, after all its predecessors; a body ends
// once, after all its nodes; and the thread that waits for the end destroys it.
#include "model.hpp"

#include <coppice/base/lifetime.hpp>
#include <coppice/graph/internal/join_counter.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using model::require;

constexpr const char* header = "include/coppice/graph/internal/join_counter.hpp";

// What workers and the waiter share of a body.
struct counters {
    join_counter joins;
    end_counter ends;
};

// Two workers end the predecessors of a node, in two rounds. The last one to arrive runs the node,
// which is the last of the graph. The second round begins when the node has ended, by the worker
// that ran it. A third thread waits for the end and destroys the graph.
template <bool Loops>
struct join_and_end : model::test<join_and_end<Loops>, 3> {
    manual_lifetime<counters> body;
    plain<int> done[2];
    atomic<int> round{0};
    atomic<int> ended{0};

    bool arrive() {
        counters& b = body.get();
        return Loops ? b.joins.arrive_again(2) : b.joins.arrive(2);
    }
    void before() {
        counters& b = body.construct();
        b.joins.set(2);
        b.ends.set(1);
        done[0].write(0);
        done[1].write(0);
        round.store(1, relaxed);
        ended.store(0, relaxed);
    }
    // The second predecessor of each round ends on the other worker.
    void thread(unsigned index) {
        if (index == 2) {
            while (ended.load(acquire) == 0) spin_hint();
            require(done[0].read() == 2 && done[1].read() == 2, "a round was left out");
            body.destroy();
            return;
        }
        for (int turn = 1; turn != 3; ++turn) {
            while (round.load(acquire) < turn) spin_hint();
            done[index].write(turn);
            if (!arrive()) continue;
            require(done[0].read() == turn && done[1].read() == turn, "started before all ended");
            if (turn == 1) {
                round.store(2, release);
            } else if (body.get().ends.end_one()) {
                ended.store(1, release);
            }
        }
    }
};

// Three nodes without successors end on two workers, in two groups; or three paths, of which the
// second is split off by a worker that has a path.
struct ends : model::test<ends, 3> {
    manual_lifetime<counters> body;
    plain<int> done[2];
    atomic<int> split{0};
    atomic<int> ended{0};

    void before() {
        counters& b = body.construct();
        b.ends.set(1);
        done[0].write(0);
        done[1].write(0);
        split.store(0, relaxed);
        ended.store(0, relaxed);
    }
    void end_path() {
        if (body.get().ends.end_one()) ended.store(1, release);
    }
    void thread(unsigned index) {
        if (index == 0) {
            body.get().ends.split(2);
            split.store(1, release);
            done[0].write(1);
            end_path();
        } else if (index == 1) {
            while (split.load(acquire) == 0) spin_hint();
            done[1].write(1);
            end_path();
        } else {
            while (ended.load(acquire) == 0) spin_hint();
            require(done[0].read() == 1 && done[1].read() == 1, "ended before all paths");
            body.destroy();
        }
    }
};

// Four nodes without successors end on two workers, in two groups of two.
struct groups : model::test<groups, 3> {
    struct grouped {
        join_counter groups[2];
        end_counter ends;
    };
    manual_lifetime<grouped> body;
    plain<int> done[2];
    atomic<int> ended{0};

    void before() {
        grouped& b = body.construct();
        b.groups[0].set(2);
        b.groups[1].set(2);
        b.ends.set(2);
        done[0].write(0);
        done[1].write(0);
        ended.store(0, relaxed);
    }
    void thread(unsigned index) {
        if (index == 2) {
            while (ended.load(acquire) == 0) spin_hint();
            require(done[0].read() == 2 && done[1].read() == 2, "ended before all nodes");
            body.destroy();
            return;
        }
        for (unsigned i = 0; i != 2; ++i) {
            done[index].write(static_cast<int>(i) + 1);
            // After this, unless it was the last, the body may be gone.
            if (body.get().groups[i].arrive(2) && body.get().ends.end_one()) {
                ended.store(1, release);
            }
        }
    }
};

// Two workers start one node. It runs twice, and never beside itself.
struct starts : model::test<starts, 2> {
    start_counter node;
    plain<int> runs;
    plain<int> given[2];
    atomic<int> paths{2};

    void before() {
        node.reset();
        runs.write(0);
        given[0].write(0);
        given[1].write(0);
        paths.store(2, relaxed);
    }
    void thread(unsigned index) {
        given[index].write(1);
        if (!node.start()) return;
        do {
            runs.write(runs.read() + 1);
            paths.fetch_sub(1, relaxed);
        } while (node.ended());
    }
    void after() {
        require(paths.load(relaxed) == 0, "a start was lost");
        require(runs.read() == 2, "a run was lost");
    }
};

// A worker ends a node that starts two others, which run on two workers and are run again by them.
// Each start is counted before it is made, and the last one gives the worker's own path away. The
// thread that ends the body destroys it.
struct taken_starts : model::test<taken_starts, 3> {
    struct counted {
        start_counter starter;
        start_counter nodes[2];
        end_counter ends;
    };
    manual_lifetime<counted> body;
    plain<int> runs[2];

    void before() {
        counted& b = body.construct();
        b.ends.set(3);
        b.starter.reset();
        (void)b.starter.start();
        for (unsigned i = 0; i != 2; ++i) {
            runs[i].write(0);
            b.nodes[i].reset();
            (void)b.nodes[i].start();
        }
    }
    void run(unsigned i) {
        bool again = true;
        while (again) {
            runs[i].write(runs[i].read() + 1);
            again = body.get().nodes[i].ended();
            if (!body.get().ends.end_one()) continue;
            require(runs[0].read() == 2 && runs[1].read() == 2, "ended before all starts");
            body.destroy();
            return;
        }
    }
    void thread(unsigned index) {
        if (index != 0) return run(index - 1);
        counted& b = body.get();
        const bool late = planted("graph.count_late");
        const bool early = planted("graph.give_away_early");
        if (!late) b.ends.split(2);
        const bool first = b.nodes[0].start();
        bool second = early && b.nodes[1].start();
        (void)b.starter.ended();
        if (!early) second = b.nodes[1].start();  // the body may be gone, unless a start is ours
        if (late) b.ends.split(2);
        if (first) run(0);
        if (second) run(1);
    }
};

}  // namespace

int main() {
    model::report report("graph");
    report.holds<join_and_end<false>>("the last to arrive sees all, and the waiter destroys");
    report.holds<join_and_end<true>>("the same in a body with conditions");
    report.holds<ends>("paths that split end once");
    report.holds<groups>("groups of nodes end once");
    report.holds<starts>("a node runs once for each start, and never beside itself");
    report.holds<taken_starts>("a body ends after the starts that running nodes take over");
    report.dies_weakened<join_and_end<false>>(header, "graph.join");
    report.dies_weakened<join_and_end<true>>(header, "graph.join");
    report.dies_weakened<ends>(header, "graph.end");
    report.dies_weakened<groups>(header, "graph.join");
    report.dies_weakened<starts>(header, "graph.again");
    report.dies_planted<join_and_end<false>>("graph.forget_reset");
    report.dies_planted<starts>("graph.run_beside_itself");
    report.dies_planted<starts>("graph.drop_start");
    report.dies_planted<taken_starts>("graph.count_late");
    report.dies_planted<taken_starts>("graph.give_away_early");
    return report.finish();
}
