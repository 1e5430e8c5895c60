// The kernel's side of io/internal/system_calls.hpp.
#include <coppice/io/internal/system_calls.hpp>

#include <fcntl.h>
#include <netdb.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <new>

#include "signals.hpp"

namespace coppice::io::internal {

namespace {

std::error_code last_error() noexcept {
    return {errno, std::system_category()};
}
std::error_code outcome(int returned) noexcept {
    return returned < 0 ? last_error() : std::error_code();
}

struct addresses {
    ~addresses() {
        if (first != nullptr) ::freeaddrinfo(first);
    }
    addrinfo* first = nullptr;
};

class kernel_calls final : public system_calls {
public:
    result<int> socket(int family, int type, int protocol) noexcept override {
        const int fd = ::socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
        if (fd < 0) return last_error();
        return fd;
    }
    std::error_code bind(int fd, const endpoint& at) noexcept override {
        return outcome(::bind(fd, at.data(), at.size()));
    }
    std::error_code listen(int fd, int backlog) noexcept override {
        return outcome(::listen(fd, backlog));
    }
    result<endpoint> local(int fd) noexcept override { return name(fd, &::getsockname); }
    result<endpoint> remote(int fd) noexcept override { return name(fd, &::getpeername); }
    std::error_code set_option(int fd, int level, int option, const void* value,
                               socklen_t size) noexcept override {
        return outcome(::setsockopt(fd, level, option, value, size));
    }
    std::error_code get_option(int fd, int level, int option, void* value,
                               socklen_t size) noexcept override {
        return outcome(::getsockopt(fd, level, option, value, &size));
    }
    std::error_code shutdown(int fd, shutdown_direction how) noexcept override {
        const int kernels = how == shutdown_direction::receive ? SHUT_RD
                            : how == shutdown_direction::send  ? SHUT_WR
                                                               : SHUT_RDWR;
        return outcome(::shutdown(fd, kernels));
    }
    bool is_quiet(int fd) noexcept override {
        char byte;
        return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
               (errno == EAGAIN || errno == EWOULDBLOCK);
    }
    result<std::size_t> send_file(int fd, int file, std::uint64_t offset,
                                  std::size_t size) noexcept override {
        auto at = static_cast<off_t>(offset);
        const ssize_t n = ::sendfile(fd, file, &at, size);
        if (n < 0) return last_error();
        return static_cast<std::size_t>(n);
    }
    result<int> open(const char* path, int flags, unsigned mode) noexcept override {
        // Opening a FIFO must not make the loop wait; a terminal must not become the process's
        // controlling terminal.
        const int fd = ::open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
        if (fd < 0) return last_error();
        if (::lseek(fd, 0, SEEK_CUR) < 0) {  // a FIFO and a terminal have no offsets
            const std::error_code failure = last_error();
            ::close(fd);
            return failure;
        }
        if (may_wait_for_disk(fd)) ::fcntl(fd, F_SETFL, flags);
        return fd;
    }
    result<std::uint64_t> file_size(int fd) noexcept override {
        struct stat about{};
        if (::fstat(fd, &about) != 0) return last_error();
        return static_cast<std::uint64_t>(about.st_size);
    }
    std::error_code resize(int fd, std::uint64_t size) noexcept override {
        return outcome(::ftruncate(fd, static_cast<off_t>(size)));
    }
    std::error_code replace(const char* from, const char* to) noexcept override {
        struct stat about{};
        if (::stat(to, &about) == 0 && !S_ISREG(about.st_mode)) {
            return std::make_error_code(S_ISDIR(about.st_mode) ? std::errc::is_a_directory
                                                               : std::errc::invalid_argument);
        }
        return outcome(::rename(from, to));
    }
    void remove(const char* path) noexcept override { ::unlink(path); }
    void close(int fd) noexcept override { ::close(fd); }
    result<received_signals*> receive_signals(std::span<const int> signals) noexcept override {
        return receive_process_signals(signals);
    }
    std::chrono::sys_seconds wall_time() noexcept override {
        return std::chrono::sys_seconds(std::chrono::seconds(std::time(nullptr)));
    }
    std::optional<duration> look_up_delay(const std::string&) noexcept override {
        return std::nullopt;
    }
    int look_up(const std::string& host, std::uint16_t port,
                std::vector<endpoint>& found) noexcept override {
        addrinfo hints{};
        hints.ai_socktype = SOCK_STREAM;  // list each address once
        addresses list;
        const int failed = ::getaddrinfo(host.c_str(), nullptr, &hints, &list.first);
        if (failed != 0) return failed;
        try {
            for (const addrinfo* a = list.first; a != nullptr; a = a->ai_next) {
                if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
                found.push_back(endpoint::from(a->ai_addr, a->ai_addrlen).with_port(port));
            }
        } catch (const std::bad_alloc&) {
            return EAI_MEMORY;
        }
        return found.empty() ? EAI_NONAME : 0;
    }

private:
    // Returns true for regular files and block devices. With O_NONBLOCK, io_uring would perform the
    // calls of such a file at once, on the loop.
    static bool may_wait_for_disk(int fd) noexcept {
        struct stat about{};
        return ::fstat(fd, &about) == 0 && (S_ISREG(about.st_mode) || S_ISBLK(about.st_mode));
    }
    static result<endpoint> name(int fd, int (*ask)(int, sockaddr*, socklen_t*)) noexcept {
        sockaddr_storage address{};
        socklen_t size = sizeof address;
        if (ask(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return last_error();
        return endpoint::from(reinterpret_cast<const sockaddr*>(&address), size);
    }
};

}  // namespace

system_calls& kernel() noexcept {
    static kernel_calls calls;
    return calls;
}

}  // namespace coppice::io::internal
