// The collecting of head_text.hpp.
#include "head_text.hpp"

#include <coppice/base/saturating.hpp>
#include <coppice/http/internal/scan.hpp>

#include <algorithm>

#include "fields.hpp"

namespace coppice::http2 {

namespace {

// A head whose fields are so many times too large ends its stream.
constexpr std::size_t endured_factor = 4;
constexpr std::size_t method_bytes_most = 64;  // HTTP/1.1's parser refuses half as many

// What HTTP/1.1 has and an extended CONNECT has not. nghttp2 refuses a client's own `upgrade` and
// `connection`, so no client can end its head in this way. The key is 16 bytes of 0.
constexpr std::string_view upgrade_lines =
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
    "upgrade: websocket\r\n"
    "connection: upgrade\r\n";
// Of an extended CONNECT for a protocol that the server does not speak.
constexpr std::string_view other_upgrade_lines =
    "upgrade: unknown\r\n"
    "connection: upgrade\r\n";

// The bytes that could end a part of a request line, or a field line, before its time.
bool is_plain(std::string_view text) noexcept {
    return std::ranges::all_of(text, [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte > 0x20 && byte != 0x7f;
    });
}

}  // namespace

void head_text::clear() noexcept {
    for (std::string* const s :
         {&method_, &scheme_, &authority_, &path_, &protocol_, &host_, &cookie_, &lines_, &text_}) {
        s->clear();
    }
    fields_ = bytes_ = 0;
    no_length_at_ = lines_.npos;
    has_protocol_ = has_authority_ = has_host_ = has_length_ = false;
}

bool head_text::add(std::string_view name, std::string_view value, const http::limits& limit) {
    constexpr std::size_t overhead = 4;  // of a line: ": " and CRLF
    bytes_ += name.size() + value.size() + overhead;
    const std::size_t most = saturating_add(limit.header_bytes_max, limit.target_bytes_max);
    if (bytes_ / endured_factor > most) return false;
    if (name.starts_with(':')) return add_pseudo(name, value, limit);
    if (!is_plain(name) || name.find(':') != name.npos || !is_one_line(value)) return false;
    // What follows is refused anyway, but HPACK has to read on.
    if (lines_.size() > limit.header_bytes_max || fields_ > limit.fields_max) return true;
    if (name == "cookie") {  // the parts of one field (RFC 9113 section 8.2.3)
        if (cookie_.size() > limit.header_bytes_max) return true;
        if (!cookie_.empty()) cookie_ += "; ";
        cookie_ += value;
        return true;
    }
    ++fields_;
    if (name == "host") {
        if (has_host_) return false;
        has_host_ = true;
        host_ = value;
        return true;
    }
    if (has_protocol_ && name == "sec-websocket-key") return true;  // HTTP/2 does not use it
    if (name == "content-length") {
        has_length_ = true;
        if (value.find_first_not_of('0') == value.npos) no_length_at_ = lines_.size();
    }
    lines_.append(name).append(": ").append(value).append("\r\n");
    return true;
}

bool head_text::add_pseudo(std::string_view name, std::string_view value,
                           const http::limits& limit) {
    if (!is_plain(value)) return false;
    if (name == ":method") {
        method_ = value.substr(0, method_bytes_most);
    } else if (name == ":path") {
        path_ = value.substr(0, limit.target_bytes_max + 1);
    } else if (name == ":authority") {
        has_authority_ = true;
        authority_ = value.substr(0, limit.header_bytes_max);
    } else if (name == ":scheme") {
        scheme_ = value.substr(0, limit.target_bytes_max);
    } else if (name == ":protocol") {
        has_protocol_ = true;
        protocol_ = value.substr(0, limit.header_bytes_max);
    } else {
        return false;
    }
    return true;
}

// A target in absolute-form says by which scheme it was to be reached; the server refuses one that
// does not agree with the connection. It looks at every such head before it calls a handler.
// HTTP/1.1 has two schemes only: any other is written as the one that is not the connection's.
bool head_text::put_target(std::string& to, bool secure) const {
    if (method_ == "CONNECT" && !has_protocol_) {
        to += authority_;
        return path_.empty() && scheme_.empty() && has_authority_;
    }
    if (!path_.starts_with('/') && (path_ != "*" || method_ != "OPTIONS")) return false;
    const bool is_other = has_protocol_ && !is_websocket();
    const bool agrees = http::internal::equals_ignoring_case(scheme_, secure ? "https" : "http");
    if (is_other || !agrees) {
        to.append(agrees == secure ? "https" : "http").append("://");
        to.append(has_authority_ ? authority_ : host_);
        if (path_ == "*") return true;
    }
    to += path_;
    return true;
}

bool head_text::is_websocket() const noexcept {
    return has_protocol_ && http::internal::equals_ignoring_case(protocol_, "websocket");
}

std::string_view head_text::finish(bool body, bool secure) {
    using http::internal::equals_ignoring_case;
    if (has_authority_ && has_host_ && !equals_ignoring_case(authority_, host_)) return {};
    // A CONNECT has no body, and what goes through a tunnel has no length.
    if (has_protocol_ && (method_ != "CONNECT" || !has_authority_ || has_length_)) return {};
    text_.clear();
    text_.append(has_protocol_ ? "GET" : method_).append(" ");
    if (!put_target(text_, secure)) return {};
    text_ += " HTTP/1.1\r\n";
    if (has_authority_ || has_host_) {
        text_.append("host: ").append(has_authority_ ? authority_ : host_).append("\r\n");
    }
    // A body without bytes that has not ended: HTTP/1.1 would not wait for its end, but bytes that
    // do follow make the request malformed.
    if (body && no_length_at_ != lines_.npos) {
        lines_.erase(no_length_at_, lines_.find('\n', no_length_at_) + 1 - no_length_at_);
        has_length_ = false;
    }
    text_ += lines_;
    if (!cookie_.empty()) text_.append("cookie: ").append(cookie_).append("\r\n");
    if (has_protocol_) {
        text_ += is_websocket() ? upgrade_lines : other_upgrade_lines;
    } else if (body && !has_length_) {
        text_ += "transfer-encoding: chunked\r\n";
    }
    text_ += "\r\n";
    return text_;
}

}  // namespace coppice::http2
