// Parsing and printing of io/authority.hpp.
#include <coppice/io/authority.hpp>

#include <coppice/io/endpoint.hpp>

#include <net/if.h>
#include <algorithm>
#include <cstddef>

#include "port.hpp"

namespace coppice::io {

using namespace internal;

namespace {

constexpr std::size_t name_max = 253, label_max = 63;

bool is_digit(char c) noexcept {
    return c >= '0' && c <= '9';
}
bool is_letter(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool is_hex(char c) noexcept {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
bool is_in_names(char c) noexcept {
    return is_digit(c) || is_letter(c) || c == '-' || c == '_';
}

bool is_number(std::string_view label) noexcept {
    const bool hex = label.size() >= 2 && label[0] == '0' && (label[1] | 0x20) == 'x';
    if (hex) return std::all_of(label.begin() + 2, label.end(), is_hex);
    return std::all_of(label.begin(), label.end(), is_digit);
}

bool is_label(std::string_view label) noexcept {
    return !label.empty() && label.size() <= label_max && label.front() != '-' &&
           label.back() != '-' && std::all_of(label.begin(), label.end(), is_in_names);
}

bool is_name(std::string_view name) noexcept {
    if (name.ends_with('.')) name.remove_suffix(1);
    if (name.size() > name_max) return false;
    for (;;) {
        const std::size_t dot = name.find('.');
        const std::string_view label = name.substr(0, dot);
        if (!is_label(label)) return false;
        if (dot == name.npos) return !is_number(label);
        name.remove_prefix(dot + 1);
    }
}

// Returns true for an IPv6 address, optionally followed by a percent sign and the name or number of
// an interface.
bool is_v6(std::string_view address) noexcept {
    const std::size_t percent = address.find('%');
    if (percent != address.npos) {
        const std::string_view zone = address.substr(percent + 1);
        const auto fits = [](char c) { return is_in_names(c) || c == '.'; };
        if (zone.empty() || zone.size() >= IF_NAMESIZE) return false;
        if (!std::all_of(zone.begin(), zone.end(), fits)) return false;
        address = address.substr(0, percent);
    }
    const result<endpoint> parsed = endpoint::parse(address, 0);
    return parsed && parsed.value().is_v6() && address.front() != '[';
}

}  // namespace

result<authority> authority::parse(std::string_view text) noexcept {
    const std::size_t colon = text.rfind(':');
    if (colon == text.npos) return std::errc::invalid_argument;
    std::string_view host = text.substr(0, colon);
    const result<std::uint16_t> port = parse_port(text.substr(colon + 1));
    if (!port) return port.error();
    const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (bracketed) host = host.substr(1, host.size() - 2);
    const bool good = bracketed ? is_v6(host) : is_name(host) || endpoint::parse(host, 0);
    if (!good || (!bracketed && host.find(':') != host.npos)) return std::errc::invalid_argument;
    return authority{host, port.value()};
}

std::string authority::to_string() const {
    const bool bare = host.find(':') == host.npos;
    return std::string(bare ? "" : "[").append(host) + (bare ? ":" : "]:") + std::to_string(port);
}

}  // namespace coppice::io
