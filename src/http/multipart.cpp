// The parser of multipart/form-data bodies.
#include "media_type.hpp"

#include <coppice/http/multipart.hpp>
#include <coppice/http/parameters.hpp>

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t boundary_bytes_max = 70;  // RFC 2046 section 5.1.1
constexpr std::size_t file_name_bytes_max = 255;
constexpr const char* loose_reason = "a boundary in the form is not preceded by CRLF";

// Returns true for a valid boundary (RFC 2046 section 5.1.1): bchars, of which the last is not a
// space.
bool is_boundary(std::string_view text) noexcept {
    const auto is_boundary_byte = [](char c) {
        return is(c, digit_byte) || (lower(c) >= 'a' && lower(c) <= 'z') ||
               std::string_view("'()+_,-./:=? ").find(c) != std::string_view::npos;
    };
    return !text.empty() && text.size() <= boundary_bytes_max && !text.ends_with(' ') &&
           std::ranges::all_of(text, is_boundary_byte);
}

bool is_field_value(std::string_view text) noexcept {
    return std::ranges::all_of(text, [](char c) { return is(c, value_byte); });
}

// Returns true for encodings that change nothing. RFC 7578 section 4.7 permits no others.
bool is_identity(std::string_view coding) noexcept {
    return equals_ignoring_case(coding, "binary") || equals_ignoring_case(coding, "8bit") ||
           equals_ignoring_case(coding, "7bit");
}

}  // namespace

std::string safe_file_name(std::string_view filename) {
    const std::size_t slash = filename.find_last_of("/\\");
    if (slash != filename.npos) filename.remove_prefix(slash + 1);
    std::string name;
    name.reserve(filename.size());
    for (const char c : filename) {
        if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) name.push_back(c);
    }
    const auto is_edge = [](char c) { return c == '.' || c == ' '; };
    name.erase(name.begin(), std::ranges::find_if_not(name, is_edge));
    if (name.size() > file_name_bytes_max) {
        // Does not cut inside a character of UTF-8.
        std::size_t end = file_name_bytes_max;
        while (end != 0 && (static_cast<unsigned char>(name[end]) & 0xc0) == 0x80) --end;
        name.resize(end);
    }
    while (!name.empty() && is_edge(name.back())) name.pop_back();
    return name;
}

std::string multipart_boundary(std::optional<std::string_view> content_type) {
    std::string_view parameters;
    const std::optional<std::string_view> type =
        content_type ? take_media_type(*content_type, parameters) : std::nullopt;
    if (!type || !equals_ignoring_case(*type, "multipart/form-data")) {
        throw status_error(415, "the body must be multipart/form-data");
    }
    std::optional<std::string> boundary = media_parameter(parameters, "boundary");
    if (!boundary || !is_boundary(*boundary)) {
        throw bad_request("multipart/form-data needs one valid boundary");
    }
    return *std::move(boundary);
}

multipart_parser::multipart_parser(std::string_view boundary, multipart_limits limits)
    : limits_(limits) {
    if (!is_boundary(boundary)) {
        throw std::invalid_argument("multipart_parser: the boundary is invalid");
    }
    delimiter_.reserve(boundary.size() + 4);
    delimiter_.append("\r\n--").append(boundary);
    await_delimiter(state::preamble);
}

// Begins to wait for a delimiter. Its CRLF may have arrived already: before the body, and at the
// end of a part's head.
void multipart_parser::await_delimiter(state where) noexcept {
    state_ = where;
    matched_ = assumed_ = 2;
    loose_ = 0;
}

void multipart_parser::fail(int status, const char* reason) {
    state_ = state::failed;
    status_ = status;
    reason_ = reason;
    throw status_error(status, reason);
}

