// stream: the operations of a connected TCP or Unix socket, such as receive, send, and send_all.
#pragma once
// At most one operation may be pending in each direction: one receive and one send at the same
// time. Errors of every operation are thrown as std::system_error, stored in `ec` by use_await[ec],
// or sent as a std::error_code. bad_file_descriptor: nothing is open. operation_canceled: the
// socket was closed, or its context was destroyed, while the operation was pending.
//
// A stop request or a passed deadline is not an error: the operation is stopped, in the same turn
// of the loop or the next, unless its result came first. A stopped receive has taken no bytes, and
// a stopped send has sent none; send_all may have sent some (docs/stopping.md).
// Cost: no allocation. An operation on the loop's thread that need not wait ends at once.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/io/buffer.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/stream_requests.hpp>
#include <coppice/io/open_file.hpp>

#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

namespace coppice::io {

namespace internal {

class copying;

}  // namespace internal

// The operations of a connected socket. Lifetime: the memory given to an operation must live until
// the operation has ended.
class stream : public internal::open_socket {
public:
    using open_socket::open_socket;
    // Takes over a connected socket.
    explicit stream(internal::open_socket&& connected) noexcept
        : internal::open_socket(std::move(connected)) {}

    // Receives into `bytes`. The value is the number of bytes: 0 at the end of the stream, or if
    // `bytes` is empty.
    template <class Token = use_await_t>
    auto receive(std::span<std::byte> bytes, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::receive_request>({reference(), bytes},
                                                   static_cast<Token&&>(token));
    }
    // Receives likewise into several pieces, in their order. The list must live as long as its
    // pieces.
    template <class Token = use_await_t>
    auto receive(std::span<const mutable_buffer> pieces,
                 Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::scatter_request>({reference(), pieces},
                                                   static_cast<Token&&>(token));
    }
    // Receives into a buffer that the context lends, so that waiting uses no memory. The value is
    // the pooled_buffer, empty at the end of the stream.
    template <class Token = use_await_t>
    auto receive_pooled(Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::pooled_receive_request>(
            internal::pooled_receive_request::arguments(reference()), static_cast<Token&&>(token));
    }
    // Send some of the bytes. The value is how many. A list must live as long as its pieces.
    template <class Token = use_await_t>
    auto send(std::span<const std::byte> bytes, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::send_request>({reference(), bytes}, static_cast<Token&&>(token));
    }
    template <class Token = use_await_t>
    auto send(std::span<const const_buffer> pieces,
              Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::gather_request<false>>({reference(), pieces},
                                                         static_cast<Token&&>(token));
    }
    // Send all of the bytes. After a stop, some of them may have been sent. A list must live as
    // long as its pieces.
    template <class Token = use_await_t>
    auto send_all(std::span<const std::byte> bytes,
                  Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::send_all_request>({reference(), bytes},
                                                    static_cast<Token&&>(token));
    }
    template <class Token = use_await_t>
    auto send_all(std::span<const const_buffer> pieces,
                  Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<internal::gather_request<true>>({reference(), pieces},
                                                        static_cast<Token&&>(token));
    }
    // Returns true if the socket is connected and has nothing to receive: no bytes, no end, and no
    // error. For a connection that is about to be reused, whose peer has nothing to send meanwhile.
    // Cannot know what arrives a moment later.
    // Cost: a system call.
    bool is_quiet() noexcept { return is_open() && owner().is_quiet(native()); }
    // Announces that nothing further will be sent, or received. Takes effect at once. Pending
    // operations in that direction end: a receive with 0, a send with broken_pipe. Errors:
    // not_connected.
    std::error_code shutdown(internal::shutdown_direction how) noexcept {
        return owner().system().shutdown(native(), how);
    }
    // Shuts down sending, and ignores errors: for callers that notice a lost connection anyway.
    void shutdown_send() noexcept { (void)shutdown(internal::shutdown_direction::send); }

private:
    friend class internal::copying;
};

}  // namespace coppice::io
