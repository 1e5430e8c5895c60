// The state aimed of a client's request: where it goes, by its URL and by redirects.
#include <coppice/http/internal/client_call.hpp>
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/url.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client_connection.hpp"
#include "lines.hpp"

namespace coppice::http::internal {

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
    state_ = state::aimed;
    const client_options& o = client_.options;
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
    const bool secure = at.scheme() == "https";
    if (secure && client_.options.security == nullptr) {
        fail(std::make_error_code(std::errc::protocol_not_supported),
             "http request: https needs client_options::security, a tls::client_context");
    }
    proven_ = secure ? at.host() : std::string_view();
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
    if (request_.redirects_max.value_or(client_.options.redirects_max) == 0) return false;
    if (!becomes_get() && !without_body_ && request_.source != nullptr) return false;
    return answer_.find("Location").has_value();
}

// Aims at the target of the redirect.
void client_call::follow() {
    if (redirects_left_ == 0) {
        fail(std::make_error_code(std::errc::too_many_links),
             "http request: more redirects than redirects_max allows");
    }
    state_ = state::aimed;
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
    if (from.scheme() == "https" && resolved->scheme() == "http") {
        fail(std::make_error_code(std::errc::protocol_not_supported),
             "http request: a redirect from https to http is not followed");
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

}  // namespace coppice::http::internal
