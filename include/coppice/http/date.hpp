// HTTP dates as seconds since 1970, both ways; used for Date, Last-Modified and If-*.
#pragma once

#include <coppice/base/version.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace coppice::http {

// The Date field's value, formatted when the second changes (RFC 9110 section 5.6.7).
class date_cache {
public:
    // "Sun, 06 Nov 1994 08:49:37 GMT". Years 1970 to 9999; other times stop the process.
    // Lifetime: the view is valid until the next call.
    std::string_view at(std::int64_t unix_seconds) noexcept;
    // What at() gave last; it has been called. Lifetime: as said there.
    std::string_view last() const noexcept { return {text_.data(), text_.size()}; }

private:
    std::int64_t second_ = -1;
    std::array<char, 29> text_;
};

// The second that a date of one of the three forms names (RFC 9110 section 5.6.7): IMF-fixdate, the
// obsolete one of RFC 850, and asctime's. Nothing for any other text, and for a day that there is
// not; the name of the day is not compared. `now` is where two-digit years are counted from.
std::optional<std::int64_t> parse_date(std::string_view text, std::int64_t now) noexcept;

}  // namespace coppice::http
