// The state pausing of a client's request: which requests are retried, and when.
#include <coppice/base/saturating.hpp>
#include <coppice/http/date.hpp>
#include <coppice/http/internal/client_call.hpp>
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/uri.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "client_connection.hpp"
#include "idempotent.hpp"

namespace coppice::http::internal {

bool client_call::may_repeat() const noexcept {
    return retries_left_ != 0 && !stopped() && idempotent(method_) &&
           (without_body_ || request_.source == nullptr);
}

bool client_call::answer_repeats() {
    constexpr int passing[] = {429, 502, 503, 504};
    if (!may_repeat() || std::ranges::find(passing, answer_.status()) == std::end(passing)) {
        return false;
    }
    const std::optional<duration> asked = retry_after();
    asked_delay_ = asked.value_or(duration(0));
    if (asked_delay_ > client_.options.retry_after_max) return false;
    return before_deadline(std::max(asked_delay_, delay_));
}

// Reads Retry-After: seconds, or a date (RFC 9110 section 10.2.3). Returns nothing for anything
// else.
std::optional<duration> client_call::retry_after() const {
    const std::optional<std::string_view> value = answer_.find("Retry-After");
    if (!value) return std::nullopt;
    const auto most = std::chrono::duration_cast<std::chrono::seconds>(duration::max()).count();
    if (std::ranges::all_of(*value, [](char c) { return is(c, digit_byte); }) && !value->empty()) {
        const auto seconds = parse_integer<std::uint64_t>(*value);
        if (!seconds || *seconds > static_cast<std::uint64_t>(most)) return duration::max();
        return std::chrono::seconds(*seconds);
    }
    const auto now = std::chrono::duration_cast<std::chrono::seconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count();
    const std::optional<std::int64_t> at = parse_date(*value, now);
    if (!at) return std::nullopt;
    return std::chrono::seconds(std::clamp<std::int64_t>(*at - now, 0, most));
}

bool client_call::before_deadline(duration time) const noexcept {
    const time_point then = saturating_add(loop_.now(), time);
    const bool in_total = end_ == time_point::max() || then < end_;
    return in_total &&
           (deadline_ == execution::instant::never() || execution::instant(then) < deadline_);
}

// Returns a time between half of the delay and all of it, so that clients that failed together do
// not retry together.
duration client_call::next_delay() noexcept {
    const duration half = delay_ / 2;
    const auto span = static_cast<std::uint64_t>((delay_ - half).count()) + 1;
    const duration chosen = half + duration(static_cast<std::int64_t>(client_.random() % span));
    delay_ = std::min(saturating_add(delay_, delay_), client_.options.retry_delay_max);
    return chosen;
}

// Waits for the delay before a retry.
task<> client_call::pause(duration time) {
    state_ = state::pausing;
    co_await wait(time);
    state_ = state::aimed;
}

}  // namespace coppice::http::internal
