// engine: TLS without a network: bytes in, bytes out; one side of one connection.
#pragma once
// The engine owns only memory, and never waits. Its user lends it the bytes that have come, lends
// it room for bytes that are to go, and calls handshake(), receive(), send(), or end(). Each call
// says how far it got:
//
//   needs_input    lend the next bytes from the peer, and call again
//   needs_output   send what is in the room, lend empty room, and call again
//
// A call may write to the room whatever it returns; the user sends that too. stream.hpp does all
// this over a socket. Threads: one at a time. OpenSSL 3 does the work (src/tls/engine.cpp).

#include <coppice/io/secure_engine.hpp>
#include <coppice/tls/context.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace coppice::tls {

namespace internal {

class engine_state;
struct session_state;

}  // namespace internal

// How far a call of the engine got, and what it returns: `what`, `bytes`, and the `error` of
// `failed`.
using step = io::secure_step;
using progress = io::secure_progress;

// What a client may use to resume: the secret of an earlier connection to the same host. A copy
// shares it. It fits only connections whose verification is that of the earlier one.
class session {
public:
    session() noexcept = default;
    // Returns true if there is one.
    explicit operator bool() const noexcept { return state_ != nullptr; }

private:
    friend class internal::engine_state;
    std::shared_ptr<const internal::session_state> state_;
};

// One side of a connection. A moved-from engine may only be destroyed or assigned.
class engine {
public:
    // Room that every call can use: one record of TLS and what may stand before it.
    static constexpr std::size_t room_min = io::secure_engine::room_min;
    static constexpr std::size_t record_max = 16 * 1024;  // bytes of content in one record

    // A server. Errors of all constructors: std::bad_alloc, std::system_error.
    explicit engine(const server_context& context);
    // A client, whose server must prove that it is `host`: a name, or an address as text. Errors:
    // std::invalid_argument for text that is neither.
    engine(const client_context& context, std::string_view host);
    // A client that does not verify the server: anybody between the two can read and change
    // everything. `host` is told to the server as the name that is wanted; it may be empty.
    engine(const client_context& context, std::string_view host, no_verification_t);
    engine(engine&&) noexcept;
    engine& operator=(engine&&) noexcept;
    ~engine();

    // Lends bytes that have come from the peer; unread() of the previous ones must be 0. Lifetime:
    // until unread() is 0.
    void input(std::span<const std::byte> bytes) noexcept;
    std::size_t unread() const noexcept;
    // Tells the engine that no further bytes will arrive.
    void end_input() noexcept;
    // Returns how many bytes of input the call that returned needs_input could use at once. 5 or
    // less: it waits for a new record.
    std::size_t wanted() const noexcept;
    // Lends room for bytes that go to the peer. written() counts those that are in it. Lifetime:
    // until the next call of output().
    void output(std::span<std::byte> room) noexcept;
    std::size_t written() const noexcept;

    // Shakes hands. done: both sides agree. Cost: a private key's operation on a server, and the
    // verification of a chain on a client: 0.1 to 2 ms of computation in one of the calls.
    progress handshake() noexcept;
    // Receives some bytes. ended: after close_notify. If the input ends before it, the call fails
    // with errc::truncated, as every later one does; send() and end() may go on.
    progress receive(std::span<std::byte> into) noexcept;
    // Takes up to record_max bytes, and writes them as one record. Needs room_min of room.
    progress send(std::span<const std::byte> bytes) noexcept;
    // Writes close_notify. Receiving may go on. Needs 256 bytes of room.
    progress end() noexcept;

    // True once the handshake is done.
    bool is_ready() const noexcept;
    // What the handshakes agreed on; empty or false before: the ALPN protocol; the version and
    // the cipher as OpenSSL spells them; true if an earlier connection was resumed.
    std::string_view protocol() const noexcept;
    std::string_view version() const noexcept;
    std::string_view cipher() const noexcept;
    bool resumed() const noexcept;
    // The host that the client has named; empty if none, and for an address.
    std::string_view host() const noexcept;
    // The peer's certificate, as DER and as the text of its subject; empty if it has shown none.
    // Cost: allocates.
    std::string peer_certificate() const;
    std::string peer_subject() const;
    // The OCSP response that the server has stapled, if the client asked for it; otherwise empty.
    std::string_view ocsp() const noexcept;

    // A client's: what the next connection to the same host can resume. With TLS 1.3 it comes with
    // the first bytes after the handshake. Empty: nothing came.
    session latest_session() const noexcept;
    // A client's, before the handshake: offers to resume. Returns false, and offers nothing, if the
    // session is of another context, another host, or another kind of verification, or if the
    // verified certificate of the server has expired meanwhile.
    bool resume(const session& earlier) noexcept;

private:
    std::unique_ptr<internal::engine_state> state_;
};

}  // namespace coppice::tls
