// The protocols of io/service_manager.hpp.
#include <coppice/io/service_manager.hpp>

#include <coppice/base/saturating.hpp>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <stdexcept>

namespace coppice::io {

using namespace internal;

namespace {

constexpr int first_passed = 3;

[[noreturn]] void refuse_passed(const std::string& what) {
    throw std::runtime_error("activated_sockets: " + what);
}

// Returns nothing if the variable is not set. Errors: std::runtime_error if it is no number up to
// `most`.
std::optional<std::uint64_t> number_in(const char* variable, std::uint64_t most) {
    const char* const text = std::getenv(variable);
    if (text == nullptr) return std::nullopt;
    const std::string_view digits = text;
    std::uint64_t number = 0;
    const char* const end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end || number > most) {
        throw std::runtime_error(std::string(variable) + " is '" + text +
                                 "', but must be a number from 0 to " + std::to_string(most));
    }
    return number;
}

int option_of(int descriptor, int option) noexcept {
    int value = -1;
    socklen_t size = sizeof value;
    return ::getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

activated_socket take_passed(int descriptor, std::string name) {
    const std::string which =
        "descriptor " + std::to_string(descriptor) + (name.empty() ? "" : " (" + name + ")");
    sockaddr_storage at{};
    socklen_t size = sizeof at;
    if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
        refuse_passed(which + " is no open socket: check LISTEN_FDS");
    }
    if (at.ss_family != AF_INET && at.ss_family != AF_INET6 && at.ss_family != AF_UNIX) {
        refuse_passed(which + " is neither IPv4 nor IPv6 nor Unix");
    }
    if (option_of(descriptor, SO_TYPE) != SOCK_STREAM ||
        option_of(descriptor, SO_ACCEPTCONN) != 1) {
        refuse_passed(which + " is no stream socket that listens: use ListenStream= and Accept=no");
    }
    const int status = ::fcntl(descriptor, F_GETFL);
    if (status < 0 || ::fcntl(descriptor, F_SETFL, status | O_NONBLOCK) != 0 ||
        ::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
        refuse_passed(which + ": " + std::system_category().message(errno));
    }
    return {descriptor, std::move(name),
            endpoint::from(reinterpret_cast<const sockaddr*>(&at), size)};
}

std::vector<std::string> names_in(std::string_view list) {
    std::vector<std::string> names;
    for (;;) {
        const std::size_t colon = list.find(':');
        names.emplace_back(list.substr(0, colon));
        if (colon == list.npos) return names;
        list.remove_prefix(colon + 1);
    }
}

// How long a message may wait for room in the queue of the service manager.
constexpr duration room_time_max = std::chrono::seconds(1);

bool has_line(std::string_view message, std::string_view line) noexcept {
    for (;;) {
        const std::size_t end = message.find('\n');
        if (message.substr(0, end) == line) return true;
        if (end == message.npos) return false;
        message.remove_prefix(end + 1);
    }
}

// Adds the time that Type=notify-reload asks for to the line RELOADING=1.
std::string with_time_of_reload(std::string_view message) {
    std::string text(message);
    if (!has_line(message, "RELOADING=1")) return text;
    using std::chrono::microseconds;
    const duration now = monotonic_clock().now().time_since_epoch();
    return text +
           "\nMONOTONIC_USEC=" + std::to_string(std::chrono::floor<microseconds>(now).count());
}

// Sends a datagram. While the receiver's queue is full, it waits for room until `deadline`. Returns
// the error, or 0.
int send_before(time_point deadline, int s, const endpoint& to, std::string_view text) noexcept {
    using std::chrono::microseconds;
    for (;;) {
        // The system takes 0 for no limit.
        const auto left = std::max(
            std::chrono::ceil<microseconds>(deadline - monotonic_clock().now()), microseconds(1));
        const timeval time{.tv_sec = left / std::chrono::seconds(1),
                           .tv_usec = (left % std::chrono::seconds(1)).count()};
        if (::setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time) != 0) return errno;
        if (::sendto(s, text.data(), text.size(), MSG_NOSIGNAL, to.data(), to.size()) >= 0)
            return 0;
        if (errno != EINTR) return errno;
        // A signal has interrupted the wait.
        if (monotonic_clock().now() >= deadline) return EAGAIN;
    }
}

std::error_code send_datagram(const endpoint& to, std::string_view text) noexcept {
    const int s = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s < 0) return {errno, std::system_category()};
    const int error = send_before(monotonic_clock().now() + room_time_max, s, to, text);
    ::close(s);
    return {error, std::system_category()};
}

}  // namespace

std::vector<activated_socket> activated_sockets() {
    const auto process = number_in("LISTEN_PID", INT_MAX);
    const auto count = number_in("LISTEN_FDS", INT_MAX - first_passed);
    const char* const told = std::getenv("LISTEN_FDNAMES");
    std::vector<activated_socket> sockets;
    if (!process || !count || *process != static_cast<std::uint64_t>(::getpid())) return sockets;
    const auto names = told != nullptr && *count != 0 ? names_in(told) : std::vector<std::string>();
    if (told != nullptr && names.size() != *count) {
        refuse_passed("LISTEN_FDNAMES has " + std::to_string(names.size()) +
                      " names, but LISTEN_FDS is " + std::to_string(*count));
    }
    for (int i = 0; i != static_cast<int>(*count); ++i) {
        const auto index = static_cast<std::size_t>(i);
        sockets.push_back(take_passed(first_passed + i, names.empty() ? "" : names[index]));
    }
    for (const char* const variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) {
        ::unsetenv(variable);
    }
    return sockets;
}

std::error_code notify_service_manager(std::string_view message) noexcept {
    const char* const at = std::getenv("NOTIFY_SOCKET");
    if (at == nullptr || *at == '\0') return {};
    const bool known = *at == '/' || *at == '@';
    const result<endpoint> to = endpoint::unix_path(at);
    if (!known || !to) return std::make_error_code(std::errc::invalid_argument);
    try {
        return send_datagram(to.value(), with_time_of_reload(message));
    } catch (const std::bad_alloc&) {
        return std::make_error_code(std::errc::not_enough_memory);
    }
}

std::optional<duration> watchdog_time() {
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max() / 1000;
    const auto process = number_in("WATCHDOG_PID", INT_MAX);
    const auto time = number_in("WATCHDOG_USEC", most);
    if (!time || *time == 0) return std::nullopt;
    if (process && *process != static_cast<std::uint64_t>(::getpid())) return std::nullopt;
    return std::chrono::microseconds(static_cast<std::int64_t>(*time));
}

}  // namespace coppice::io
