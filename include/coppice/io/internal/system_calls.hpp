// system_calls: what a ring's operating system answers at once; the kernel's or a simulation's.
#pragma once
// Every call returns without waiting, except for look_up(). Whatever may wait is an operation of
// the ring. Sockets and files are opened and closed through their context's ring, so that a
// simulation can replace the whole kernel.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/internal/result.hpp>
#include <coppice/io/endpoint.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace coppice::io::internal {

enum class shutdown_direction { receive, send, both };

// The signals that one set receives. Lifetime: that of the system_calls that returned it; end() is
// called once.
class received_signals {
public:
    // Returns a descriptor from which 8 bytes can be read while a signal may be waiting. The caller
    // owns it.
    virtual result<int> descriptor() noexcept = 0;
    // Receives a signal that has come: returns its number, or 0 if there is none.
    virtual int take() noexcept = 0;
    // Called after a read of the descriptor that is not followed by take(): makes it readable again
    // if a signal waits.
    virtual void keep() noexcept = 0;
    // Stops receiving.
    virtual void end() noexcept = 0;

protected:
    ~received_signals() = default;
};

// Threads: as the kernel's calls. Errors: the kernel's, as values.
class system_calls {
public:
    // Opens a non-blocking socket that is closed on exec.
    virtual result<int> socket(int family, int type, int protocol) noexcept = 0;
    virtual std::error_code bind(int fd, const endpoint& at) noexcept = 0;
    virtual std::error_code listen(int fd, int backlog) noexcept = 0;
    virtual result<endpoint> local(int fd) noexcept = 0;
    virtual result<endpoint> remote(int fd) noexcept = 0;
    virtual std::error_code set_option(int fd, int level, int name, const void* value,
                                       socklen_t size) noexcept = 0;
    virtual std::error_code get_option(int fd, int level, int name, void* value,
                                       socklen_t size) noexcept = 0;
    virtual std::error_code shutdown(int fd, shutdown_direction how) noexcept = 0;
    // Returns true if a stream is open and has nothing to receive: no bytes, no end, and no error.
    virtual bool is_quiet(int fd) noexcept = 0;
    // Moves as many bytes of a file into a stream as fit. Returns 0 at the end of the file.
    // Errors: also operation_would_block if it cannot be done at once, or not at all; the caller
    // then reads and sends.
    virtual result<std::size_t> send_file(int fd, int file, std::uint64_t offset,
                                          std::size_t size) noexcept = 0;
    // Opens a file; `flags` and `mode` are those of open(2). Errors: also invalid_seek for a file
    // without offsets (a pipe, a terminal), which the call does not wait for.
    virtual result<int> open(const char* path, int flags, unsigned mode) noexcept = 0;
    virtual result<std::uint64_t> file_size(int fd) noexcept = 0;
    virtual std::error_code resize(int fd, std::uint64_t size) noexcept = 0;
    // Renames a file over another one, which is removed. Errors: also invalid_argument if `to`
    // names something other than a regular file.
    virtual std::error_code replace(const char* from, const char* to) noexcept = 0;
    virtual void remove(const char* path) noexcept = 0;
    virtual void close(int fd) noexcept = 0;
    // Starts to receive the signals, including those that are already pending. Errors: also
    // invalid_argument for a number that is not a signal, or a signal that cannot be waited for.
    virtual result<received_signals*> receive_signals(std::span<const int> signals) noexcept = 0;

    // Returns the time of day.
    virtual std::chrono::sys_seconds wall_time() noexcept = 0;

    // Returns the delay after which look_up() may be called on the loop; or nothing if look_up()
    // blocks and must be called on a worker.
    virtual std::optional<duration> look_up_delay(const std::string& host) noexcept = 0;
    // Appends the host's endpoints to `found`. Returns 0, or an error of getaddrinfo. Blocks: if
    // look_up_delay() returns nothing.
    virtual int look_up(const std::string& host, std::uint16_t port,
                        std::vector<endpoint>& found) noexcept = 0;

protected:
    ~system_calls() = default;
};

// Returns the calls of the kernel that runs this program.
system_calls& kernel() noexcept;

}  // namespace coppice::io::internal
