// Calendar arithmetic and the forms of http/date.hpp.
#include <coppice/base/internal/check.hpp>
#include <coppice/http/date.hpp>
#include <coppice/http/uri.hpp>

#include "writer.hpp"

namespace coppice::http {

namespace {

constexpr std::string_view month_names = "JanFebMarAprMayJunJulAugSepOctNovDec";

struct civil_date {
    int year, month, day;  // month and day from 1
};

// Returns the proleptic Gregorian date of a day, counted from 1970-01-01. The year begins in March
// here, so that the leap day is its last day; 400 years have 146,097 days.
civil_date to_date(int days) noexcept {
    const int shifted = days + 719468;  // from 0000-03-01
    const int era = shifted / 146097;
    const int day_of_era = shifted % 146097;
    const int year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    const int day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    const int march_month = (5 * day_of_year + 2) / 153;
    const int month = march_month < 10 ? march_month + 3 : march_month - 9;
    return {era * 400 + year_of_era + (month <= 2 ? 1 : 0), month,
            day_of_year - (153 * march_month + 2) / 5 + 1};
}

// Returns the day, counted from 1970-01-01, of a date that exists: the inverse of to_date().
std::int64_t to_days(const civil_date& date) noexcept {
    const int year = date.year - (date.month <= 2 ? 1 : 0);
    const int era = year / 400;
    const int year_of_era = year % 400;
    const int march_month = (date.month + 9) % 12;
    const int day_of_year = (153 * march_month + 2) / 5 + date.day - 1;
    const int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return std::int64_t{era} * 146097 + day_of_era - 719468;
}

// Reads a date from its front, piece by piece. After a piece that does not match, everything fails.
class reader {
public:
    explicit reader(std::string_view text) noexcept : text_(text) {}
    bool finished() const noexcept { return good_ && text_.empty(); }
    reader& text(std::string_view expected) noexcept {
        good_ = good_ && text_.starts_with(expected);
        if (good_) text_.remove_prefix(expected.size());
        return *this;
    }
    // Reads exactly `size` digits. With `spaced`, a space may stand for a first zero.
    reader& number(std::size_t size, int& value, bool spaced = false) noexcept {
        if (!good_ || text_.size() < size) return fail();
        std::string_view digits = text_.substr(0, size);
        if (spaced && digits.starts_with(' ')) digits.remove_prefix(1);
        for (const char c : digits) {
            if (c < '0' || c > '9') return fail();
        }
        value = parse_integer<int>(digits).value_or(0);
        text_.remove_prefix(size);
        return *this;
    }
    reader& month(int& value) noexcept {
        if (!good_ || text_.size() < 3) return fail();
        const std::size_t at = month_names.find(text_.substr(0, 3));
        if (at == month_names.npos || at % 3 != 0) return fail();
        value = static_cast<int>(at / 3) + 1;
        text_.remove_prefix(3);
        return *this;
    }
    // Reads the name of a day.
    reader& day_name(bool whole) noexcept {
        for (const std::string_view name :
             {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"}) {
            const std::string_view part = whole ? name : name.substr(0, 3);
            if (good_ && text_.starts_with(part)) return text(part);
        }
        return fail();
    }
    reader& time(int& seconds) noexcept {
        int hour = 0, minute = 0, second = 0;
        number(2, hour).text(":").number(2, minute).text(":").number(2, second);
        // A leap second is read as the next second.
        if (hour > 23 || minute > 59 || second > 60) return fail();
        seconds = hour * 3600 + minute * 60 + second;
        return *this;
    }

private:
    reader& fail() noexcept {
        good_ = false;
        return *this;
    }
    std::string_view text_;
    bool good_ = true;
};

}  // namespace

std::optional<std::int64_t> parse_date(std::string_view text, std::int64_t now) noexcept {
    civil_date date{0, 0, 0};
    int seconds = 0;
    reader fixdate(text);
    fixdate.day_name(false).text(", ").number(2, date.day).text(" ").month(date.month);
    fixdate.text(" ").number(4, date.year).text(" ").time(seconds).text(" GMT");
    if (!fixdate.finished()) {
        reader rfc850(text);
        rfc850.day_name(true).text(", ").number(2, date.day).text("-").month(date.month);
        rfc850.text("-").number(2, date.year).text(" ").time(seconds).text(" GMT");
        if (rfc850.finished()) {
            // A date more than 50 years ahead means the last past year with these digits.
            const int this_year = to_date(static_cast<int>(now / 86400)).year;
            date.year += this_year - this_year % 100;
            if (date.year > this_year + 50) date.year -= 100;
        } else {
            reader asctime(text);
            asctime.day_name(false).text(" ").month(date.month).text(" ");
            asctime.number(2, date.day, true).text(" ").time(seconds).text(" ");
            asctime.number(4, date.year);
            if (!asctime.finished()) return std::nullopt;
        }
    }
    if (date.year < 1 || date.day < 1) return std::nullopt;
    const std::int64_t days = to_days(date);
    // The 31st of a short month is converted to another day.
    if (days >= 0 && to_date(static_cast<int>(days)).day != date.day) return std::nullopt;
    return days * 86400 + seconds;
}

std::string_view date_cache::at(std::int64_t unix_seconds) noexcept {
    if (unix_seconds != second_) {
        COPPICE_CHECK(unix_seconds >= 0 && unix_seconds < 253402300800, "a date is out of range");
        second_ = unix_seconds;
        constexpr std::string_view day_names = "ThuFriSatSunMonTueWed";  // day 0 was a Thursday
        const int days = static_cast<int>(unix_seconds / 86400);
        const int second = static_cast<int>(unix_seconds % 86400);
        const civil_date date = to_date(days);
        writer to(text_.data());
        to << day_names.substr(static_cast<std::size_t>(days % 7) * 3, 3) << ", ";
        to.two_digits(date.day);
        to << " " << month_names.substr(static_cast<std::size_t>(date.month - 1) * 3, 3) << " ";
        to.two_digits(date.year / 100);
        to.two_digits(date.year % 100);
        to << " ";
        to.two_digits(second / 3600);
        to << ":";
        to.two_digits(second / 60 % 60);
        to << ":";
        to.two_digits(second % 60);
        to << " GMT";
    }
    return last();
}

}  // namespace coppice::http
