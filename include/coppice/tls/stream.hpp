// stream: TLS over a socket, with the operations of io::stream and the same completion tokens.
#pragma once
// A stream owns the next stream, such as an io::tcp::socket, and one side of a connection. One
// receive and one send may be pending at the same time; handshake() and shutdown() are both. A
// stop request or a passed deadline stops an operation within a turn of the loop. It loses no byte
// of TLS: what has come stays, and what has not gone goes out with the next send or shutdown.
//
// Errors of every operation: those of the next stream; of tls_category(); handshake_required before
// the handshake; not_enough_memory; operation_canceled if the stream was closed meanwhile. After an
// error of TLS every operation fails with it.
// Cost: an operation allocates nothing itself. OpenSSL allocates a few bytes for each record, and
// its buffers when bytes come, unless the context says keep_buffers.
//
// Next has receive(), send(), close(), is_open(), and owner(), as an io::stream has them. Threads:
// as for a socket: any thread may start operations, and the rest is for the loop's thread.

#include <coppice/exec/scheduler.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/tls/context.hpp>
#include <coppice/tls/engine.hpp>
#include <coppice/tls/error.hpp>
#include <coppice/tls/internal/connection.hpp>
#include <coppice/tls/internal/handshake_on.hpp>
#include <coppice/tls/internal/namespaces.hpp>
#include <coppice/tls/internal/stream_requests.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace coppice::tls {

// One side of a connection. Move-only; it may be moved while operations are pending. Its destructor
// closes it: pending operations end with operation_canceled in a later turn, and their memory must
// live until then.
template <class Next = io::tcp::socket>
class stream {
public:
    using next_type = Next;
    // The side of a server. Errors of all constructors: those of the engine's.
    stream(Next next, const server_context& context)
        : stream(std::move(next), tls::engine(context)) {}
    // The side of a client. The server must prove that it is `host`, a name or an address.
    stream(Next next, const client_context& context, std::string_view host)
        : stream(std::move(next), tls::engine(context, host)) {}
    // The side of a client that accepts any certificate. `host` may be empty.
    stream(Next next, const client_context& context, std::string_view host, no_verification_t tag)
        : stream(std::move(next), tls::engine(context, host, tag)) {}
    stream(stream&& other) noexcept = default;
    stream& operator=(stream&& other) noexcept {
        if (this == &other) return *this;
        close();
        on_ = std::move(other.on_);
        return *this;
    }
    ~stream() { close(); }

    // Shakes hands. Errors: what verification says of the peer's certificate; the peer's alert. A
    // stopped handshake goes on when it is called again.
    // Cost: up to 2 ms of computation on the loop; see handshake_on().
    template <class Token = use_await_t>
    auto handshake(Token&& token = {}) noexcept(nothrow_token<Token>) {
        using request = internal::handshake_request<Next>;
        return io::initiate<request>(typename request::arguments(on_.get()),
                                     static_cast<Token&&>(token));
    }
    // Shakes hands likewise, and computes on a scheduler, such as a pool's, so that the loop goes
    // on meanwhile. A stop waits for a computation that has begun. If the scheduler has ended, the
    // loop computes. Lifetime: the context must live until the operation has ended.
    template <execution::scheduler Scheduler, class Token = use_await_t>
    auto handshake_on(Scheduler scheduler, Token&& token = {}) noexcept(nothrow_token<Token>) {
        using request = internal::handshake_on_request<Next, Scheduler>;
        return io::initiate<request>({on_.get(), scheduler}, static_cast<Token&&>(token));
    }
    // Receives some bytes. The value is their number; 0 after the peer's close_notify, or if
    // `bytes` is empty. Errors: errc::truncated if the connection ends without close_notify;
    // sending may go on. A stopped receive has taken no bytes.
    template <class Token = use_await_t>
    auto receive(std::span<std::byte> bytes, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return io::initiate<internal::receive_request<Next>>({on_.get(), bytes},
                                                             static_cast<Token&&>(token));
    }
    // Sends up to 16 KiB of `bytes`, as one record. The value is their number. A stop before the
    // record is made has sent nothing; after that the value is there, and the rest of the record
    // goes out with the next send or shutdown. An empty send sends only such a rest.
    // Errors: broken_pipe after shutdown_send().
    template <class Token = use_await_t>
    auto send(std::span<const std::byte> bytes, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return io::initiate<internal::send_request<Next>>({on_.get(), bytes},
                                                          static_cast<Token&&>(token));
    }
    // Sends all of `bytes`. After a stop, some of them may have been sent.
    template <class Token = use_await_t>
    auto send_all(std::span<const std::byte> bytes,
                  Token&& token = {}) noexcept(nothrow_token<Token>) {
        return io::initiate<internal::send_all_request<Next>>({on_.get(), bytes},
                                                              static_cast<Token&&>(token));
    }
    // Sends close_notify: the peer receives the end of the stream. Receiving may go on.
    template <class Token = use_await_t>
    auto shutdown_send(Token&& token = {}) noexcept(nothrow_token<Token>) {
        using request = internal::shutdown_request<Next, false>;
        return io::initiate<request>(typename request::arguments(on_.get()),
                                     static_cast<Token&&>(token));
    }
    // Sends close_notify, and waits for that of the peer; drops what the peer sends before it. Give
    // it a limit: the peer may take its time. Errors: errc::truncated if the peer only closes.
    template <class Token = use_await_t>
    auto shutdown(Token&& token = {}) noexcept(nothrow_token<Token>) {
        using request = internal::shutdown_request<Next, true>;
        return io::initiate<request>(typename request::arguments(on_.get()),
                                     static_cast<Token&&>(token));
    }
    // Closes the next stream at once, without close_notify. Pending operations end with
    // operation_canceled in a later turn.
    void close() noexcept {
        if (on_ != nullptr) on_->next.close();
    }
    bool is_open() const noexcept { return on_ != nullptr && on_->next.is_open(); }
    // Returns the context that completes the operations.
    io::context& owner() const noexcept { return on_->owner(); }
    // Returns the next stream, for its options and addresses.
    Next& next() noexcept { return on_->next; }
    const Next& next() const noexcept { return on_->next; }

    // Returns what the handshake has agreed on: protocol(), version(), host(), and more. Not while
    // handshake_on() is pending.
    const tls::engine& agreed() const noexcept { return on_->engine; }
    // A client's, before the handshake: offers to resume. See engine::resume().
    bool resume(const session& earlier) noexcept { return on_->engine.resume(earlier); }

private:
    stream(Next&& next, tls::engine&& e)
        : on_(std::make_shared<internal::connection<Next>>(std::move(next), std::move(e))) {}

    std::shared_ptr<internal::connection<Next>> on_;  // empty: moved from
};

}  // namespace coppice::tls
