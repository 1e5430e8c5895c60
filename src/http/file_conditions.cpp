// Entity tags, conditions and ranges of file_conditions.hpp.
#include "file_conditions.hpp"

#include <coppice/http/date.hpp>
#include <coppice/http/internal/scan.hpp>

#include <algorithm>
#include <optional>

namespace coppice::http {

using namespace internal;

namespace {

// Mixes a value, so that every bit of the result depends on every bit of it (the finalizer of
// MurmurHash3).
std::uint64_t mixed(std::uint64_t value) noexcept {
    value = (value ^ (value >> 33)) * 0xff51afd7ed558ccd;
    value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53;
    return value ^ (value >> 33);
}

void append_hex(std::uint64_t value, std::string& out) {
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[value >> shift & 15];
}

}  // namespace

std::string etag_of(const struct stat& file) {
    std::uint64_t one = 1;
    std::uint64_t other = 2;
    const auto add = [&](auto number) {
        one = mixed(one ^ static_cast<std::uint64_t>(number));
        other = mixed(other + static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15);
    };
    add(file.st_dev);
    add(file.st_ino);
    add(file.st_size);
    for (const timespec& time : {file.st_mtim, file.st_ctim}) {
        add(time.tv_sec);
        add(time.tv_nsec);
    }
    std::string text("\"");
    append_hex(one, text);
    append_hex(other, text);
    return text += '"';
}

std::int64_t modified_at(const struct stat& file, std::int64_t now) noexcept {
    constexpr std::int64_t end_of_dates = 253402300799;  // 9999-12-31 23:59:59
    const std::int64_t latest = std::clamp<std::int64_t>(now, 0, end_of_dates);
    return std::clamp<std::int64_t>(file.st_mtim.tv_sec, 0, latest);
}

namespace {

enum class comparison : bool { strong, weak };

// Returns true if a list of entity tags, or "*", has this strong tag (RFC 9110 section 8.8.3.2).
bool lists(std::string_view list, std::string_view etag, comparison how) {
    if (trim(list) == "*") return true;
    // The server's own tags have no commas, so members that a comma inside a tag cuts in two never
    // match.
    return !for_each_member(list, [&](std::string_view member) {
        if (how == comparison::weak && member.starts_with("W/")) member.remove_prefix(2);
        return member != etag;
    });
}

}  // namespace

int precondition(const request& r, std::string_view etag, std::int64_t modified, std::int64_t now) {
    const auto date = [&](const char* name) -> std::optional<std::int64_t> {
        const auto text = r.find(name);
        return text ? parse_date(*text, now) : std::nullopt;
    };
    if (const auto match = r.find("If-Match")) {
        if (!lists(*match, etag, comparison::strong)) return 412;
    } else if (const auto unmodified = date("If-Unmodified-Since")) {
        if (modified > *unmodified) return 412;
    }
    if (const auto none_match = r.find("If-None-Match")) {
        if (lists(*none_match, etag, comparison::weak)) return 304;
    } else if (const auto since = date("If-Modified-Since")) {
        if (modified <= *since) return 304;
    }
    return 200;
}

namespace {

// Reads "first-last", "first-", or "-size". Returns nothing if it is malformed.
std::optional<byte_range> read_range(std::string_view spec, std::uint64_t size) {
    const std::size_t dash = spec.find('-');
    if (dash == spec.npos) return std::nullopt;
    const auto last = parse_integer<std::uint64_t>(spec.substr(dash + 1));
    if (dash == 0) {  // the last bytes
        if (!last) return std::nullopt;
        const std::uint64_t wanted = std::min(*last, size);
        return byte_range{size - wanted, wanted};
    }
    const auto first = parse_integer<std::uint64_t>(spec.substr(0, dash));
    if (!first || (!last && dash + 1 != spec.size()) || (last && *last < *first)) {
        return std::nullopt;
    }
    if (*first >= size) return byte_range{0, 0};
    return byte_range{*first, std::min(last.value_or(size - 1), size - 1) - *first + 1};
}

constexpr std::size_t ranges_max = 16;

}  // namespace

selection select(const request& r, std::uint64_t size, std::string_view etag, std::int64_t modified,
                 std::int64_t now) {
    const selection whole{200, {}};
    const auto range = r.find("Range");
    if (!range || r.verb() != method::get) return whole;
    if (const auto condition = r.find("If-Range")) {
        const bool same = condition->starts_with('"') || condition->starts_with("W/")
                              ? *condition == etag
                              : parse_date(*condition, now) == modified;
        if (!same) return whole;
    }
    if (!equals_ignoring_case(range->substr(0, 6), "bytes=")) return whole;
    selection chosen{206, {}};
    std::size_t asked = 0;
    const bool good = for_each_member(range->substr(6), [&](std::string_view member) {
        const std::optional<byte_range> part = read_range(member, size);
        if (!part || ++asked > ranges_max) return false;
        if (part->size == 0) return true;  // beyond the end; only the other ranges count
        for (const byte_range& p : chosen.parts) {
            if (part->first < p.first + p.size && p.first < part->first + part->size) return false;
        }
        chosen.parts.push_back(*part);
        return true;
    });
    if (!good || asked == 0) return whole;
    if (chosen.parts.empty()) chosen.status = 416;
    return chosen;
}

}  // namespace coppice::http
