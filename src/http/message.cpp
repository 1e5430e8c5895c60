// Responses: their parts, checked as they are added, and their bytes.
#include <coppice/base/internal/check.hpp>
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/message.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>

#include <sys/socket.h>
#include <algorithm>
#include <stdexcept>

#include "lines.hpp"
#include "writer.hpp"

namespace coppice::http {

using namespace internal;

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

}  // namespace

io::context& request::loop() const noexcept {
    COPPICE_CHECK(origin_ != nullptr && origin_->loop != nullptr, "this request has no loop");
    return *origin_->loop;
}

std::chrono::sys_seconds request::wall_time() const noexcept {
    const bool has_loop = origin_ != nullptr && origin_->loop != nullptr;
    return (has_loop ? origin_->loop->system() : io::internal::kernel()).wall_time();
}

body_reader& request::incoming() const noexcept {
    COPPICE_CHECK(origin_ != nullptr && origin_->body != nullptr,
                  "incoming() is for handlers that are declared with read_body()");
    return *origin_->body;
}

std::optional<std::string_view> request::trailer(std::string_view name) const noexcept {
    if (origin_ == nullptr || origin_->trailers == nullptr) return std::nullopt;
    return find_line(*origin_->trailers, name);
}

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
    COPPICE_CHECK(status >= 100 && status <= 599,
                  "a response's status is out of range: it is 100 to 599");
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
    if (content_of(code) != answer_content::any) return response(code);
    return text(reason.view().empty() ? static_text::promised(reason_phrase(code)) : reason, code);
}

response& response::body(static_text text) & noexcept {
    owns_ = false;
    static_ = text.view();
    source_ = nullptr;
    return *this;
}

response& response::body(std::shared_ptr<body_source> source) & noexcept {
    owns_ = false;
    static_ = {};
    source_ = std::move(source);
    return *this;
}

response& response::with_status(int code) & noexcept {
    COPPICE_CHECK(code >= 100 && code <= 599,
                  "a response's status is out of range: it is 100 to 599");
    status_ = code;
    return *this;
}

std::optional<std::string_view> response::find(std::string_view name) const noexcept {
    return find_line(fields_, name);
}

response& response::content_type(static_text type) & {
    if (!is_value(type.view()))
        throw std::invalid_argument("a media type is not a valid field value");
    type_ = type;
    return *this;
}

response& response::add(std::string_view name, std::string_view value) & {
    if (!is_token(name)) throw std::invalid_argument("a field's name is not a token");
    if (!is_value(value)) throw std::invalid_argument("a field's value has an invalid byte");
    if (written_by_serialize(name)) {
        throw std::invalid_argument("this field is written by serialize()");
    }
    fields_.reserve(fields_.size() + name.size() + value.size() + 4);
    fields_.append(name).append(": ").append(value).append("\r\n");
    return *this;
}

response& response::weaken_etag() & {
    const std::optional<std::string_view> tag = find("ETag");
    if (tag && tag->starts_with('"')) {
        fields_.insert(static_cast<std::size_t>(tag->data() - fields_.data()), "W/");
    }
    return *this;
}

response& response::close() & noexcept {
    close_ = true;
    return *this;
}

namespace {

// Makes a string longer, and returns where to write in it. cut() then sets where it ends.
[[gnu::cold, gnu::noinline]] char* grow(std::string& out, std::size_t more) {
    const std::size_t before = out.size();
    out.resize(before + more);
    return out.data() + before;
}

[[gnu::cold, gnu::noinline]] void cut(std::string& out, const char* end) {
    out.resize(static_cast<std::size_t>(end - out.data()));
}

[[gnu::noinline]] writer status_line(writer to, int status) noexcept {
    to << "HTTP/1.1 ";
    to.number(static_cast<std::size_t>(status));
    to << " " << reason_phrase(status);
    return to;
}

// Appends the head and then `body`.
void append(const response& answer, const serialize_options& options, std::string_view body,
            std::string& out) {
    // A head that fits here, as most do, is assembled on the stack and appended at once. Growing
    // the string first would write its bytes twice.
    constexpr std::size_t constants = 256;  // more bytes than all literals and numbers below
    char small[1024];
    const std::size_t most = constants + options.date.size() + options.request_id.size() +
                             answer.content_type().size() + answer.fields().size() + body.size();
    const bool is_small = most <= sizeof small;
    char* const begin = is_small ? small : grow(out, most);

    writer to(begin);
    if (answer.status() == 200) [[likely]] {
        to << "HTTP/1.1 200 OK";
    } else {
        to = status_line(to, answer.status());
    }
    if (!options.date.empty()) to << "\r\nDate: " << options.date;
    if (!options.request_id.empty()) [[unlikely]]
        to << "\r\nX-Request-Id: " << options.request_id;
    const answer_content content = content_of(answer.status());
    if (content == answer_content::any) [[likely]] {
        if (!answer.content_type().empty()) to << "\r\nContent-Type: " << answer.content_type();
        if (options.chunked) [[unlikely]] {
            to << "\r\nTransfer-Encoding: chunked";
        } else if (!options.unframed) [[likely]] {
            to << "\r\nContent-Length: ";
            to.number(options.length.value_or(answer.body().size()));
        }
    } else if (content == answer_content::empty) {
        to << "\r\nContent-Length: 0";
    }
    if (answer.closes() || !options.keep_alive) [[unlikely]] {
        to << "\r\nConnection: close";
    } else if (options.minor_version == 0) [[unlikely]] {
        to << "\r\nConnection: keep-alive";
    }
    to << "\r\n";
    if (!answer.fields().empty()) to << answer.fields();
    to << "\r\n";
    if (!body.empty()) to << body;
    if (is_small) [[likely]] {
        out.append(begin, static_cast<std::size_t>(to.end() - begin));
    } else {
        cut(out, to.end());
    }
}

}  // namespace

void serialize_head(const response& answer, const serialize_options& options, std::string& out) {
    append(answer, options, {}, out);
}

void serialize(const response& answer, const serialize_options& options, std::string& out) {
    const bool has_body = !options.head_only && content_of(answer.status()) == answer_content::any;
    // A long body is copied directly to its final place.
    constexpr std::size_t short_bytes = 512;
    const std::string_view body = has_body ? answer.body() : std::string_view();
    append(answer, options, body.size() <= short_bytes ? body : std::string_view(), out);
    if (body.size() > short_bytes) out.append(body);
}

}  // namespace coppice::http
