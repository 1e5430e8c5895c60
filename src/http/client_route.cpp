// Where a client's request goes: URLs, redirects, retries, and turns at a host with a limit.
#include <coppice/base/saturating.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/date.hpp>
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/uri.hpp>

#include <algorithm>
#include <chrono>
#include <utility>

#include "idempotent.hpp"
#include "lines.hpp"

namespace coppice::http {

using namespace internal;

namespace {

bool is_credential(std::string_view name) noexcept {
    constexpr std::string_view names[] = {"Authorization", "Cookie", "Proxy-Authorization"};
    return std::ranges::any_of(names, [&](auto n) { return equals_ignoring_case(name, n); });
}
bool describes_a_body(std::string_view name) noexcept {
    constexpr std::string_view beginning = "content-";
    return equals_ignoring_case(name.substr(0, beginning.size()), beginning);
}

}  // namespace

// Aims at what the caller has asked for.
void client_call::aim() {
    const client_options& o = client_.options_;
    redirects_left_ = request_.redirects_max.value_or(o.redirects_max);
    retries_left_ = request_.retries.value_or(o.retries);
    delay_ = o.retry_delay;
    method_ = request_.method;
    fields_ = request_.fields;
    if (request_.url.empty()) {
        to_ = &request_.to;
        target_ = request_.target;
        host_field_ = request_.host;
        return;
    }
    if (request_.target != "/" || !request_.host.empty()) {
        fail(std::make_error_code(std::errc::invalid_argument),
             "http request: a request with a URL must not have a target or host of its own");
    }
    route_ = std::make_unique<client_route>(url(request_.url));
    route_->to = request_.to;
    aim_at(route_->url);
}

// Aims at a URL; `at` is the route's.
void client_call::aim_at(const url& at) {
    if (at.scheme() != "http") {
        fail(std::make_error_code(std::errc::protocol_not_supported),
             "http request: https is not supported, there is no TLS; use http");
    }
    host_field_ = at.authority();
    target_ = at.target();
    port_ = at.port();
    if (route_->to.family() == AF_UNSPEC) {
        if (auto literal = io::endpoint::parse(at.host(), at.port())) route_->to = *literal;
    }
    const bool looked_up = route_->to.family() == AF_UNSPEC;
    to_ = looked_up ? nullptr : &route_->to;
    name_ = looked_up ? at.host() : std::string_view();
}

// Returns the base of relative references: the target URI (RFC 9110 section 7.1). A target in
// absolute form is one, and "*" is an empty path. Errors: std::errc::invalid_argument.
url client_call::current_url() const {
    if (route_ != nullptr) return route_->url;
    const bool asterisk = target_ == "*";
    if (!asterisk && !target_.starts_with('/')) return url(target_);
    std::string text("http://");
    if (!host_field_.empty()) {
        text.append(host_field_);
    } else if (to_->is_unix()) {
        text.append("localhost");
    } else {
        text.append(to_->to_string());
    }
    return url(asterisk ? text : text.append(target_));
}

// Decides what to do with the answer whose head has arrived.
client_call::outcome client_call::judge() {
    if (answer_repeats()) return outcome::failed;
    return answer_redirects() ? outcome::redirected : outcome::answered;
}

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
    if (asked_delay_ > client_.options_.retry_after_max) return false;
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
    delay_ = std::min(saturating_add(delay_, delay_), client_.options_.retry_delay_max);
    return chosen;
}

// Returns true if the redirect asks for a GET without a body, instead of the same request.
bool client_call::becomes_get() const noexcept {
    const int status = answer_.status();
    if (status == 303) return method_ != "GET" && method_ != "HEAD";
    return (status == 301 || status == 302) && method_ == "POST";
}

