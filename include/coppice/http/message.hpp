// Requests as handlers see them, responses as handlers make them, and responses as bytes.
#pragma once
// A response cannot contradict its own framing. Names and values with CR, LF, or NUL are refused.
// Only serialize() writes the fields that frame it: Content-Length, Transfer-Encoding, Connection,
// and Date.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/http/date.hpp>
#include <coppice/http/internal/request_values.hpp>
#include <coppice/http/parameters.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/http/uri.hpp>
#include <coppice/stop/inplace.hpp>

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace coppice {
class thread_pool;
}  // namespace coppice

namespace coppice::io {
class context;
struct endpoint;
}  // namespace coppice::io

namespace coppice::http {

class body_reader;
class body_source;
class next_handler;
class peer_address;

// Where a request came from, and how long its answer is wanted. The connection owns it.
struct request_origin {
    io::context* loop = nullptr;  // the loop that owns the connection
    int connection = -1;          // its file descriptor
    inplace_stop_token stop;      // requested when the client is gone or the deadline has passed
    internal::time_point deadline = internal::time_point::max();
    body_reader* body = nullptr;            // only for handlers declared with read_body()
    const std::string* trailers = nullptr;  // the field lines after a chunked body
    peer_address* peer = nullptr;           // the client's
    thread_pool* pool = nullptr;            // where its handler runs; nullptr: on the loop
};

// One `{name}` of a route, and the part of the path that it matched, not decoded.
struct path_parameter {
    std::string_view name;
    std::string_view raw;
};

// The parameters of a matched route: views into the route table and the path, in a fixed array.
// Cost: a copy copies only the parameters that are set, usually none.
class path_parameters {
public:
    static constexpr std::size_t capacity = 8;

    path_parameters() noexcept {}
    path_parameters(const path_parameters& other) noexcept { *this = other; }
    path_parameters& operator=(const path_parameters& other) noexcept {
        count_ = other.count_;
        if (count_ != 0) [[unlikely]]
            std::memcpy(items_, other.items_, count_ * sizeof items_[0]);
        return *this;
    }

    std::size_t size() const noexcept { return count_; }
    const path_parameter* begin() const noexcept { return items_; }
    const path_parameter* end() const noexcept { return items_ + count_; }
    // Returns the part of the path that `name` matched, as sent.
    std::optional<std::string_view> find(std::string_view name) const noexcept;

    void clear() noexcept { count_ = 0; }
    // Stops the process if the array is full; no route has more parameters (see router.hpp).
    void push_back(path_parameter) noexcept;
    void pop_back() noexcept { --count_; }
    path_parameter& operator[](std::size_t index) noexcept { return items_[index]; }

private:
    std::size_t count_ = 0;
    union {
        path_parameter
            items_[capacity];  // only the first count_ are initialized; the type is trivial
    };
};

// What a handler gets. It can be moved but not copied, since it owns the values that filters have
// set. Lifetime: it holds views; the head, the body, and the route table outlive it.
class request {
public:
    // Makes a request of a parsed head. A test may leave out the body, the route, and the server.
    request(const request_head& head, std::string_view body, const path_parameters& parameters = {},
            const request_origin* origin = nullptr) noexcept
        : head_(&head), origin_(origin), body_(body), parameters_(parameters) {}

    // What was sent: the head, its parts (see request_head), and the body.
    const request_head& head() const noexcept { return *head_; }
    method verb() const noexcept { return head_->verb(); }
    std::string_view target() const noexcept { return head_->target(); }
    std::string_view path() const noexcept { return head_->path(); }
    std::string_view body() const noexcept { return body_; }
    // Returns the value of the first field of that name. Case is ignored.
    std::optional<std::string_view> find(std::string_view name) const noexcept {
        return head_->find(name);
    }
    // Returns what the route's pattern has captured.
    const path_parameters& parameters() const noexcept { return parameters_; }

    // Returns the token that is requested when the client has gone away, when the deadline has
    // passed, or when the server cuts off. The request is made on the loop's thread. It is never
    // made for a request that came from no server.
    inplace_stop_token stop_token() const noexcept {
        return origin_ == nullptr ? inplace_stop_token() : origin_->stop;
    }
    // Returns the time at which the answer must be made. A read() of incoming() moves it later by
    // the time that it has waited for the client. Threads: not during a read() on another thread.
    internal::time_point deadline() const noexcept {
        return origin_ == nullptr ? internal::time_point::max() : origin_->deadline;
    }
    // Returns the loop that owns the connection. Errors: a request that came from no server stops
    // the process.
    io::context& loop() const noexcept;
    // Returns the time of day of the server, which is the simulation's time in a simulation.
    // Threads: any.
    std::chrono::sys_seconds wall_time() const noexcept;
    // Returns the client's address. After the client is gone it returns the address only if it was
    // asked for before; otherwise, and for a request that came from no server, the address is
    // unspecified. Threads: any. Cost: a lock; the first call also makes a system call.
    io::endpoint peer() const noexcept;
    // Returns the body as it arrives, for handlers declared with read_body(); body() is "" there.
    // Errors: any other request stops the process.
    body_reader& incoming() const noexcept;
    // Returns the first trailer field of that name, after a chunked body that has been read to its
    // end. A trailer never changes what a field of the head says (RFC 9110 section 6.5.1).
    std::optional<std::string_view> trailer(std::string_view name) const noexcept;

