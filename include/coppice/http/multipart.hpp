// Forms with files: multipart/form-data bodies, part by part and piece by piece (RFC 7578).
#pragma once
// A handler that read_body() declares reads an upload of any length in bounded memory:
//
//   http::multipart_reader parts(request);
//   while (const http::multipart_head* part = co_await parts.next()) {
//       for (;;) {
//           const std::string_view piece = co_await parts.read();
//           if (piece.empty()) break;
//           co_await store(piece);
//       }
//   }
//
// Nothing is received while the handler does not read: a slow store slows its client.
//
// The grammar is read strictly, so that no two readers of one body can see different parts: lines
// end in CRLF, a boundary is followed by nothing but spaces and its CRLF, a part has exactly one
// Content-Disposition with one name, and its content does not begin with the boundary. A boundary
// behind a bare CR or LF is refused, which some readers take for one, and so are the parameters of
// RFC 2231 (name*, filename*), which some read in place of the others. A body that ends before its
// last boundary is refused. What is before the first boundary and behind the last is dropped.

#include <coppice/base/lifetime.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/message.hpp>
#include <coppice/task/task.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::http {

// What a client may send; beyond it the request is refused with 413.
struct multipart_limits {
    std::size_t part_head_bytes_max = 8u << 10;  // the fields of one part
    std::size_t parts_max = 1000;                // of one body
    std::size_t bytes_max = 8u << 20;  // kept by parse_multipart() and read_multipart(), all parts
};

// What a part says of itself. Whatever is in it comes from the client.
struct multipart_head {
    std::string name;                     // of the form's field
    std::optional<std::string> filename;  // as sent, for a file: see safe_file_name()
    std::string content_type;             // as sent; "text/plain" without
};

// A name for a file that `filename` may mean: its part behind the last slash or backslash, without
// control bytes, without dots and spaces at its ends, and of 255 bytes at most. "" if nothing is
// left. It says nothing about what is in the file, nor whether there is one of that name.
// Errors: std::bad_alloc.
std::string safe_file_name(std::string_view filename);

// The boundary of a multipart/form-data Content-Type. Errors: status_error, 415 for another media
// type or none, 400 without a boundary of 1 to 70 bytes.
std::string multipart_boundary(std::optional<std::string_view> content_type);

// Takes a body apart as its bytes come, without waiting. Threads: one at a time.
class multipart_parser {
public:
    enum class event : unsigned char {
        wants_more,  // the input is used up
        part,        // a part begins: head()
        data,        // a piece of its content: data()
        part_end,    // it has ended
        end,         // so has the last; everything that follows is dropped
    };

    // Errors: std::invalid_argument for a boundary that is empty, has more than 70 bytes, or has
    // one that no boundary may have; std::bad_alloc.
    explicit multipart_parser(std::string_view boundary, multipart_limits limits = {});

    // Takes bytes from the front of `input`, up to the next event, which does not depend on where
    // the input was cut, but for the cuts of the pieces. Errors: status_error, 400 for a body that
    // is malformed, 413 for one beyond the limits: the same again for every further call.
    // std::bad_alloc: no further call. Cost: O(bytes), no allocation but for a part's head.
    event next(std::string_view& input);
    // Of the part that began last. Lifetime: until the next part begins.
    const multipart_head& head() const noexcept { return head_; }
    // Not empty. Lifetime: until the next call; a view into the input or into this.
    std::string_view data() const noexcept { return data_; }
    // Call when the body has ended. Errors: status_error, 400, if its last boundary has not come.
    void finish() const;

private:
    enum class state : unsigned char {
        preamble,
        boundary,
        one_dash,
        padding,
        line_feed,
        last_padding,
        last_line_feed,
        fields,
        content,
        epilogue,
        failed
    };
    bool find_delimiter(std::string_view& input);
    bool find_loose_boundary();
    bool step_behind_boundary(char byte);
    bool take_fields(std::string_view& input);
    void read_fields();
    void read_disposition(std::string_view value);
    void await_delimiter(state where) noexcept;
    [[noreturn]] void fail(int status, const char* reason);

    std::string delimiter_;  // CRLF, two dashes, the boundary
    std::string fields_;     // of the part whose head is being read
    std::string_view data_;
    multipart_head head_;
    multipart_limits limits_;
    std::size_t matched_ = 0;  // bytes of the delimiter that came last
    std::size_t assumed_ = 0;  // of them, those that were not sent: a CRLF that came before
    // 0: within a line; otherwise bytes that came behind a bare CR or LF as in a delimiter, and 1
    std::size_t loose_ = 0;
    std::size_t parts_ = 0;
    const char* reason_ = "";
    int status_ = 0;
    state state_ = state::preamble;
};

// Reads the parts of a body as it arrives. Threads: one at a time; next() and read() on any.
// Stopping: what was stopped may be called again, and nothing is lost.
class multipart_reader : immovable {
public:
    // The body of a request whose handler read_body() declares. Errors: as multipart_boundary(),
    // and status_error, 400, for two Content-Type fields; std::logic_error for a body that has been
    // read from. Any other request stops the process. Lifetime: the request outlives this.
    explicit multipart_reader(request& r, multipart_limits limits = {});
    // Any body, with the value of its Content-Type. Lifetime: the body outlives this.
    multipart_reader(body_reader& body, std::optional<std::string_view> content_type,
                     multipart_limits limits = {});

    // The next part, valid until the next call; nullptr at the end of the body. What was not read
    // of the part before is dropped. Stops the caller if the client goes away. Errors:
    // status_error, as multipart_parser; http::refused, as body_reader::read().
    task<const multipart_head*> next();
    // The next piece of the part's content; "" at its end, and where no part is. Lifetime: until
    // the next call. Stops and errors: as next().
    task<std::string_view> read();

private:
    // Gives the parser the next bytes of the body. False: it has ended.
    task<bool> receive();

    body_reader* body_;
    multipart_parser parser_;
    std::string_view input_;  // of the body's present piece, not parsed yet
    bool in_part_ = false;
    bool ended_ = false;
};

// A part with its content.
struct multipart_part : multipart_head {
    std::string data;
};

// A whole form, in the order in which it was sent.
class multipart_form {
public:
    std::vector<multipart_part> parts;

    // The first part of that name; nullptr: there is none.
    const multipart_part* find(std::string_view name) const noexcept;
    // The content of the first part of that name that is no file.
    std::optional<std::string_view> text(std::string_view name) const noexcept;
};

// The form in a request's body, for handlers that get the body whole.
// Errors: status_error: 415, 400 and 413 as above, 400 for two Content-Type fields, and 413 beyond
// limits.bytes_max.
multipart_form parse_multipart(const request& r, const multipart_limits& limits = {});
// The same for handlers that read_body() declares; once, and before anything else reads the body:
// otherwise std::logic_error. What it keeps counts among server_options::buffered_bytes_max
// until the handler has ended. Stopping: the part of the body that was read is lost. Errors: also
// http::refused, as body_reader::read() and keep().
task<multipart_form> read_multipart(request& r, multipart_limits limits = {});

}  // namespace coppice::http
