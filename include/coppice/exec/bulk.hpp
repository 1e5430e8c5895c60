// bulk, bulk_chunked, bulk_unchunked: call a function for every index below a bound.
#pragma once
// Each takes a sender, an execution policy, the bound, and the function:
// `sndr | bulk(par, 100, [](int i, auto&... values) {...})`. The function gets lvalues of the
// sender's values, which are sent on afterwards.
//
// By default the calls happen one after the other, where the child completes. A scheduler with many
// agents customizes bulk_chunked and bulk_unchunked (parallel_scheduler.hpp). bulk becomes
// bulk_chunked when it is connected. If the function throws, the remaining calls are skipped and
// the exception is the error. A bound of zero or less calls nothing. Source: [exec.bulk].

#include <coppice/exec/internal/bulk_sender.hpp>
#include <coppice/exec/internal/task_scheduler_bulk.hpp>

namespace coppice::execution {

// Calls f(begin, end, values...) for ranges that together are [0, shape).
struct bulk_chunked_t : internal::bulk_adaptor<bulk_chunked_t> {};
// Calls f(i, values...) for every i in [0, shape), each on an agent of its own if there are
// several.
struct bulk_unchunked_t : internal::bulk_adaptor<bulk_unchunked_t> {};
inline constexpr bulk_chunked_t bulk_chunked{};
inline constexpr bulk_unchunked_t bulk_unchunked{};

// Calls f(i, values...) for every i in [0, shape).
struct bulk_t : internal::bulk_adaptor<bulk_t> {
    template <internal::sender_for<bulk_t> Sndr, class Env>
        requires internal::bulk_movable<Sndr>
    constexpr auto transform_sender(set_value_t, Sndr&& sndr, const Env&) const {
        const auto& data = sndr.data;
        using F = std::decay_t<decltype((data.f))>;
        return bulk_chunked(
            static_cast<Sndr&&>(sndr).child, data.policy, data.shape,
            internal::call_each<F>(internal::construct_each(), static_cast<Sndr&&>(sndr).data.f));
    }
};
inline constexpr bulk_t bulk{};

}  // namespace coppice::execution
