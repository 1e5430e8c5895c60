// Forms with files: multipart/form-data bodies, part by part and piece by piece (RFC 7578).
#pragma once
// A handler declared with read_body() reads an upload of any length in bounded memory:
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
// Nothing is received while the handler does not read, so a slow store slows its client.
//
// The parser is strict, so that no two readers of one body can see different parts. Lines end in
// CRLF. Only spaces and CRLF follow a boundary. A part has exactly one Content-Disposition with one
// name. Its content does not begin with the boundary. Two things are refused because other readers
// interpret them: a boundary after a bare CR or LF, and the parameters of RFC 2231 (name*,
// filename*). A body that ends before its last boundary is refused too. Bytes before the first
// boundary and after the last are dropped.

#include <coppice/base/lifetime.hpp>
#include <coppice/http/body.hpp>
#include <coppice/http/internal/multipart_state.hpp>
#include <coppice/http/request.hpp>
#include <coppice/task/task.hpp>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::http {

// What a client may send; a request beyond a limit is refused with 413.
struct multipart_limits {
    std::size_t part_head_bytes_max = 8u << 10;  // for the fields of one part
    std::size_t parts_max = 1000;                // per body
    // kept by parse_multipart() and read_multipart(), for all parts together
    std::size_t bytes_max = 8u << 20;
};

// What a part says about itself. All of it comes from the client.
struct multipart_head {
    std::string name;                     // the name of the form's field
    std::optional<std::string> filename;  // as sent, only for a file; see safe_file_name()
    std::string content_type;             // as sent; "text/plain" if it was not sent
};

// Returns a safe file name from `filename`: the part after the last slash or backslash, without
// control bytes, without dots and spaces at its ends, and at most 255 bytes long. Returns "" if
// nothing is left. The name says nothing about the content of the file, nor whether such a file
// exists. Errors: std::bad_alloc.
std::string safe_file_name(std::string_view filename);

// Returns the boundary in a multipart/form-data Content-Type. Errors: status_error, 415 for another
// media type or none, 400 without a boundary of 1 to 70 bytes.
std::string multipart_boundary(std::optional<std::string_view> content_type);

// Takes a body apart as its bytes arrive, without waiting. Threads: one at a time.
class multipart_parser {
public:
    // What next() has found.
    enum class event : unsigned char {
        wants_more,  // the input is used up
        part,        // a part begins; see head()
        data,        // a piece of the part's content; see data()
        part_end,    // the part has ended
        end,         // the last part has ended; everything that follows is dropped
    };

    // Makes a parser. Errors: std::invalid_argument for a boundary that is empty, has more than 70
    // bytes, or has a byte that no boundary may have; std::bad_alloc.
    explicit multipart_parser(std::string_view boundary, multipart_limits limits = {});

    // Takes bytes from the front of `input`, up to the next event. How the input was cut changes
    // only how the content is cut into pieces. Errors: status_error, 400 for a malformed body, 413
    // for one beyond the limits; every further call throws the same again. After std::bad_alloc, no
    // further call is allowed. Cost: O(bytes); allocates only for a part's head.
    event next(std::string_view& input);
    // Returns the head of the part that began last. Lifetime: until the next part begins.
    const multipart_head& head() const noexcept { return head_; }
    // Returns a piece that is not empty. Lifetime: until the next call; a view into the input or
    // into this parser.
    std::string_view data() const noexcept { return data_; }
    // Checks that the body is complete; called when it has ended. Errors: status_error, 400, if its
    // last boundary has not arrived.
    void finish() const;

private:
    using state = internal::multipart_state;

    bool find_delimiter(std::string_view& input);
    bool find_loose_boundary();
    bool step_behind_boundary(char byte);
    bool take_fields(std::string_view& input);
    void read_fields();
    void read_disposition(std::string_view value);
    void await_delimiter(state where) noexcept;
    [[noreturn]] void fail(int status, const char* reason);

    std::string delimiter_;  // CRLF, two dashes, the boundary
    std::string fields_;     // the fields of the part whose head is being read
    std::string_view data_;
    multipart_head head_;
    multipart_limits limits_;
    std::size_t matched_ = 0;  // bytes of the delimiter that arrived last
    std::size_t assumed_ = 0;  // of these, the ones that were not sent: a CRLF that came before
    // 0: within a line. Otherwise 1 plus the number of bytes, after a bare CR or LF, that match a
    // delimiter.
    std::size_t loose_ = 0;
    std::size_t parts_ = 0;
    const char* reason_ = "";
    int status_ = 0;
    state state_ = state::preamble;
};

// Reads the parts of a body as it arrives. Threads: one at a time; next() and read() may be awaited
// on any. Stopping: a stopped call may be repeated, and nothing is lost.
class multipart_reader : immovable {
public:
    // Reads the body of a request, for a handler declared with read_body(). Errors: as
    // multipart_boundary(); status_error, 400, for two Content-Type fields; std::logic_error for a
    // body that was read from before. A request of another handler stops the process. Lifetime: the
    // request outlives this reader.
    explicit multipart_reader(request& r, multipart_limits limits = {});
    // Reads any body; `content_type` is the value of its Content-Type. Lifetime: the body outlives
    // this reader.
    multipart_reader(body_reader& body, std::optional<std::string_view> content_type,
                     multipart_limits limits = {});

    // Completes with the next part, valid until the next call; nullptr at the end of the body.
    // Drops what was not read of the part before. Stops the caller if the client goes away. Errors:
    // status_error, as multipart_parser; http::refused, as body_reader::read().
    task<const multipart_head*> next();
    // Completes with the next piece of the part's content; "" at its end, and if there is no
    // current part. Lifetime: until the next call. Stops and errors: as next().
    task<std::string_view> read();

private:
    // Passes the next bytes of the body to the parser. Completes with false if the body has ended.
    task<bool> receive();

    body_reader* body_;
    multipart_parser parser_;
    std::string_view input_;  // of the body's current piece, not parsed yet
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

    // Returns the first part of that name, or nullptr if there is none.
    const multipart_part* find(std::string_view name) const noexcept;
    // Returns the content of the first part of that name that is not a file.
    std::optional<std::string_view> text(std::string_view name) const noexcept;
};

// Returns the form in a request's body, for handlers that get the body whole. Errors: status_error:
// 415, 400, and 413 as above, 400 for two Content-Type fields, and 413 beyond limits.bytes_max.
multipart_form parse_multipart(const request& r, const multipart_limits& limits = {});
// Reads the form, for handlers declared with read_body(). It must be the only reader of the body.
// What it keeps counts toward server_options::buffered_bytes_max until the handler has ended.
// Errors: as parse_multipart(); std::logic_error if the body was read from before; http::refused,
// as body_reader::read() and keep(). Stopping: the part of the body that was read is lost.
task<multipart_form> read_multipart(request& r, multipart_limits limits = {});

}  // namespace coppice::http
