// Responses: their parts, checked as they are added, and their bytes.
#include <coppice/base/check.hpp>
#include <coppice/http/message.hpp>
#include <coppice/http/scan.hpp>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <stdexcept>

namespace coppice::http {

namespace {

constexpr static_text plain_text = "text/plain; charset=utf-8";
constexpr static_text html_text = "text/html; charset=utf-8";
constexpr static_text json_text = "application/json";

bool is_token(std::string_view text) noexcept {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return is(c, token_byte); });
}

bool is_value(std::string_view text) noexcept {
    return trim(text).size() == text.size() &&
           std::ranges::all_of(text, [](char c) { return is(c, value_byte); });
}

bool written_by_serialize(std::string_view name) noexcept {
    constexpr std::string_view names[] = {"Content-Length", "Transfer-Encoding", "Connection",
                                          "Date", "Content-Type"};
    return std::ranges::any_of(
        names, [&](std::string_view known) { return equals_ignoring_case(name, known); });
}

// Writes pieces behind each other into memory that the caller has sized.
class writer {
public:
    explicit writer(char* to) noexcept : to_(to) {}
    writer& operator<<(std::string_view text) noexcept {
        std::memcpy(to_, text.data(), text.size());
        to_ += text.size();
        return *this;
    }
    void two_digits(int number) noexcept {
        *to_++ = static_cast<char>('0' + number / 10);
        *to_++ = static_cast<char>('0' + number % 10);
    }
    const char* end() const noexcept { return to_; }

private:
    char* to_;
};

struct civil_date {
    int year, month, day;  // month and day from 1
};

// The proleptic Gregorian date of a day counted from 1970-01-01. The year begins in March, so that
// the leap day is its last; 400 years have 146,097 days.
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

}  // namespace

std::optional<std::string_view> path_parameters::find(std::string_view name) const noexcept {
    for (const path_parameter& p : *this) {
        if (p.name == name) return p.raw;
    }
    return std::nullopt;
}

void path_parameters::push_back(path_parameter parameter) noexcept {
    COPPICE_CHECK(count_ < capacity, "a route has too many parameters");
    items_[count_++] = parameter;
}

response::response(int status) noexcept : status_(status) {
    COPPICE_CHECK(status >= 100 && status <= 599, "a response's status is out of range");
}

response response::text(static_text body, int status) noexcept {
    response result(status);
    result.type_ = plain_text;
    result.static_ = body.view();
    return result;
}

response response::html(static_text body, int status) noexcept {
    response result = text(body, status);
    result.type_ = html_text;
    return result;
}

response response::json(static_text body, int status) noexcept {
    response result = text(body, status);
    result.type_ = json_text;
    return result;
}

response response::status(int code, static_text reason) noexcept {
    if (bodyless(code)) return response(code);
    return text(reason.view().empty() ? static_text::promised(reason_phrase(code)) : reason, code);
}

response& response::body(static_text text) & noexcept {
    owns_ = false;
    static_ = text.view();
    return *this;
}

response& response::content_type(static_text type) & {
    if (!is_value(type.view())) throw std::invalid_argument("a media type is no field value");
    type_ = type;
    return *this;
}

response& response::add(std::string_view name, std::string_view value) & {
    if (!is_token(name)) throw std::invalid_argument("a field's name is no token");
    if (!is_value(value)) throw std::invalid_argument("a field's value has an invalid byte");
    if (written_by_serialize(name)) {
        throw std::invalid_argument("this field is written by serialize()");
    }
    fields_.reserve(fields_.size() + name.size() + value.size() + 4);
    fields_.append(name).append(": ").append(value).append("\r\n");
    return *this;
}

response& response::close() & noexcept {
    close_ = true;
    return *this;
}

