// access_log: one line for each answered request, written by a thread of its own.
#pragma once
// Loops collect lines in their own buffers and hand them over, a batch at a time, after the answers
// have been written. The thread writes batches to the file. If the file is slower than the server,
// lines are dropped, and counted, rather than kept without bound: the log never holds up a request.
//
// Rotation: rename the file, then reopen(). The thread goes on with a new file of that name between
// two batches, so that each line is in one of the files, whole and once.
//
// A line: client address, time, request line, status, body bytes, seconds from the request's bytes
// to its answer. Tests look into lines, so the format is stable:
//
//   127.0.0.1:40312 [21/Nov/2026:10:05:50 +0000] "GET /plaintext HTTP/1.1" 200 13 0.000042

#include <coppice/base/lifetime.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

namespace coppice::http {

// Threads: any. Lifetime: the destructor writes what has been handed over, and joins.
class access_log : immovable {
public:
    // What may wait to be written; lines beyond it are dropped, and counted.
    static constexpr std::size_t waiting_bytes_max = 4u << 20;

    // Appends to the file, which is made if it is not there. Errors: std::system_error; also for a
    // name with a NUL in it.
    explicit access_log(const std::string& path);
    // Writes to an open file, which stays the caller's.
    explicit access_log(int file);
    ~access_log();

    // Takes whole lines over, and leaves `lines` empty, maybe with another buffer.
    // Blocks: for a lock held for the length of a swap or a copy. Cost: no allocation in steady
    // state.
    void write(std::string& lines) noexcept;
    // Opens the path again, for what is handed over from now on; the batch that the thread is
    // writing still goes to the file that was open before. Blocks: for the opening.
    // Errors: the system's, and then the file that is open is kept;
    // std::errc::operation_not_supported for a log that was given an open file.
    std::error_code reopen() noexcept;
    // Lines that were dropped because too many waited, or because the file took no more.
    std::uint64_t dropped() const noexcept;

private:
    void run() noexcept;

    const std::string path_;    // "": the file is the caller's
    int file_;                  // Owned by the thread from its start to its end.
    mutable std::mutex mutex_;  // guards what follows
    std::condition_variable changed_;
    std::string waiting_;
    int reopened_ = -1;  // what the thread is to go on with; -1: what it has
    std::uint64_t dropped_ = 0;
    bool ending_ = false;
    std::thread thread_;
};

}  // namespace coppice::http
