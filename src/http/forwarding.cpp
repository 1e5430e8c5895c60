// Reading Forwarded and X-Forwarded-For, from right to left.
#include <coppice/http/forwarding.hpp>
#include <coppice/http/internal/scan.hpp>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t node_bytes_max = 64;  // beyond the longest address with its port

std::string_view without_spaces(std::string_view text) noexcept {
    constexpr std::string_view spaces = " \t";
    const std::size_t first = text.find_first_not_of(spaces);
    if (first == text.npos) return {};
    return text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

bool is_escaped(std::string_view text, std::size_t at) noexcept {
    const std::size_t other = text.substr(0, at).find_last_not_of('\\');
    const std::size_t slashes = other == text.npos ? at : at - other - 1;
    return slashes % 2 != 0;
}

// Removes the last element of a list. From the right, since what a client has written is at the
// left: a quote that it leaves open hides no element of a proxy.
std::string_view take_last(std::string_view& list, char separator) noexcept {
    bool quoted = false;
    for (std::size_t i = list.size(); i-- != 0;) {
        if (list[i] == '"' && !is_escaped(list, i)) quoted = !quoted;
        if (list[i] != separator || quoted) continue;
        const std::string_view last = list.substr(i + 1);
        list = list.substr(0, i);
        return without_spaces(last);
    }
    const std::string_view only = list;
    list = {};
    return without_spaces(only);
}

std::optional<std::uint16_t> port_of(std::string_view text) noexcept {
    if (text.starts_with('_')) return std::uint16_t{0};  // obfuscated (RFC 7239 section 6.3)
    std::uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, port);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    return port;
}

// Reads "192.0.2.7", "192.0.2.7:80", "[::1]", "[::1]:80", or "::1".
std::optional<io::endpoint> node_of(std::string_view text) noexcept {
    const std::size_t colon = text.rfind(':');
    std::string_view address = text;
    std::uint16_t port = 0;
    const bool bracketed = text.starts_with('[');
    const bool has_port = bracketed ? colon != text.npos && colon != 0 && text[colon - 1] == ']'
                                    : colon != text.npos && text.find(':') == colon;
    if (has_port) {
        const std::optional<std::uint16_t> told = port_of(text.substr(colon + 1));
        if (!told) return std::nullopt;
        port = *told;
        address = text.substr(0, colon);
    }
    const result<io::endpoint> at = io::endpoint::parse(address, port);
    if (!at) return std::nullopt;
    return at.value();
}

std::optional<bool> secure_of(std::string_view proto) noexcept {
    if (equals_ignoring_case(proto, "https")) return true;
    if (equals_ignoring_case(proto, "http")) return false;
    return std::nullopt;
}

// A value of a parameter, without its quotes.
class plain_value {
public:
    // Returns false if the text is no value, or is longer than any that means something.
    bool read(std::string_view text) noexcept {
        size_ = 0;
        const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
        if (quoted) text = text.substr(1, text.size() - 2);
        for (std::size_t i = 0; i != text.size(); ++i) {
            const bool escaped = quoted && text[i] == '\\';
            if (escaped && ++i == text.size()) return false;
            if (!escaped && text[i] == '"') return false;
            if (size_ == bytes_.size()) return false;
            bytes_[size_++] = text[i];
        }
        return size_ != 0;
    }
    std::string_view text() const noexcept { return {bytes_.data(), size_}; }

private:
    std::array<char, node_bytes_max> bytes_;
    std::size_t size_ = 0;
};

// What one element says.
struct hop {
    std::optional<io::endpoint> address;
    std::optional<bool> is_secure;
};

// Returns nothing if the element is malformed.
std::optional<hop> read_forwarded(std::string_view element) noexcept {
    hop told;
    bool has_for = false, has_proto = false;
    while (!element.empty()) {
        const std::string_view pair = take_last(element, ';');
        if (pair.empty()) continue;
        const std::size_t equals = pair.find('=');
        if (equals == pair.npos) return std::nullopt;
        const std::string_view name = pair.substr(0, equals);
        bool& has = equals_ignoring_case(name, "for") ? has_for : has_proto;
        const bool is_for = &has == &has_for;
        if (!is_for && !equals_ignoring_case(name, "proto")) continue;
        plain_value value;
        if (has || !value.read(pair.substr(equals + 1))) return std::nullopt;
        has = true;
        if (!is_for) {
            told.is_secure = secure_of(value.text());
        } else {
            told.address = node_of(value.text());
            // RFC 7239 section 6: an IPv6 address is in brackets.
            const bool bare =
                told.address && told.address->is_v6() && !value.text().starts_with('[');
            if (bare) return std::nullopt;
        }
    }
    return told;
}

std::optional<bool> last_proto(const request_head& head) noexcept {
    const auto fields = head.fields();
    for (auto f = fields.rbegin(); f != fields.rend(); ++f) {
        if (!equals_ignoring_case(f->name, "X-Forwarded-Proto")) continue;
        std::string_view list = f->value;
        return secure_of(take_last(list, ','));
    }
    return std::nullopt;
}

}  // namespace

forwarded_client forwarded_from(const request_head& head, const forwarding& trusted,
                                const forwarded_client& last) noexcept {
    if (!trusted.from.contains(last.address)) return last;
    const bool standard = trusted.kind == forwarding_field::forwarded;
    const std::string_view name = standard ? "Forwarded" : "X-Forwarded-For";
    forwarded_client client = last;
    if (!standard) client.is_secure = last_proto(head).value_or(last.is_secure);
    const auto fields = head.fields();
    for (auto f = fields.rbegin(); f != fields.rend(); ++f) {
        if (!equals_ignoring_case(f->name, name)) continue;
        for (std::string_view list = f->value; !list.empty();) {
            const std::string_view element = take_last(list, ',');
            if (element.empty()) continue;  // RFC 9110 section 5.6.1.2
            const std::optional<hop> told =
                standard ? read_forwarded(element) : hop{node_of(element), std::nullopt};
            if (!told) return client;
            client.is_secure = told->is_secure.value_or(client.is_secure);
            if (!told->address) return client;
            client.address = *told->address;
            if (!trusted.from.contains(client.address)) return client;
        }
    }
    return client;
}

}  // namespace coppice::http
