// join_counter, end_counter, start_counter: when a node may start, and when a body has ended.
#pragma once
// The three words by which the workers of a run meet. A worker that has ended a node arrives at
// each successor; the last to arrive starts it. A body, a graph or a subgraph, ends in one of two
// ways:
//
//   no conditions    every node is reached, also after an error or a stop. So the body ends when
//   its
//                    last node without successors has ended: the end_counter counts those.
//   conditions       which nodes are reached is not known. The end_counter counts paths: a start
//                    that is queued or runs is a path. A node that starts k successors adds k - 1.
//
// After its last arrival, a worker that does not start the node touches nothing of the graph: the
// thread that waits for the run may destroy it. Model: tests/model/graph_model.cpp.

#include <coppice/base/internal/atomic.hpp>

#include <cstdint>

namespace coppice::internal {

// Counts the strong predecessors of a node that have not ended. It goes back to its beginning when
// the last one arrives, so a run needs no second pass.
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
        // If one is left, it is the caller, which needs no locked instruction.
        // edge graph.join (acquire): what the other predecessors did
        if (left_.load(acquire) != 1) {
            // edge graph.join (release), edge graph.join (acquire): the predecessors have ended
            if (left_.fetch_sub(1, acq_rel) != 1) return false;
        }
        if (!planted("graph.forget_reset")) set(predecessors);
        return true;
    }
    // The same in a body with conditions, where a predecessor may end again before the node starts:
    // each `predecessors` arrivals start the node once.
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

// Counts what has to end before a body has ended.
class end_counter {
public:
    // Called by the worker that starts a round, before it starts the first node.
    void set(std::uint32_t count) noexcept {
        // relaxed: the submission of the first nodes publishes it
        left_.store(count, relaxed);
    }
    // Called by a worker whose path goes on as `starts` paths, at least 1, before it starts them.
    void split(std::uint32_t starts) noexcept {
        // relaxed: the caller's own path keeps the count above zero
        if (starts != 1) left_.fetch_add(starts - 1, relaxed);
    }
    // Called by a worker that has ended one of them. Returns true if it was the last: the caller
    // ends the body. Otherwise the body may be gone.
    [[nodiscard]] bool end_one() noexcept {
        // edge graph.end (release), edge graph.end (acquire): the paths have ended
        return left_.fetch_sub(1, acq_rel) == 1;
    }

private:
    atomic<std::uint32_t> left_{0};  // changed by the workers of the run
};

// Counts the starts of a node in a body with conditions. A node never runs beside itself: a start
// that comes while it runs is kept until it has ended.
class start_counter {
public:
    // Called by the worker that starts a round.
    void reset() noexcept {
        // relaxed: the submission of the first nodes publishes it
        starts_.store(0, relaxed);
    }
    // Called by a worker that starts the node. Returns false if the worker that runs it runs it
    // again.
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
