// Requests as handlers see them, responses as they make them, and responses as bytes.
#pragma once
// A response cannot be made to lie about its framing: names and values with CR, LF or NUL are
// refused, and the fields that frame it (Content-Length, Transfer-Encoding, Connection, Date) are
// written by serialize() alone.

#include <coppice/http/parse.hpp>
#include <coppice/http/uri.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::http {

// One `{name}` of a route and the part of the path it matched, not decoded.
struct path_parameter {
    std::string_view name;
    std::string_view raw;
};

// The parameters of a matched route: views into the route table and the path, in a fixed array.
class path_parameters {
public:
    static constexpr std::size_t capacity = 8;

    std::size_t size() const noexcept { return count_; }
    const path_parameter* begin() const noexcept { return items_.data(); }
    const path_parameter* end() const noexcept { return items_.data() + count_; }
    // The part of the path that `name` matched, as sent.
    std::optional<std::string_view> find(std::string_view name) const noexcept;

    void clear() noexcept { count_ = 0; }
    // Stops the process when full: routes cannot have more (see router.hpp).
    void push_back(path_parameter) noexcept;
    void pop_back() noexcept { --count_; }
    path_parameter& operator[](std::size_t index) noexcept { return items_[index]; }

private:
    std::size_t count_ = 0;
    std::array<path_parameter, capacity> items_;
};

// What a handler gets. Lifetime: views; the head, the body and the route table outlive it.
class request {
public:
    request(const request_head& head, std::string_view body,
            const path_parameters& parameters = {}) noexcept
        : head_(&head), body_(body), parameters_(parameters) {}

    const request_head& head() const noexcept { return *head_; }
    method verb() const noexcept { return head_->verb(); }
    std::string_view target() const noexcept { return head_->target(); }
    std::string_view path() const noexcept { return head_->path(); }
    std::string_view body() const noexcept { return body_; }
    // The first field of that name, whatever its case.
    std::optional<std::string_view> find(std::string_view name) const noexcept {
        return head_->find(name);
    }
    const path_parameters& parameters() const noexcept { return parameters_; }

    // The query parameter as sent; "" for a name without a value; nothing if it is absent.
    std::optional<std::string_view> query(std::string_view name) const noexcept {
        return query_value(head_->query(), name);
    }
    // The query parameter as a T: std::string (decoded, '+' is a space) or an integer.
    // Nothing if it is absent or is no T; query(name) tells which.
    template <class T>
    std::optional<T> query(std::string_view name) const {
        return convert<T>(query(name), plus_sign::space);
    }
    // The path parameter as a T: std::string (decoded), std::string_view (as sent) or an integer.
    // Nothing if the route has none of that name or it is no T.
    template <class T = std::string>
    std::optional<T> parameter(std::string_view name) const {
        return convert<T>(parameters_.find(name), plus_sign::literal);
    }

private:
    template <class T>
    static std::optional<T> convert(std::optional<std::string_view> raw, plus_sign plus) {
        if (!raw) return std::nullopt;
        if constexpr (std::same_as<T, std::string_view>) {
            return raw;
        } else if constexpr (std::integral<T>) {
            return parse_integer<T>(*raw);
        } else {
            static_assert(std::same_as<T, std::string>, "string, string_view or an integer");
            std::optional<T> text(std::in_place);
            if (!percent_decode(*raw, *text, plus)) text.reset();
            return text;
        }
    }

    const request_head* head_;
    std::string_view body_;
    path_parameters parameters_;
};

// Text that outlives every response: a literal, or what a caller vouches for.
class static_text {
public:
    constexpr static_text() noexcept = default;
    // Literals and other compile-time text; anything with a shorter life does not compile.
    template <std::size_t N>
    consteval static_text(const char (&literal)[N]) noexcept : view_(literal, N - 1) {}
    consteval static_text(std::string_view text) noexcept : view_(text) {}
    // Text whose owner outlives every response that uses it, by the caller's word.
    static constexpr static_text promised(std::string_view text) noexcept {
        static_text result;
        result.view_ = text;
        return result;
    }
    constexpr std::string_view view() const noexcept { return view_; }

private:
    std::string_view view_;
};

