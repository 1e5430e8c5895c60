// task_join: counts the children of a waiting task that end elsewhere; used by wait_for_tasks.
#pragma once
//   joined_   0: no child has ended elsewhere
//             -k: k children have ended elsewhere while the main line runs
//             n > 0: the main line has ended; n children have not
//
// The main line adds the number of children that went elsewhere, and each of those children
// subtracts one. All of these are read-modify-write operations on one word, so one of them is the
// last. Only that one finds the sum complete (the main line finds minus what it adds; a child finds
// one) and continues with the parent. It has acquired what all others released. Until the main line
// has added, the word is not positive, so no child can be the last. If no child went elsewhere, the
// main line touches no atomic word. The idea is libfork's.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::execution::internal {

// Threads: the main line calls main_line_ended() once; any thread calls ended_elsewhere(), once for
// each child that the main line counts.
class task_join : immovable {
public:
    // Returns true if all children have ended; the caller then continues with the parent. If it
    // returns false, the caller must not touch this object again.
    bool main_line_ended(std::int32_t away) noexcept {
        if (away == 0) return true;
        // Once this is added, a child may be the last, and may destroy this object.
        // edge task_join.ended (acq_rel): what the children did, to the last one
        return joined_.fetch_add(away, acq_rel) == -away;
    }
    // Does the same for a child; called by the thread that ran the child elsewhere.
    bool ended_elsewhere() noexcept {
        // edge task_join.ended (acq_rel): what this child and the others did, to the last one
        return joined_.fetch_sub(1, acq_rel) == 1;
    }

private:
    atomic<std::int32_t> joined_{0};
};

}  // namespace coppice::execution::internal
