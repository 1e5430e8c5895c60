// What server_options::route_metrics counts.
#include "connection.hpp"

#include <algorithm>
#include <bit>

namespace coppice::http {

using namespace internal;

void connection::count_route(const exchange& e, int status, const request_head* head) noexcept {
    route_counts& counts = *loop_.counts_of(head == nullptr ? route_match<handler>{} : e.match);
    const duration taken = std::max(loop_.context.now() - e.began, duration::zero());
    const auto nanoseconds = static_cast<std::uint64_t>(taken.count());
    // The smallest power of two that is not below the time, in microseconds begun.
    const std::uint64_t microseconds = (nanoseconds + 999) / 1000;
    const auto bound =
        static_cast<std::size_t>(microseconds <= 1 ? 0 : std::bit_width(microseconds - 1));
    // Relaxed: counts.
    counts.by_class[static_cast<std::size_t>(status / 100 - 1)].fetch_add(1, relaxed);
    counts.latency[std::min(bound, route_statistics::bounds)].fetch_add(1, relaxed);
    counts.latency_sum.fetch_add(nanoseconds, relaxed);
}

void serving_loop::add_route_counts(std::vector<route_statistics>& sums) const noexcept {
    for (std::size_t i = 0; i != sums.size(); ++i) {
        const route_counts& from = by_route[i];
        route_statistics& to = sums[i];
        // Relaxed: counts. The classes are read last, so that no bound has more than all of them.
        std::uint64_t up_to = 0;
        for (std::size_t b = 0; b != to.latency_up_to.size(); ++b) {
            up_to += from.latency[b].load(relaxed);
            to.latency_up_to[b] += up_to;
        }
        for (std::size_t c = 0; c != to.by_class.size(); ++c) {
            to.by_class[c] += from.by_class[c].load(relaxed);
        }
        to.latency_sum += from.latency_sum.load(relaxed);
        to.in_flight += from.in_flight.load(relaxed);
    }
}

}  // namespace coppice::http
