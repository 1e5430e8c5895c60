// Socket options as typed values: socket.set(io::no_delay(true)), socket.get<io::linger>().
#pragma once
// An option is a type with a level, a name, its value in the kernel's form, and its value in the
// user's form. A program may define its own options of the same shape.

#include <coppice/base/saturating.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>

namespace coppice::io {

// A type that the set() and get() of sockets accept.
template <class T>
concept socket_option = std::default_initializable<T> && requires(T& option, const T& read) {
    { T::level } -> std::convertible_to<int>;
    { T::name } -> std::convertible_to<int>;
    { option.data() } -> std::convertible_to<void*>;
    { read.data() } -> std::convertible_to<const void*>;
    { T::size } -> std::convertible_to<socklen_t>;
};

// An option that is on or off.
template <int Level, int Name>
class flag_option {
public:
    static constexpr int level = Level;
    static constexpr int name = Name;
    static constexpr socklen_t size = sizeof(int);
    constexpr explicit flag_option(bool on = false) noexcept : kernels_(on) {}
    constexpr bool value() const noexcept { return kernels_ != 0; }
    void* data() noexcept { return &kernels_; }
    const void* data() const noexcept { return &kernels_; }

private:
    int kernels_;
};

// An option that is a number. Its alias below states its unit and range.
template <int Level, int Name>
class number_option {
public:
    static constexpr int level = Level;
    static constexpr int name = Name;
    static constexpr socklen_t size = sizeof(int);
    constexpr explicit number_option(int value = 0) noexcept : kernels_(value) {}
    constexpr int value() const noexcept { return kernels_; }
    void* data() noexcept { return &kernels_; }
    const void* data() const noexcept { return &kernels_; }

private:
    int kernels_;
};

using no_delay = flag_option<IPPROTO_TCP, TCP_NODELAY>;  // sends small segments at once
using keep_alive = flag_option<SOL_SOCKET, SO_KEEPALIVE>;
using keep_alive_idle = number_option<IPPROTO_TCP, TCP_KEEPIDLE>;       // seconds, from 1
using keep_alive_interval = number_option<IPPROTO_TCP, TCP_KEEPINTVL>;  // seconds, from 1
using keep_alive_probes = number_option<IPPROTO_TCP, TCP_KEEPCNT>;      // 1 to 127
using user_timeout = number_option<IPPROTO_TCP, TCP_USER_TIMEOUT>;      // milliseconds; 0: default
using reuse_address = flag_option<SOL_SOCKET, SO_REUSEADDR>;
using reuse_port = flag_option<SOL_SOCKET, SO_REUSEPORT>;
using broadcast = flag_option<SOL_SOCKET, SO_BROADCAST>;  // permits sending to broadcast addresses
using v6_only = flag_option<IPPROTO_IPV6, IPV6_V6ONLY>;
// In bytes. The kernel doubles the value that is set, for its own overhead, and reports the doubled
// value.
using receive_buffer_size = number_option<SOL_SOCKET, SO_RCVBUF>;
using send_buffer_size = number_option<SOL_SOCKET, SO_SNDBUF>;

// What close() does with bytes that are not yet sent. Without a time, they are sent in the
// background. With 0 seconds, they are dropped, and the peer sees a reset.
class linger {
public:
    // The constants and the size that getsockopt and setsockopt take.
    static constexpr int level = SOL_SOCKET;
    static constexpr int name = SO_LINGER;
    static constexpr socklen_t size = sizeof(::linger);
    constexpr linger() noexcept = default;
    // Makes close() wait up to `time` for unsent bytes. Whole seconds: a negative time counts as 0,
    // and one beyond the kernel's maximum counts as that maximum.
    constexpr explicit linger(std::chrono::seconds time) noexcept
        : kernels_{1, saturating_cast<int>(time.count() < 0 ? 0 : time.count())} {}
    // Returns the time, if one is set.
    constexpr std::optional<std::chrono::seconds> value() const noexcept {
        if (kernels_.l_onoff == 0) return std::nullopt;
        return std::chrono::seconds(kernels_.l_linger);
    }
    // Return the kernel's form, which get() writes and set() reads.
    void* data() noexcept { return &kernels_; }
    const void* data() const noexcept { return &kernels_; }

private:
    ::linger kernels_{0, 0};
};

}  // namespace coppice::io
