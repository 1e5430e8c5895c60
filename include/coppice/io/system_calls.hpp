// system_calls: what a ring's operating system does at once; the kernel's, or a simulation's.
#pragma once
// Everything here returns without waiting, but for look_up(). What may wait is an operation of the
// ring. Sockets and files are opened and closed through their context's ring, so that a simulation
// can replace the kernel as a whole.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal.hpp>
#include <coppice/base/result.hpp>
#include <coppice/io/endpoint.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace coppice::io {

namespace internal {

enum class shutdown_direction { receive, send, both };

}  // namespace internal

// The signals that one set receives. Lifetime: of what it is asked from; end() is called once.
class received_signals {
public:
    // A descriptor that is readable (8 bytes) while a signal may wait; the caller's.
    virtual internal::result<int> descriptor() noexcept = 0;
    // The number of a signal that has come, which has then been received; 0: there is none.
    virtual int take() noexcept = 0;
    // The descriptor was read, and take() is left to the next reader.
    virtual void keep() noexcept = 0;
    // Nothing is received any more.
    virtual void end() noexcept = 0;

protected:
    ~received_signals() = default;
};

namespace internal {

// Threads: as the calls of the kernel. Errors: the kernel's, as values.
class system_calls {
public:
    // A non-blocking socket that is closed on exec.
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
    // Whether a stream is open and has nothing to receive, neither bytes nor an end nor an error.
    virtual bool is_quiet(int fd) noexcept = 0;
    // Moves bytes of a file into a stream, as many as fit; 0: the file ends there. Errors: also
    // operation_would_block where it cannot be done at once, if ever: read and send then.
    virtual result<std::size_t> send_file(int fd, int file, std::uint64_t offset,
                                          std::size_t size) noexcept = 0;
    // `flags` and `mode` are those of open(2). Errors: also invalid_seek for what has no offsets: a
    // pipe, a terminal; it is not waited for.
    virtual result<int> open(const char* path, int flags, unsigned mode) noexcept = 0;
    virtual result<std::uint64_t> file_size(int fd) noexcept = 0;
    virtual std::error_code resize(int fd, std::uint64_t size) noexcept = 0;
    // Gives one file the name of another, which goes. Errors: also invalid_argument if `to` leads
    // to something that is no regular file.
    virtual std::error_code replace(const char* from, const char* to) noexcept = 0;
    virtual void remove(const char* path) noexcept = 0;
    virtual void close(int fd) noexcept = 0;
    // Receives the signals from now on, and those that wait already. Errors: also invalid_argument
    // for what is no signal, or cannot be waited for.
    virtual result<received_signals*> receive_signals(std::span<const int> signals) noexcept = 0;

    // The time of day.
    virtual std::chrono::sys_seconds wall_time() noexcept = 0;

    // After how long look_up() may be asked on the loop; nothing: it blocks, and a worker asks.
    virtual std::optional<duration> look_up_delay(const std::string& host) noexcept = 0;
    // Appends the host's endpoints to `found`. 0, or an error of getaddrinfo's.
    virtual int look_up(const std::string& host, std::uint16_t port,
                        std::vector<endpoint>& found) noexcept = 0;

protected:
    ~system_calls() = default;
};

// Those of the kernel that runs this program.
system_calls& kernel() noexcept;

}  // namespace internal

}  // namespace coppice::io
