// when_all_range: when_all for a vector of senders, whose number is known at run time.
#pragma once
// Sends nothing if the senders send nothing. Otherwise sends one vector of what they sent, in their
// order: of the values, or of tuples if each sends several. The first error or stop asks the others
// to stop, as in when_all. An empty vector completes at once.
//
// Cost: one allocation when it is connected, for all operations, and one for the vector that is
// sent; the former from the environment's allocator. Source: ours.

#include <coppice/exec/closure.hpp>
#include <coppice/exec/internal/when_all_range_sender.hpp>

#include <vector>

namespace coppice::execution {

// Runs all senders concurrently, and waits for all. A stop from outside reaches all of them.
// Errors: what allocating throws, from connect.
struct when_all_range_t {
    template <sender Sndr>
    auto operator()(std::vector<Sndr> sndrs) const {
        using result = internal::when_all_range_sender<Sndr>;
        static_assert(pipeline_check<result>::done);
        return result(std::move(sndrs));
    }
};
inline constexpr when_all_range_t when_all_range{};

}  // namespace coppice::execution