    // Returns the query parameter as sent: "" for a name without a value, nothing if it is absent.
    std::optional<std::string_view> query(std::string_view name) const noexcept {
        return query_value(head_->query(), name);
    }
    // Returns the first query parameter of that name as a T: std::string (decoded, '+' is a space),
    // std::string_view (as sent), an integer, bool ("true", "1", "false", "0"), a finite
    // floating-point number, or a type with `bool parse_parameter(std::string_view, T&)` in its
    // namespace, which gets the decoded text. Returns nothing if the parameter is absent or is not
    // a T. query(name), require_query() and optional_query() tell the two apart.
    template <class T>
    std::optional<T> query(std::string_view name) const {
        return convert<T>(query(name), internal::plus_sign::space);
    }
    // Returns a parameter that must be present. Errors: status_error, 400 with the parameter's
    // name, if it is absent or is not a T.
    template <class T>
    T require_query(std::string_view name) const {
        return require<T>("query", name, query(name), internal::plus_sign::space);
    }
    // Returns a parameter that may be absent, or nothing. Errors: status_error, 400, if it is not a
    // T.
    template <class T>
    std::optional<T> optional_query(std::string_view name) const {
        const std::optional<std::string_view> raw = query(name);
        if (!raw) return std::nullopt;
        return require<T>("query", name, raw, internal::plus_sign::space);
    }
    // Returns every query parameter of that name, in order. Errors: status_error, 400, if one is
    // not a T.
    template <class T = std::string>
    std::vector<T> query_all(std::string_view name) const {
        std::vector<T> all;
        std::string_view rest = head_->query();
        while (const auto raw = internal::next_query_value(rest, name)) {
            all.push_back(require<T>("query", name, raw, internal::plus_sign::space));
        }
        return all;
    }
    // Returns the path parameter as a T; see query(). Returns nothing if the route has no parameter
    // of that name, or if it is not a T.
    template <class T = std::string>
    std::optional<T> parameter(std::string_view name) const {
        return convert<T>(parameters_.find(name), internal::plus_sign::literal);
    }
    // Returns the path parameter as a T. Errors: status_error, 400, if it is not a T;
    // std::out_of_range if the route has no parameter of that name.
    template <class T = std::string>
    T require_parameter(std::string_view name) const {
        const std::optional<std::string_view> raw = parameters_.find(name);
        if (!raw) internal::refuse_unknown_parameter(name);
        return require<T>("path", name, raw, internal::plus_sign::literal);
    }

    // Hands a value to the later filters and the handler of this request. A request holds one value
    // of each type; a second one replaces the first. The value is destroyed with the request, also
    // if the request is stopped. It is destroyed before the producer of a streamed body begins, as
    // are the locals of filters and handlers, so the producer must own what it needs. Errors: what
    // moving the value throws, and std::bad_alloc; nothing has changed then. Cost: one allocation.
    template <class T>
    T& set(T value) {
        return values_.set<T>(std::move(value));
    }
    // Returns the value of that type, or nullptr if none was set.
    template <class T>
    T* find() noexcept {
        static_assert(std::is_same_v<T, std::decay_t<T>>, "values are kept by their plain type");
        return values_.find<T>();
    }
    template <class T>
    const T* find() const noexcept {
        static_assert(std::is_same_v<T, std::decay_t<T>>, "values are kept by their plain type");
        return values_.find<T>();
    }
    // Returns a value that a filter must have set. Errors: std::out_of_range if none has.
    template <class T>
    T& get() {
        T* const value = find<T>();
        if (value == nullptr) internal::refuse_unset_value();
        return *value;
    }
    template <class T>
    const T& get() const {
        const T* const value = find<T>();
        if (value == nullptr) internal::refuse_unset_value();
        return *value;
    }

private:
    friend class next_handler;

    template <class T>
    static std::optional<T> convert(std::optional<std::string_view> raw, internal::plus_sign plus) {
        if (!raw) return std::nullopt;
        return internal::parse_value<T>(*raw, plus);
    }
    template <class T>
    static T require(std::string_view kind, std::string_view name,
                     std::optional<std::string_view> raw, internal::plus_sign plus) {
        std::optional<T> value = convert<T>(raw, plus);
        if (!value) internal::refuse_parameter(kind, name, raw, internal::form_of<T>());
        return *std::move(value);
    }

