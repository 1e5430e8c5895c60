// Socket options as typed values: socket.set(io::no_delay(true)), socket.get<io::linger>().
#pragma once
// An option is a type with level, name, its value as the kernel has it, and its value as users
// have it. A program adds its own by the same shape.

#include <coppice/base/saturating.hpp>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>

namespace coppice::io {

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

// An option that is a number; its unit and range are said where it is defined.
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

using no_delay = flag_option<IPPROTO_TCP, TCP_NODELAY>;  // small segments are not held back
using keep_alive = flag_option<SOL_SOCKET, SO_KEEPALIVE>;
using keep_alive_idle = number_option<IPPROTO_TCP, TCP_KEEPIDLE>;       // seconds, from 1
using keep_alive_interval = number_option<IPPROTO_TCP, TCP_KEEPINTVL>;  // seconds, from 1
using keep_alive_probes = number_option<IPPROTO_TCP, TCP_KEEPCNT>;      // 1 to 127
using user_timeout = number_option<IPPROTO_TCP, TCP_USER_TIMEOUT>;      // milliseconds; 0: default
using reuse_address = flag_option<SOL_SOCKET, SO_REUSEADDR>;
using reuse_port = flag_option<SOL_SOCKET, SO_REUSEPORT>;
using broadcast = flag_option<SOL_SOCKET, SO_BROADCAST>;
using v6_only = flag_option<IPPROTO_IPV6, IPV6_V6ONLY>;
// Bytes. The kernel doubles what is set, for its own needs, and says the doubled number.
using receive_buffer_size = number_option<SOL_SOCKET, SO_RCVBUF>;
using send_buffer_size = number_option<SOL_SOCKET, SO_SNDBUF>;

// What closing does with bytes that are not yet sent: without a time they are sent in the
// background; with 0 seconds they are dropped and the peer sees a reset.
class linger {
public:
    // What getsockopt and setsockopt take.
    static constexpr int level = SOL_SOCKET;
    static constexpr int name = SO_LINGER;
    static constexpr socklen_t size = sizeof(::linger);
    constexpr linger() noexcept = default;
    // Waits that long in close(), in whole seconds, for what is unsent; less than 0 is 0, and more
    // than the kernel can count is its most.
    constexpr explicit linger(std::chrono::seconds time) noexcept
        : kernels_{1, saturating_cast<int>(time.count() < 0 ? 0 : time.count())} {}
    // The time, if there is one.
    constexpr std::optional<std::chrono::seconds> value() const noexcept {
        if (kernels_.l_onoff == 0) return std::nullopt;
        return std::chrono::seconds(kernels_.l_linger);
    }
    // The kernel's form, which get() writes and set() reads.
    void* data() noexcept { return &kernels_; }
    const void* data() const noexcept { return &kernels_; }

private:
    ::linger kernels_{0, 0};
};

}  // namespace coppice::io
