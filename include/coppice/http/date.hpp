// Converts between HTTP dates and seconds since 1970; for Date, Last-Modified, and If-*.
#pragma once

#include <coppice/base/version.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace coppice::http {

// The value of the Date field, formatted again only when the second changes (RFC 9110 section
// 5.6.7).
class date_cache {
public:
    // Returns the time as "Sun, 06 Nov 1994 08:49:37 GMT". Errors: times outside the years 1970 to
    // 9999 stop the process. Lifetime: the view is valid until the next call.
    std::string_view at(std::int64_t unix_seconds) noexcept;
    // Returns what at() returned last. Requires an earlier call of at(). Lifetime: as for at().
    std::string_view last() const noexcept { return {text_.data(), text_.size()}; }

private:
    std::int64_t second_ = -1;
    std::array<char, 29> text_;
};

// Returns the second that a date in one of three forms names (RFC 9110 section 5.6.7): IMF-fixdate,
// the obsolete form of RFC 850, and the form of asctime. Returns nothing for any other text and for
// a day that does not exist. The name of the day is not checked. `now` decides the century of
// two-digit years.
std::optional<std::int64_t> parse_date(std::string_view text, std::int64_t now) noexcept;

}  // namespace coppice::http
