// Cookies of requests, and Set-Cookie fields.
#include <coppice/http/cookie.hpp>
#include <coppice/http/date.hpp>
#include <coppice/http/internal/scan.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t pair_bytes_max = 4096;       // RFC 6265bis section 5.6
constexpr std::size_t attribute_bytes_max = 1024;  // RFC 6265bis section 5.6
constexpr std::chrono::sys_seconds last_second{
    std::chrono::seconds(253'402'300'799)};  // the last second of the year 9999

bool is_cookie_name(std::string_view text) noexcept {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return is(c, token_byte); });
}

bool is_value_byte(char c) noexcept {
    return c > ' ' && c <= '~' && c != '"' && c != ',' && c != ';' && c != '\\';
}
bool is_path_byte(char c) noexcept {
    return c >= ' ' && c <= '~' && c != ';';
}

// Returns true for labels of letters, digits, '-', and '_', separated by dots.
bool is_domain(std::string_view text) noexcept {
    char before = '.';
    for (const char c : text) {
        const bool dot = c == '.';
        if (dot ? before == '.'
                : !(is(c, host_byte) && (is(c, digit_byte) || c == '-' || c == '_' ||
                                         (lower(c) >= 'a' && lower(c) <= 'z')))) {
            return false;
        }
        before = c;
    }
    return before != '.';
}

bool starts_ignoring_case(std::string_view text, std::string_view prefix) noexcept {
    return equals_ignoring_case(text.substr(0, prefix.size()), prefix);
}

void demand(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

void check(const set_cookie& c) {
    demand(is_cookie_name(c.name), "set_cookie: the name is no token");
    demand(std::ranges::all_of(c.value, is_value_byte),
           "set_cookie: the value has a byte that no cookie may have: encode it");
    demand(c.name.size() + c.value.size() <= pair_bytes_max,
           "set_cookie: name and value have more than 4096 bytes");
    demand(c.path.empty() || c.path.front() == '/', "set_cookie: the path does not begin with /");
    demand(std::ranges::all_of(c.path, is_path_byte) && !c.path.ends_with(' '),
           "set_cookie: the path has a byte that no attribute may have");
    demand(c.domain.empty() || is_domain(c.domain), "set_cookie: the domain is no host's name");
    demand(c.path.size() <= attribute_bytes_max && c.domain.size() <= attribute_bytes_max,
           "set_cookie: the path or the domain has more than 1024 bytes");
    demand(!c.expires || (c.expires->time_since_epoch().count() >= 0 && *c.expires <= last_second),
           "set_cookie: `expires` is not in the years 1970 to 9999");
    demand(c.secure || c.same_site != same_site_rule::none,
           "set_cookie: SameSite=None demands `secure`");
    demand(c.secure || !c.partitioned, "set_cookie: `partitioned` demands `secure`");
    demand(c.secure || !starts_ignoring_case(c.name, "__Secure-"),
           "set_cookie: a name with __Secure- demands `secure`");
    demand(
        !starts_ignoring_case(c.name, "__Host-") || (c.secure && c.domain.empty() && c.path == "/"),
        "set_cookie: a name with __Host- demands `secure`, the path / and no domain");
}

}  // namespace

void cookie_range::iterator::advance() noexcept {
    for (;;) {
        while (rest_.empty()) {
            if (fields_.empty()) {
                current_ = {};
                return;
            }
            if (equals_ignoring_case(fields_.front().name, "Cookie")) {
                rest_ = fields_.front().value;
            }
            fields_ = fields_.subspan(1);
        }
        const std::string_view item = rest_.substr(0, rest_.find(';'));
        rest_.remove_prefix(std::min(item.size() + 1, rest_.size()));
        const std::size_t equals = item.find('=');
        if (equals == item.npos) continue;
        const std::string_view name = trim(item.substr(0, equals));
        if (!is_cookie_name(name)) continue;
        current_ = {name, trim(item.substr(equals + 1))};
        return;
    }
}

std::optional<std::string_view> cookie(const request& r, std::string_view name) noexcept {
    for (const cookie_pair& each : cookies(r)) {
        if (each.name == name) return each.value;
    }
    return std::nullopt;
}

std::string set_cookie::field_value() const {
    check(*this);
    std::string text = name + '=' + value;
    if (!path.empty()) text.append("; Path=").append(path);
    if (!domain.empty()) text.append("; Domain=").append(domain);
    if (max_age) text.append("; Max-Age=").append(std::to_string(max_age->count()));
    if (expires)
        text.append("; Expires=").append(date_cache().at(expires->time_since_epoch().count()));
    if (secure) text.append("; Secure");
    if (http_only) text.append("; HttpOnly");
    switch (same_site) {
        case same_site_rule::strict:
            text.append("; SameSite=Strict");
            break;
        case same_site_rule::lax:
            text.append("; SameSite=Lax");
            break;
        case same_site_rule::none:
            text.append("; SameSite=None");
            break;
        case same_site_rule::unset:
            break;
    }
    if (partitioned) text.append("; Partitioned");
    return text;
}

response& add_cookie(response& answer, const set_cookie& c) {
    return answer.add("Set-Cookie", c.field_value());
}
response&& add_cookie(response&& answer, const set_cookie& c) {
    return std::move(add_cookie(answer, c));
}

response& expire_cookie(response& answer, set_cookie c) {
    c.value.clear();
    c.max_age = std::chrono::seconds(0);
    c.expires = std::chrono::sys_seconds();
    return add_cookie(answer, c);
}
response&& expire_cookie(response&& answer, set_cookie c) {
    return std::move(expire_cookie(answer, std::move(c)));
}

}  // namespace coppice::http
