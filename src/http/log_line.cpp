// The forms of a line of the access log; see access_log.hpp.
#include "log_line.hpp"

#include <coppice/base/internal/json_string.hpp>

#include "hexadecimal.hpp"

#include <array>
#include <charconv>
#include <cstddef>

namespace coppice::http {

using namespace internal;

namespace {

void append_number(std::uint64_t value, std::string& out) {
    std::array<char, 20> digits;
    const char* const end = std::to_chars(digits.begin(), digits.end(), value).ptr;
    out.append(digits.cbegin(), end);
}

void append_seconds(std::uint64_t microseconds, std::string& out) {
    append_number(microseconds / 1'000'000, out);
    out += '.';
    for (std::uint64_t digit = 100'000; digit != 0; digit /= 10) {
        out += static_cast<char>('0' + microseconds / digit % 10);
    }
}

// Sat, 21 Nov 2026 10:05:50 GMT -> [21/Nov/2026:10:05:50 +0000]
void append_apache_date(std::string_view date, std::string& out) {
    out.append("[").append(date.substr(5, 2)).append("/").append(date.substr(8, 3));
    out.append("/").append(date.substr(12, 4)).append(":").append(date.substr(17, 8));
    out.append(" +0000]");
}

// Sat, 21 Nov 2026 10:05:50 GMT -> 2026-11-21T10:05:50Z
void append_iso_date(std::string_view date, std::string& out) {
    constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    const std::size_t month = months.find(date.substr(8, 3)) / 3 + 1;
    out.append(date.substr(12, 4)).append("-");
    out += static_cast<char>('0' + month / 10);
    out += static_cast<char>('0' + month % 10);
    out.append("-").append(date.substr(5, 2)).append("T").append(date.substr(17, 8)).append("Z");
}

// An address and a port; the port is "" if there is none.
struct host_and_port {
    std::string_view host;
    std::string_view port;
};
host_and_port parts_of(std::string_view client) noexcept {
    const std::size_t colon = client.rfind(':');
    if (colon == client.npos || client.starts_with("unix:")) return {client, {}};
    host_and_port parts{client.substr(0, colon), client.substr(colon + 1)};
    if (parts.host.starts_with('[')) parts.host = parts.host.substr(1, parts.host.size() - 2);
    return parts;
}

// Appends text between quotes, as Apache does.
void append_quoted(std::string_view text, std::string& out) {
    out += '"';
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte > 0x7e) {
            out.append("\\x").append(1, lowercase_digits[byte / 16]);
            out.append(1, lowercase_digits[byte % 16]);
        } else {
            if (c == '"' || c == '\\') out += '\\';
            out += c;
        }
    }
    out += '"';
}

std::optional<std::string_view> field_of(const log_line& line, std::string_view name) noexcept {
    return line.head == nullptr ? std::nullopt : line.head->find(name);
}

void append_plain(const log_line& line, std::string& out) {
    out.append(line.client).append(" ");
    append_apache_date(line.date, out);
    out.append(" \"");
    if (line.head == nullptr) {
        out.append("-");
    } else {
        // The parser has rejected quotes and control bytes.
        out.append(line.head->method_text()).append(" ").append(line.head->target());
        out.append(" ").append(line.protocol);
    }
    out.append("\" ");
    append_number(static_cast<std::uint64_t>(line.status), out);
    out += ' ';
    append_number(line.body_bytes, out);
    out += ' ';
    append_seconds(line.microseconds, out);
}

void append_combined(const log_line& line, std::string& out) {
    out.append(parts_of(line.client).host).append(" - - ");
    append_apache_date(line.date, out);
    out += ' ';
    if (line.head == nullptr) {
        out.append("\"-\"");
    } else {
        append_quoted(line.head->method_text(), out);
        out.back() = ' ';
        const std::size_t target = out.size();
        append_quoted(line.head->target(), out);
        out.erase(target, 1);
        out.back() = ' ';
        out.append(line.protocol).append("\"");
    }
    out += ' ';
    append_number(static_cast<std::uint64_t>(line.status), out);
    out += ' ';
    if (line.body_bytes == 0) {
        out += '-';
    } else {
        append_number(line.body_bytes, out);
    }
    for (const char* const name : {"Referer", "User-Agent"}) {
        out += ' ';
        append_quoted(field_of(line, name).value_or("-"), out);
    }
}

void append_marks(const log_line& line, std::string& out) {
    out.append(" ").append(line.id).append(" ");
    const auto trace = line.trace.text();
    out.append(trace.data(), trace.size()).append(" ");
    append_seconds(line.microseconds, out);
}

// Appends `,"name":` and the value.
void append_member(std::string_view name, std::optional<std::string_view> value, std::string& out) {
    out.append(",\"").append(name).append("\":");
    if (value) {
        append_json_string(*value, out);
    } else {
        out.append("null");
    }
}
void append_member(std::string_view name, std::uint64_t value, std::string& out) {
    out.append(",\"").append(name).append("\":");
    append_number(value, out);
}

void append_json(const log_line& line, std::string& out) {
    using text = std::optional<std::string_view>;
    const host_and_port from = parts_of(line.client);
    const request_head* const head = line.head;
    out.append("{\"time\":\"");
    append_iso_date(line.date, out);
    out += '"';
    append_member("client", text(from.host), out);
    out.append(",\"port\":").append(from.port.empty() ? "null" : from.port);
    append_member("method", head == nullptr ? text() : text(head->method_text()), out);
    append_member("target", head == nullptr ? text() : text(head->target()), out);
    append_member("protocol", head == nullptr ? text() : text(line.protocol), out);
    const bool has_host = head != nullptr && !head->host().empty();
    append_member("host", has_host ? text(head->host()) : text(), out);
    append_member("status", static_cast<std::uint64_t>(line.status), out);
    append_member("bytes", line.body_bytes, out);
    out.append(",\"seconds\":");
    append_seconds(line.microseconds, out);
    append_member("referer", field_of(line, "Referer"), out);
    append_member("user_agent", field_of(line, "User-Agent"), out);
    append_member("request_id", text(line.id), out);
    const auto trace = line.trace.text();
    append_member("traceparent", text(std::string_view(trace.data(), trace.size())), out);
    std::array<char, 16> span;
    if (line.parent) write_digits(line.parent->span, span.data());
    append_member("parent_span",
                  line.parent ? text(std::string_view(span.data(), span.size())) : text(), out);
    out += '}';
}

}  // namespace

void append_log_line(const log_line& line, access_log_format format, std::string& out) {
    if (format == access_log_format::json) {
        append_json(line, out);
    } else if (format == access_log_format::plain) {
        append_plain(line, out);
    } else {
        append_combined(line, out);
        if (format == access_log_format::traced) append_marks(line, out);
    }
    out += '\n';
}

}  // namespace coppice::http
