// access_log: one line for each answered request, written by the log's own thread.
#pragma once
// Loops collect lines in their own buffers and hand them over in batches, after the answers have
// been written. The log's thread writes the batches to the file. If the file is slower than the
// server, the log drops and counts lines instead of keeping them without bound: it never delays a
// request.
//
// Rotation: rename the file, then call reopen(). The thread continues with a new file of that name
// between two batches, so each line is in exactly one of the files, whole.
//
// server_options::access_log_format chooses the lines; see access_log_format. What a client sends
// cannot end a line or a field of it, in any format.

#include <coppice/base/lifetime.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

namespace coppice::http {

// What a line is. Programs read lines, so the formats are stable. `seconds` are those from the
// request's bytes to its answer; bytes that are not a request have "-" or null for what only a
// request has.
//
//   plain     the client's address and port, the time, the request line, the status, the bytes of
//             the body, and the seconds:
//             127.0.0.1:40312 [21/Nov/2026:10:05:50 +0000] "GET /a HTTP/1.1" 200 13 0.000042
//   combined  Apache's: without the port, "-" for 0 bytes, then Referer and User-Agent. A quote or
//             a backslash has a backslash before it, other bytes than visible ASCII are \xHH:
//             127.0.0.1 - - [21/Nov/2026:10:05:50 +0000] "GET /a HTTP/1.1" 200 13 "-" "curl/8.5.0"
//   traced    combined, then request::id(), the traceparent of request::trace(), and the seconds:
//             ... "-" "curl/8.5.0" 5e6f...01 00-4bf9...36-00f0...b7-01 0.000042
//   json      an object in one line. Its members, in this order: time (RFC 3339), client, port,
//             method, target, protocol, host, status, bytes, seconds, referer, user_agent,
//             request_id, traceparent, parent_span (of the client's traceparent). A member without
//             a value is null. Bytes that are not UTF-8 are U+FFFD. Control characters and the
//             other ends of lines, U+0085, U+2028, and U+2029, are escaped.
enum class access_log_format : unsigned char { plain, combined, traced, json };

// Writes lines to a file on its own thread. Threads: any. Lifetime: outlives the servers that use
// it; the destructor writes what has been handed over, and joins the thread.
class access_log : immovable {
public:
    // The most bytes that may wait to be written. Lines beyond it are dropped and counted.
    static constexpr std::size_t waiting_bytes_max = 4u << 20;

    // Appends to the file, and creates it if it does not exist. Errors: std::system_error, also for
    // a name with a NUL in it, and if the system has no thread for the log.
    explicit access_log(const std::string& path);
    // Writes to an open file, which the caller still owns. Lifetime: the file stays open until the
    // log is destroyed. Errors: std::system_error.
    explicit access_log(int file);
    ~access_log();

    // Takes whole lines, and leaves `lines` empty, perhaps with another buffer. Drops and counts
    // them if waiting_bytes_max would be exceeded, or if there is no memory for them. Blocks: for a
    // lock held for the length of a swap or a copy. Cost: no allocation in steady state.
    void write(std::string& lines) noexcept;
    // Opens the path again, for what is handed over from now on. A batch that the thread is writing
    // still goes to the old file. Blocks: while the file is opened. Errors: the system's, and the
    // old file then stays in use; std::errc::operation_not_supported for a log that was given an
    // open file.
    std::error_code reopen() noexcept;
    // Returns how many lines were dropped because too many waited, because there was no memory for
    // them, or because the file could not be written.
    std::uint64_t dropped() const noexcept;

private:
    void run() noexcept;

    const std::string path_;    // "": the file is the caller's
    int file_;                  // owned by the thread from its start to its end
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::string waiting_;
    int reopened_ = -1;  // the file for the thread to continue with; -1: no change
    std::uint64_t dropped_ = 0;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace coppice::http