// Looks for a delimiter. Returns true if a whole one has arrived and was taken. Otherwise data()
// holds the bytes that are known not to belong to one, and the rest must wait for more input. A CR
// occurs in a delimiter only as its first byte, so a failed match cannot hide the beginning of
// another.
bool multipart_parser::find_delimiter(std::string_view& input) {
    data_ = {};
    while (matched_ != 0) {
        const std::size_t length = std::min(delimiter_.size() - matched_, input.size());
        const std::string_view rest = std::string_view(delimiter_).substr(matched_, length);
        const auto differs = std::ranges::mismatch(rest, input.substr(0, length)).in1;
        const auto same = static_cast<std::size_t>(differs - rest.begin());
        matched_ += same;
        input.remove_prefix(same);
        if (matched_ == delimiter_.size()) return true;
        if (input.empty()) return false;
        data_ = std::string_view(delimiter_).substr(assumed_, matched_ - assumed_);
        matched_ = assumed_ = 0;
        if (!data_.empty()) return false;
    }
    std::size_t end = 0;
    for (;; ++end) {
        end = std::min(input.find('\r', end), input.size());
        const std::string_view rest = input.substr(end, delimiter_.size());
        if (std::string_view(delimiter_).starts_with(rest)) break;
    }
    data_ = input.substr(0, end);
    input.remove_prefix(end);
    if (!data_.empty() || input.empty()) return false;
    // The delimiter begins here: whole, or up to the end of the input.
    matched_ = std::min(input.size(), delimiter_.size());
    input.remove_prefix(matched_);
    return matched_ == delimiter_.size();
}

// Returns true if a line of data() that begins after a bare CR or LF begins like a boundary. What
// comes before the deciding byte stays in data(). A boundary after CRLF is never in data().
bool multipart_parser::find_loose_boundary() {
    const std::string_view boundary = std::string_view(delimiter_).substr(2);
    std::size_t cr = 0;  // the next CR, if it is not before `at`; otherwise to be searched again
    std::size_t lf = 0;  // likewise the next LF
    for (std::size_t at = 0; at < data_.size();) {
        if (loose_ == 0) {
            if (cr <= at) cr = data_.find('\r', at);
            if (lf <= at) lf = data_.find('\n', at);
            const std::size_t next = std::min(cr, lf);
            if (next == data_.npos) return false;
            at = next + 1;
            loose_ = 1;
        } else if (data_[at] == boundary[loose_ - 1]) {
            if (loose_ == boundary.size()) {
                data_ = data_.substr(0, at);
                return true;
            }
            ++loose_;
            ++at;
        } else {
            loose_ = 0;  // the byte is checked again: it may end a line too
        }
    }
    return false;
}

// Takes the rest of a boundary's line. Returns true if the line has ended, or nothing more is
// needed.
bool multipart_parser::step_behind_boundary(char byte) {
    const bool space = byte == ' ' || byte == '\t';
    switch (state_) {
        case state::boundary:
        case state::padding:
            if (byte == '-' && state_ == state::boundary) {
                state_ = state::one_dash;
            } else if (space) {
                state_ = state::padding;
            } else if (byte == '\r') {
                state_ = state::line_feed;
            } else {
                fail(400, "a boundary in the form is followed by other bytes");
            }
            return false;
        case state::one_dash:
            if (byte != '-') fail(400, "a boundary in the form is followed by other bytes");
            state_ = state::last_padding;
            return true;
        case state::line_feed:
            if (byte != '\n') fail(400, "a CR in the form is not followed by LF");
            if (parts_ == limits_.parts_max) fail(413, "the form has too many parts");
            ++parts_;
            fields_.clear();
            state_ = state::fields;
            return true;
        case state::last_padding:
            if (byte == '\r') {
                state_ = state::last_line_feed;
            } else if (!space) {
                fail(400, "the last boundary of the form is followed by other bytes");
            }
            return false;
        default:  // last_line_feed
            if (byte != '\n') fail(400, "a CR in the form is not followed by LF");
            state_ = state::epilogue;
            return false;
    }
}