    const request_head* head_;
    const request_origin* origin_;
    std::string_view body_;
    path_parameters parameters_;
    internal::request_values values_;
};

// A std::string_view that is not const. It may change or was made here, so its text may be gone
// before the response is.
template <class View>
concept passing_view =
    std::same_as<View, std::string_view> || std::same_as<View, std::string_view&>;

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

// What a handler answers. Movable and copyable. A static body is never copied, and an owned one is
// moved. Copies share a streamed body, which can be sent once.
class response {
public:
    // Makes an answer without a body. Errors: a code outside 100 to 599 stops the process.
    explicit response(int status = 200) noexcept;

    // Makes an answer of the media type that the name says; text/plain and text/html are in UTF-8.
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
    template <passing_view View>
    static response text(View&& body, int status = 200) {
        return text(std::string(body), status);
    }
    template <passing_view View>
    static response html(View&& body, int status = 200) {
        return html(std::string(body), status);
    }
    template <passing_view View>
    static response json(View&& body, int status = 200) {
        return json(std::string(body), status);
    }
    // Makes an answer with a short text: `reason`, or the code's standard phrase. It has no body if
    // the code allows none.
    static response status(int code, static_text reason = {}) noexcept;

    int status() const noexcept { return status_; }
    // Returns the body; "" if it is streamed.
    std::string_view body() const noexcept { return owns_ ? std::string_view(owned_) : static_; }
    // Returns the streamed body, or nullptr. See body.hpp.
    const std::shared_ptr<body_source>& source() const noexcept { return source_; }
    std::string_view content_type() const noexcept { return type_.view(); }
    // Returns the other fields as they will be sent: lines that end in CRLF.
    std::string_view fields() const noexcept { return fields_; }
    // Returns the value of the first of those fields that has this name.
    std::optional<std::string_view> find(std::string_view name) const noexcept;
    bool closes() const noexcept { return close_; }

    response& body(static_text text) & noexcept;
    template <std::same_as<std::string> String>
    response& body(String text) & noexcept {
        owns_ = true;
        owned_ = std::move(text);
        source_ = nullptr;
        return *this;
    }
    template <passing_view View>
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
    // Changes only the code.
    response& with_status(int code) & noexcept;

    response&& body(static_text text) && noexcept { return std::move(body(text)); }
    template <std::same_as<std::string> String>
    response&& body(String text) && noexcept {
        return std::move(body(std::move(text)));
    }
    template <passing_view View>
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

namespace internal {

// What an answer's code says about its content, whatever the fields say (RFC 9110 sections 6.4.1
// and 15.3.6). The server frames by it what it sends, and the client what it receives.
enum class answer_content : unsigned char {
    any,     // framed by the fields
    empty,   // framed by the fields, but the sender sends no content: 205
    absent,  // the answer ends with its head: 1xx, 204, 304
};

}  // namespace internal

// Returns the rule for answers with this code.
constexpr internal::answer_content content_of(int status) noexcept {
    if (status == 200) [[likely]]
        return internal::answer_content::any;
    if (status < 200 || status == 204 || status == 304) return internal::answer_content::absent;
    return status == 205 ? internal::answer_content::empty : internal::answer_content::any;
}

namespace internal {

// Returns true if an answer with this code ends with its head: 1xx, 204, 304.
inline bool bodyless(int status) noexcept {
    return content_of(status) == answer_content::absent;
}

}  // namespace internal

// What the connection, not the handler, knows about an answer.
struct serialize_options {
    bool keep_alive = true;
    bool head_only = false;  // the request was HEAD: the same fields, no body
    // the request's; a 1.0 client must be told that it may keep the connection
    int minor_version = 1;
    std::string_view date = {};                // IMF-fixdate, see date_cache; "": no Date field
    std::optional<std::uint64_t> length = {};  // of a body that is not in the response
    bool chunked = false;                      // write Transfer-Encoding instead of Content-Length
    bool unframed = false;  // write neither: the end of the connection ends the body
};

// Appends the answer's bytes to `out`. Cost: no allocation once `out` has the capacity; the body is
// copied once, into `out`.
void serialize(const response&, const serialize_options&, std::string& out);
inline void serialize(const response& answer, bool keep_alive, bool head_only, std::string& out) {
    serialize(answer, {.keep_alive = keep_alive, .head_only = head_only}, out);
}
// Appends the answer's head only, for callers that send the body from where it lies.
void serialize_head(const response&, const serialize_options&, std::string& out);

}  // namespace coppice::http
