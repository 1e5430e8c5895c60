// The cold functions of stop_state and stop_stripes.
#include <coppice/stop/internal/deadline.hpp>
#include <coppice/stop/internal/links.hpp>
#include <coppice/stop/internal/state.hpp>

#include <algorithm>
#include <bit>
#include <new>
#include <vector>

#include <unistd.h>

namespace coppice::internal {

std::size_t stop_stripes::stripes_grown() noexcept {
    const long processors = ::sysconf(_SC_NPROCESSORS_ONLN);
    const std::size_t wanted = 2 * static_cast<std::size_t>(std::max(processors, 1L));
    return std::min(std::bit_ceil(wanted), stop_table::stripes_most);
}

// Searches depth first. A state above which nothing can be stopped remembers that, so no state is
// searched twice, however many ways lead to it. The list holds states that have two or more parents
// to ask; a chain has none.
bool stop_state::stop_possible_above() const noexcept {
    struct branch {
        const stop_state* from;
        const stop_state* parent;  // being searched
    };
    try {
        std::vector<branch> open;
        for (const stop_state* state = this;;) {
            parents_to_ask ask;
            if (state->stop_possible_here()) return true;
            if (state->asks_parents() && state->links_->stop_possible(ask)) return true;
            if (ask.others) open.push_back({state, ask.first});
            if (ask.first != nullptr) {
                state = ask.first;
                continue;
            }
            // relaxed: it stays true, and no data depends on it
            state->links_->impossible.store(true, relaxed);
            if (open.empty()) break;
            open.back().parent->links_->impossible.store(true, relaxed);
            state = open.back().from;
            open.pop_back();
        }
    } catch (const std::bad_alloc&) {
        return true;
    }
    links_->impossible.store(true, relaxed);  // as above
    return false;
}

}  // namespace coppice::internal