// Returns true if the part's fields have arrived, up to their empty line.
bool multipart_parser::take_fields(std::string_view& input) {
    while (!input.empty()) {
        const char byte = input.front();
        const bool after_cr = fields_.ends_with('\r');
        if (after_cr != (byte == '\n')) {
            fail(400, after_cr ? "a CR in the form is not followed by LF"
                               : "a LF in the head of a part is not preceded by CR");
        }
        if (fields_.size() == limits_.part_head_bytes_max) {
            fail(413, "the head of a part of the form is too large");
        }
        input.remove_prefix(1);
        fields_.push_back(byte);
        if (byte == '\n' && (fields_.size() == 2 || fields_.ends_with("\r\n\r\n"))) return true;
    }
    return false;
}

void multipart_parser::read_disposition(std::string_view value) {
    if (!equals_ignoring_case(take_token(value), "form-data")) {
        fail(400, "the Content-Disposition of a part is not form-data");
    }
    bool named = false;
    const bool good = for_each_parameter(value, [&](std::string_view name, std::string& text) {
        if (is_extended(name, "name") || is_extended(name, "filename")) return false;
        if (equals_ignoring_case(name, "name")) {
            if (named) return false;
            named = true;
            head_.name = std::move(text);
        } else if (equals_ignoring_case(name, "filename")) {
            if (head_.filename) return false;
            head_.filename = std::move(text);
        }
        return true;
    });
    if (!good || !named) fail(400, "the Content-Disposition of a part is malformed");
}

void multipart_parser::read_fields() {
    head_.name.clear();
    head_.filename.reset();
    head_.content_type = "text/plain";
    bool disposed = false;
    bool typed = false;
    std::string_view rest = std::string_view(fields_).substr(0, fields_.size() - 2);
    while (!rest.empty()) {
        std::string_view line = rest.substr(0, rest.find("\r\n"));
        rest.remove_prefix(line.size() + 2);
        const std::string_view name = take_token(line);
        if (name.empty() || !line.starts_with(':')) fail(400, "a field of a part is malformed");
        const std::string_view value = trim(line.substr(1));
        if (!is_field_value(value)) fail(400, "a field of a part has a control byte");
        if (equals_ignoring_case(name, "Content-Disposition")) {
            if (disposed) fail(400, "a part has two Content-Disposition fields");
            disposed = true;
            read_disposition(value);
        } else if (equals_ignoring_case(name, "Content-Type")) {
            if (typed) fail(400, "a part has two Content-Type fields");
            typed = true;
            head_.content_type = value;
        } else if (equals_ignoring_case(name, "Content-Transfer-Encoding") && !is_identity(value)) {
            fail(400, "a part has a Content-Transfer-Encoding");
        }
    }
    if (!disposed) fail(400, "a part has no Content-Disposition");
}

multipart_parser::event multipart_parser::next(std::string_view& input) {
    data_ = {};
    for (;;) {
        switch (state_) {
            case state::failed:
                throw status_error(status_, reason_);
            case state::epilogue:
                input = {};
                return event::wants_more;
            case state::preamble:
                if (find_delimiter(input)) {
                    state_ = state::boundary;
                } else if (find_loose_boundary()) {
                    fail(400, loose_reason);
                } else if (input.empty() && data_.empty()) {
                    return event::wants_more;
                }
                break;
            case state::content:
                if (find_delimiter(input)) {
                    if (assumed_ != 0) fail(400, "the content of a part begins with the boundary");
                    state_ = state::boundary;
                    return event::part_end;
                }
                if (find_loose_boundary()) {
                    if (data_.empty()) fail(400, loose_reason);
                    state_ = state::failed;  // the content before it is given out first
                    status_ = 400;
                    reason_ = loose_reason;
                }
                return data_.empty() ? event::wants_more : event::data;
            case state::fields:
                if (!take_fields(input)) return event::wants_more;
                read_fields();
                await_delimiter(state::content);
                return event::part;
            default:
                if (input.empty()) return event::wants_more;
                const char byte = input.front();
                input.remove_prefix(1);
                if (step_behind_boundary(byte) && state_ == state::last_padding) return event::end;
        }
    }
}

void multipart_parser::finish() const {
    if (state_ == state::failed) throw status_error(status_, reason_);
    if (state_ != state::last_padding && state_ != state::epilogue) {
        throw bad_request("the form ends before its last boundary");
    }
}

}  // namespace coppice::http