// Returns true if the answer is a redirect that can be followed. Without a Location there is no
// target, and a streamed body cannot be sent again.
bool client_call::answer_redirects() {
    constexpr int redirects[] = {301, 302, 303, 307, 308};
    if (std::ranges::find(redirects, answer_.status()) == std::end(redirects)) return false;
    if (request_.redirects_max.value_or(client_.options_.redirects_max) == 0) return false;
    if (!becomes_get() && !without_body_ && request_.source != nullptr) return false;
    return answer_.find("Location").has_value();
}

// Aims at the target of the redirect.
void client_call::follow() {
    if (redirects_left_ == 0) {
        fail(std::make_error_code(std::errc::too_many_links),
             "http request: more redirects than redirects_max allows");
    }
    --redirects_left_;
    const std::vector<std::string_view> locations = answer_.find_all("Location");
    const url from = current_url();
    std::string location(locations.front());
    // A Location without a fragment inherits that of the requested URL (RFC 9110 section 10.2.2).
    if (location.find('#') == location.npos && !from.fragment().empty()) {
        location.append("#").append(from.fragment());
    }
    auto resolved = from.resolve(location);
    if (locations.size() != 1 || !resolved) {
        fail(std::make_error_code(std::errc::bad_message),
             "http request: a redirect's Location is not an http URL");
    }
    const bool get = becomes_get();
    const bool other_origin = !from.same_origin(*resolved);
    auto next = std::make_unique<client_route>(std::move(*resolved));
    if (!other_origin) next->to = route_ != nullptr ? route_->to : request_.to;
    next->fields = remaining_fields(other_origin, get);
    route_ = std::move(next);
    fields_ = route_->fields;
    if (get) {
        method_ = "GET";
        without_body_ = true;
    }
    aim_at(route_->url);
}

std::string client_call::remaining_fields(bool other_origin, bool without_body) const {
    std::string left;
    for_each_line(fields_, [&](const field& f) {
        if (other_origin && is_credential(f.name)) return;
        if (without_body && describes_a_body(f.name)) return;
        left.append(f.name).append(": ").append(f.value).append("\r\n");
    });
    return left;
}

// Waits. Errors: operation_canceled if the request was stopped by its own token.
task<> client_call::wait(duration time) {
    const auto passing = [](io::context& loop, duration t) -> task<> {
        co_await loop.get_scheduler().schedule_after(t);
    };
    const bool ended = co_await until_interrupted(passing(loop_, time));
    if (stopped_) fail(std::make_error_code(std::errc::operation_canceled), "http request");
    // A call that was admitted continues, although its wait was ended for that.
    if (!ended && host_ == nullptr) co_await execution::just_stopped();
}

// Takes a place for a connection at the host, or waits for one.
task<> client_call::admit() {
    client_hosts& hosts = *client_.hosts_;
    std::string key = name_.empty() ? to_->to_string() : std::string("//").append(name_);
    if (!name_.empty()) key.append(":").append(std::to_string(port_));
    const auto found = hosts.by_name.try_emplace(std::move(key)).first;
    client_host& host = found->second;
    host.all = &hosts;
    host.name = &found->first;
    if (host.in_use < hosts.in_use_max) {
        ++host.in_use;
        host_ = &host;
        co_return;
    }
    client_waiter self(*this);
    host.waiting.push_back(self);
    const scope_exit leave([&] {
        if (self.linked()) host.waiting.erase(self);
    });
    while (host_ == nullptr) co_await wait(duration::max());
}

// Passes the place to the next waiter, whose task continues in a later turn.
void client_call::release() noexcept {
    if (host_ == nullptr) return;
    client_host& host = *std::exchange(host_, nullptr);
    if (client_waiter* const next = host.waiting.pop_front()) {
        next->call->host_ = &host;
        // nullptr: the waiter is leaving by itself, and gives the place back.
        if (next->call->waiting_ != nullptr) next->call->waiting_->request_stop();
        return;
    }
    if (--host.in_use != 0) return;
    client_hosts& all = *host.all;
    if (all.by_name.size() > all.hosts_max) all.by_name.erase(all.by_name.find(*host.name));
}

}  // namespace coppice::http
