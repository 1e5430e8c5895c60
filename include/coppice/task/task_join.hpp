// task_join: counts the children of a waiting task that ended elsewhere; used by wait_for_tasks.
#pragma once
//   joined_   0: nothing has ended elsewhere
//             -k: k children have ended elsewhere while the main line runs
//             n > 0: the main line has ended; n children have not
//
// The main line adds how many children went elsewhere, each of those subtracts one. Either-or: all
// these are exchanges of one word, so one of them is the last; it alone finds the sum complete (the
// main line: minus what it adds; a child: one) and goes on with the parent. It has acquired what
// all others released. Until the main line has added, the word is not positive, so no child can be
// last. A main line from which nothing went elsewhere touches no atomic word. The idea is
// libfork's.

#include <coppice/base/atomic.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::execution {

// Threads: main_line_ended() by the main line, once; ended_elsewhere() by any, once for each child
// that the main line counts.
class task_join : immovable {
public:
    // True: all children have ended, the caller goes on with the parent. False: touch nothing.
    bool main_line_ended(std::int32_t away) noexcept {
        if (away == 0) return true;
        // A child may be last as soon as this is added, and this object gone.
        // edge task_join.ended (acq_rel): what the children did, to whoever is last
        return joined_.fetch_add(away, internal::acq_rel) == -away;
    }
    // The same, by who ran a child elsewhere.
    bool ended_elsewhere() noexcept {
        // edge task_join.ended (acq_rel): what this child did, and the others, to whoever is last
        return joined_.fetch_sub(1, internal::acq_rel) == 1;
    }

private:
    internal::atomic<std::int32_t> joined_{0};
};

}  // namespace coppice::execution
