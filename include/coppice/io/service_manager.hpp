// Sockets from a service manager, and messages to it: systemd's protocols, without its library.
#pragma once
// A service manager that opens the sockets of a service keeps them while the service is replaced:
// clients wait in the queue of a socket instead of being refused. The protocols are those of
// sd_listen_fds(3) and sd_notify(3): a few environment variables, and datagrams of text.

#include <coppice/base/clock.hpp>
#include <coppice/io/endpoint.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace coppice::io {

// A socket on which this process was started to listen.
struct activated_socket {
    int descriptor = -1;  // for acceptor_options::already_listening; open until the process ends
    std::string name;     // FileDescriptorName= of its unit; "" if it was not told
    endpoint local;       // where it listens
};

// Returns the sockets that the service manager passed to this process, in its order, and takes them
// out of the environment (LISTEN_FDS, LISTEN_PID, LISTEN_FDNAMES), so that a child does not find
// them. Each is closed by exec and does not block from now on. None if there are no such variables,
// or they are for another process. Threads: call it at the beginning of main(), while there is one
// thread, since it changes the environment. Errors: std::runtime_error, which says what is wrong
// with which variable or descriptor: a malformed number, another number of names than of
// descriptors, or a descriptor that is no listening stream socket of IPv4, IPv6, or Unix.
std::vector<activated_socket> activated_sockets();

// Sends a message to the service manager, such as "READY=1", "RELOADING=1", "STOPPING=1",
// "STATUS=draining", or "WATCHDOG=1"; newlines separate several. Does nothing without a manager
// (NOTIFY_SOCKET). A line RELOADING=1 gets the MONOTONIC_USEC that Type=notify-reload asks for.
// Threads: any, while none changes the environment. Blocks: while the manager's queue is full, for
// 1 s at most. Errors: the system's, such as std::errc::resource_unavailable_try_again for a queue
// that was full for all that time; std::errc::invalid_argument for a NOTIFY_SOCKET that is neither
// a path nor an abstract name.
std::error_code notify_service_manager(std::string_view message) noexcept;

// Returns how often "WATCHDOG=1" has to be sent at least (WATCHDOG_USEC), or nothing if the manager
// does not watch this process. Send it twice as often. Errors: std::runtime_error for a malformed
// variable.
std::optional<internal::duration> watchdog_time();

}  // namespace coppice::io