// What a handler answers. Movable and copyable. A static body is never copied, an owned one is
// moved.
class response {
public:
    // An empty answer. Errors: a code outside 100 to 599 stops the process.
    explicit response(int status = 200) noexcept;

    // An answer of the media type that the name says, text/plain and text/html in UTF-8.
    static response text(static_text body, int status = 200) noexcept;
    static response html(static_text body, int status = 200) noexcept;
    static response json(static_text body, int status = 200) noexcept;
    template <std::same_as<std::string> String>
    static response text(String body, int status = 200) noexcept {
        return text({}, status).body(std::move(body));
    }
    template <std::same_as<std::string> String>
    static response html(String body, int status = 200) noexcept {
        return html({}, status).body(std::move(body));
    }
    template <std::same_as<std::string> String>
    static response json(String body, int status = 200) noexcept {
        return json({}, status).body(std::move(body));
    }
    // A short text: the reason given or the code's standard phrase. No body if the code has none.
    static response status(int code, static_text reason = {}) noexcept;

    int status() const noexcept { return status_; }
    std::string_view body() const noexcept { return owns_ ? std::string_view(owned_) : static_; }
    std::string_view content_type() const noexcept { return type_.view(); }
    // The other fields as they will be sent: lines that end in CRLF.
    std::string_view fields() const noexcept { return fields_; }
    bool closes() const noexcept { return close_; }

    response& body(static_text text) & noexcept;
    template <std::same_as<std::string> String>
    response& body(String text) & noexcept {
        owns_ = true;
        owned_ = std::move(text);
        return *this;
    }
    // The media type of the body. Errors: std::invalid_argument if it cannot be a field value.
    response& content_type(static_text type) &;
    // Adds a field line. Errors: std::invalid_argument, and no change, if the name is no token, if
    // the value has a control byte or whitespace around it, or if the field is one that serialize()
    // or content_type() writes: Content-Length, Transfer-Encoding, Connection, Date, Content-Type.
    response& add(std::string_view name, std::string_view value) &;
    // Ends the connection after this answer.
    response& close() & noexcept;

    response&& body(static_text text) && noexcept { return std::move(body(text)); }
    template <std::same_as<std::string> String>
    response&& body(String text) && noexcept {
        return std::move(body(std::move(text)));
    }
    response&& content_type(static_text type) && { return std::move(content_type(type)); }
    response&& add(std::string_view name, std::string_view value) && {
        return std::move(add(name, value));
    }
    response&& close() && noexcept { return std::move(close()); }

private:
    int status_;
    bool owns_ = false;
    bool close_ = false;
    static_text type_;
    std::string_view static_;  // the body unless owns_
    std::string owned_;        // the body if owns_
    std::string fields_;
};

// "Not Found" for 404; "" for a code without a registered phrase.
std::string_view reason_phrase(int status) noexcept;

// Whether an answer with this code has no body by definition: 1xx, 204, 304 (RFC 9110
// section 6.4.1).
bool bodyless(int status) noexcept;

// What the connection, not the handler, knows about an answer.
struct serialize_options {
    bool keep_alive = true;
    bool head_only = false;  // the request was HEAD: the same fields, no body
    int minor_version =
        1;  // the request's: a 1.0 client must be told that it may keep the connection
    std::string_view date = {};  // IMF-fixdate, see date_cache; "": no Date field
};

// Appends the answer's bytes to `out`.
// Cost: no allocation once `out` has the capacity; the body is copied once, into `out`.
void serialize(const response&, const serialize_options&, std::string& out);
inline void serialize(const response& answer, bool keep_alive, bool head_only, std::string& out) {
    serialize(answer, {.keep_alive = keep_alive, .head_only = head_only}, out);
}
// The same without the body, for callers that send it from where it lies.
void serialize_head(const response&, const serialize_options&, std::string& out);

// The Date field's value, formatted when the second changes (RFC 9110 section 5.6.7).
class date_cache {
public:
    // "Sun, 06 Nov 1994 08:49:37 GMT". Years 1970 to 9999; other times stop the process.
    // Lifetime: the view is valid until the next call.
    std::string_view at(std::int64_t unix_seconds) noexcept;

private:
    std::int64_t second_ = -1;
    std::array<char, 29> text_;
};

}  // namespace coppice::http
