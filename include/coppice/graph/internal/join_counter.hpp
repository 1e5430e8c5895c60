// join_counter, end_counter, start_counter: when a node may start, and when a body has ended.
#pragma once
// The three counters through which the workers of a run coordinate. A worker that has ended a node
// arrives at each successor, and the last worker to arrive starts the successor. A body is the
// nodes of a graph or of a subgraph. It ends in one of two ways:
//
//   no conditions    Every node is reached, also after an error or a stop. So the body ends when
//                    all nodes without successors have ended. The end_counter counts these nodes.
//   conditions       It is not known in advance which nodes are reached. The end_counter counts
//                    paths. A path is a start that is queued or runs. A node that starts k
//                    successors adds k - 1 paths.
//
// After its last arrival, a worker that starts no node must not touch the graph: the thread that
// waits for the run may destroy it. Model: tests/model/graph_model.cpp.

#include <coppice/base/internal/atomic.hpp>

#include <cstdint>

namespace coppice::internal {

// Counts the strong predecessors of a node that have not ended. The last arrival resets the
// counter, so the next round needs no pass over the nodes.
class join_counter {
public:
    // Called while no run is under way, or by the worker that starts a round.
    void set(std::uint32_t predecessors) noexcept {
        // relaxed: the submission of the first nodes publishes it
        left_.store(predecessors, relaxed);
    }
    // Called by a worker that has ended a predecessor, in a body without conditions. Returns true
    // if it was the last one: the caller starts the node.
    [[nodiscard]] bool arrive(std::uint32_t predecessors) noexcept {
        if (predecessors == 1) return true;
        // If one predecessor is left, it is the caller's, which then needs no locked instruction.
        // edge graph.join (acquire): what the other predecessors did
        if (left_.load(acquire) != 1) {
            // edge graph.join (release), edge graph.join (acquire): the predecessors have ended
            if (left_.fetch_sub(1, acq_rel) != 1) return false;
        }
        if (!planted("graph.forget_reset")) set(predecessors);
        return true;
    }
    // Called likewise in a body with conditions, where a predecessor may end several times before
    // the node starts. Returns true once for each `predecessors` arrivals.
    [[nodiscard]] bool arrive_again(std::uint32_t predecessors) noexcept {
        if (predecessors == 1) return true;
        std::uint32_t left = left_.load(relaxed);
        // edge graph.join (release), edge graph.join (acquire): the predecessors have ended
        while (!left_.compare_exchange_weak(left, left == 1 ? predecessors : left - 1, acq_rel,
                                            relaxed)) {
        }
        return left == 1;
    }

private:
    atomic<std::uint32_t> left_{0};  // changed by the workers that end predecessors
};

// Counts the paths, or the nodes without successors, that must end before the body has ended.
class end_counter {
public:
    // Called by the worker that starts a round, before it starts the first node.
    void set(std::uint32_t count) noexcept {
        // relaxed: the submission of the first nodes publishes it
        left_.store(count, relaxed);
    }
    // Called by a worker whose path splits into `starts` paths, at least 1, before it starts them.
    void split(std::uint32_t starts) noexcept {
        // relaxed: the caller's own path keeps the count above zero
        if (starts != 1) left_.fetch_add(starts - 1, relaxed);
    }
    // Called by a worker that has ended a counted path or node. Returns true if it was the last:
    // the caller then ends the body. After false, the body may be gone.
    [[nodiscard]] bool end_one() noexcept {
        // edge graph.end (release), edge graph.end (acquire): the paths have ended
        return left_.fetch_sub(1, acq_rel) == 1;
    }

private:
    atomic<std::uint32_t> left_{0};  // changed by the workers of the run
};

// Counts the starts of a node in a body with conditions. A node never runs on two workers at once.
// A start that comes while the node runs is counted, and its worker runs the node again afterwards.
class start_counter {
public:
    // Called by the worker that starts a round.
    void reset() noexcept {
        // relaxed: the submission of the first nodes publishes it
        starts_.store(0, relaxed);
    }
    // Called by a worker that starts the node. Returns true if the caller must queue it. Returns
    // false if the node is running: its worker will run it again.
    [[nodiscard]] bool start() noexcept {
        if (planted("graph.run_beside_itself")) return true;
        // edge graph.again (release), edge graph.again (acquire): this start, the last run
        return starts_.fetch_add(1, acq_rel) == 0;
    }
    // Called by the worker that has run the node. Returns true if it must run again.
    [[nodiscard]] bool ended() noexcept {
        if (planted("graph.drop_start")) {
            starts_.store(0, relaxed);
            return false;
        }
        // edge graph.again (release), edge graph.again (acquire): this run, the next start
        return starts_.fetch_sub(1, acq_rel) != 1;
    }

private:
    atomic<std::uint32_t> starts_{0};  // changed by the workers of the run
};

}  // namespace coppice::internal