// RFC 9110 section 15, and 428, 429, 431, 511 from RFC 6585.
std::string_view reason_phrase(int status) noexcept {
    switch (status) {
        case 100:
            return "Continue";
        case 101:
            return "Switching Protocols";
        case 200:
            return "OK";
        case 201:
            return "Created";
        case 202:
            return "Accepted";
        case 203:
            return "Non-Authoritative Information";
        case 204:
            return "No Content";
        case 205:
            return "Reset Content";
        case 206:
            return "Partial Content";
        case 300:
            return "Multiple Choices";
        case 301:
            return "Moved Permanently";
        case 302:
            return "Found";
        case 303:
            return "See Other";
        case 304:
            return "Not Modified";
        case 305:
            return "Use Proxy";
        case 307:
            return "Temporary Redirect";
        case 308:
            return "Permanent Redirect";
        case 400:
            return "Bad Request";
        case 401:
            return "Unauthorized";
        case 402:
            return "Payment Required";
        case 403:
            return "Forbidden";
        case 404:
            return "Not Found";
        case 405:
            return "Method Not Allowed";
        case 406:
            return "Not Acceptable";
        case 407:
            return "Proxy Authentication Required";
        case 408:
            return "Request Timeout";
        case 409:
            return "Conflict";
        case 410:
            return "Gone";
        case 411:
            return "Length Required";
        case 412:
            return "Precondition Failed";
        case 413:
            return "Content Too Large";
        case 414:
            return "URI Too Long";
        case 415:
            return "Unsupported Media Type";
        case 416:
            return "Range Not Satisfiable";
        case 417:
            return "Expectation Failed";
        case 421:
            return "Misdirected Request";
        case 422:
            return "Unprocessable Content";
        case 426:
            return "Upgrade Required";
        case 428:
            return "Precondition Required";
        case 429:
            return "Too Many Requests";
        case 431:
            return "Request Header Fields Too Large";
        case 500:
            return "Internal Server Error";
        case 501:
            return "Not Implemented";
        case 502:
            return "Bad Gateway";
        case 503:
            return "Service Unavailable";
        case 504:
            return "Gateway Timeout";
        case 505:
            return "HTTP Version Not Supported";
        case 511:
            return "Network Authentication Required";
        default:
            return "";
    }
}

bool bodyless(int status) noexcept {
    return status < 200 || status == 204 || status == 304;
}

void serialize_head(const response& answer, const serialize_options& options, std::string& out) {
    constexpr std::size_t numbers = 3 + 20;  // a status and a length
    constexpr std::size_t constants = 160;   // more than all that is spelled out below
    const std::string_view reason = reason_phrase(answer.status());
    const std::size_t before = out.size();
    out.resize(before + constants + numbers + reason.size() + options.date.size() +
               answer.content_type().size() + answer.fields().size());

    char number[20];
    const auto digits = [&](std::size_t value) {
        return std::string_view(number, std::to_chars(number, number + 20, value).ptr);
    };
    writer to(out.data() + before);
    to << "HTTP/1.1 " << digits(static_cast<std::size_t>(answer.status())) << " " << reason;
    if (!options.date.empty()) to << "\r\nDate: " << options.date;
    if (!bodyless(answer.status())) {
        if (!answer.content_type().empty()) to << "\r\nContent-Type: " << answer.content_type();
        to << "\r\nContent-Length: " << digits(answer.body().size());
    }
    if (answer.closes() || !options.keep_alive) {
        to << "\r\nConnection: close";
    } else if (options.minor_version == 0) {
        to << "\r\nConnection: keep-alive";
    }
    to << "\r\n" << answer.fields() << "\r\n";
    out.resize(static_cast<std::size_t>(to.end() - out.data()));
}

void serialize(const response& answer, const serialize_options& options, std::string& out) {
    serialize_head(answer, options, out);
    if (!options.head_only && !bodyless(answer.status())) out.append(answer.body());
}

std::string_view date_cache::at(std::int64_t unix_seconds) noexcept {
    if (unix_seconds != second_) {
        COPPICE_CHECK(unix_seconds >= 0 && unix_seconds < 253402300800, "a date is out of range");
        second_ = unix_seconds;
        constexpr std::string_view day_names = "ThuFriSatSunMonTueWed";  // day 0 was a Thursday
        constexpr std::string_view month_names = "JanFebMarAprMayJunJulAugSepOctNovDec";
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
    return {text_.data(), text_.size()};
}

}  // namespace coppice::http
