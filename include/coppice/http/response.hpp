// Responses as handlers make them.
#pragma once
// A response cannot contradict its own framing. Names and values with CR, LF, or NUL are refused.
// Only serialize() writes the fields that frame it: Content-Length, Transfer-Encoding, Connection,
// and Date.

#include <coppice/http/internal/answer_content.hpp>
#include <coppice/http/internal/passing_view.hpp>

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::http {

class body_source;

// Text that outlives every response: a literal, or text whose lifetime the caller promises.
class static_text {
public:
    constexpr static_text() noexcept = default;
    // Takes literals and other compile-time text. Text with a shorter lifetime does not compile.
    template <std::size_t N>
    consteval static_text(const char (&literal)[N]) noexcept : view_(literal, N - 1) {}
    consteval static_text(std::string_view text) noexcept : view_(text) {}
    // Takes text whose owner, as the caller promises, outlives every response that uses it.
    static constexpr static_text promised(std::string_view text) noexcept {
        static_text result;
        result.view_ = text;
        return result;
    }
    constexpr std::string_view view() const noexcept { return view_; }

private:
    std::string_view view_;
};

// The answer of a handler. Movable and copyable. A static body is never copied, and an owned one is
// moved. Copies share a streamed body, which can be sent once.
class response {
public:
    // Makes an answer without a body. Errors: a code outside 100 to 599 stops the process.
    explicit response(int status = 200) noexcept;

    // Make an answer of the media type that the name says; text/plain and text/html are in UTF-8. A
    // std::string is moved, and a static text is not copied.
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
    // These copy the text of the view, which need not outlive the call. A const view must be a
    // constant and is not copied. Errors: std::bad_alloc.
    template <internal::passing_view View>
    static response text(View&& body, int status = 200) {
        return text(std::string(body), status);
    }
    template <internal::passing_view View>
    static response html(View&& body, int status = 200) {
        return html(std::string(body), status);
    }
    template <internal::passing_view View>
    static response json(View&& body, int status = 200) {
        return json(std::string(body), status);
    }
    // Makes an answer with a short text: `reason`, or the code's standard phrase. It has no body if
    // the code allows none.
    static response status(int code, static_text reason = {}) noexcept;

    // Returns the code.
    int status() const noexcept { return status_; }
    // Returns the body; "" if it is streamed.
    std::string_view body() const noexcept { return owns_ ? std::string_view(owned_) : static_; }
    // Returns the streamed body, or nullptr. See body.hpp.
    const std::shared_ptr<body_source>& source() const noexcept { return source_; }
    // Returns the media type of the body; "" if none was set.
    std::string_view content_type() const noexcept { return type_.view(); }
    // Returns the other fields as they will be sent: lines that end in CRLF.
    std::string_view fields() const noexcept { return fields_; }
    // Returns the value of the first of those fields that has this name.
    std::optional<std::string_view> find(std::string_view name) const noexcept;
    // Returns true if close() was called.
    bool closes() const noexcept { return close_; }

    // Set the body, in place of an earlier one. A static text is not copied, a std::string is
    // moved, a view is copied, and a body_source is streamed. The functions from here on return
    // *this, so that calls can be chained.
    response& body(static_text text) & noexcept;
    template <std::same_as<std::string> String>
    response& body(String text) & noexcept {
        owns_ = true;
        owned_ = std::move(text);
        source_ = nullptr;
        return *this;
    }
    template <internal::passing_view View>
    response& body(View&& text) & {
        return body(std::string(text));
    }
    response& body(std::shared_ptr<body_source> source) & noexcept;
    // Sets the media type of the body. Errors: std::invalid_argument if it cannot be a field value.
    response& content_type(static_text type) &;
    // Adds a field line. Errors: std::invalid_argument, and no change, if the name is not a token,
    // if the value has a control byte or whitespace around it, or if serialize() or content_type()
    // writes the field: Content-Length, Transfer-Encoding, Connection, Date, Content-Type.
    response& add(std::string_view name, std::string_view value) &;
    // Ends the connection after this answer.
    response& close() & noexcept;
    // Puts W/ before a strong ETag that was added: the bytes of the body differ, and its meaning
    // does not.
    response& weaken_etag() &;
    // Changes only the code. Errors: a code outside 100 to 599 stops the process.
    response& with_status(int code) & noexcept;

    response&& body(static_text text) && noexcept { return std::move(body(text)); }
    template <std::same_as<std::string> String>
    response&& body(String text) && noexcept {
        return std::move(body(std::move(text)));
    }
    template <internal::passing_view View>
    response&& body(View&& text) && {
        return std::move(body(text));
    }
    response&& body(std::shared_ptr<body_source> source) && noexcept {
        return std::move(body(std::move(source)));
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
    std::shared_ptr<body_source> source_;  // the body if it is streamed
};

// Returns "Not Found" for 404; "" for a code without a registered phrase.
std::string_view reason_phrase(int status) noexcept;

// Returns the rule for the content of answers with this code.
constexpr internal::answer_content content_of(int status) noexcept {
    return internal::content_of_status(status);
}

}  // namespace coppice::http
