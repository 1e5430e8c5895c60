// secure_engine: what encrypts one side of one connection: bytes in, bytes out, no descriptors.
#pragma once
// The seam between servers and clients that can be secure, such as http::server, and what makes
// them so, such as the component tls. The engine neither owns nor waits for anything but memory.
// Its user lends it the bytes that have come, lends it room for bytes that are to go, and calls
// handshake(), receive(), send(), or end(). tls/engine.hpp describes the calls.

#include <coppice/base/version.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

namespace coppice::io {

// How far a call of an engine got.
enum class secure_step {
    done,          // it is finished
    needs_input,   // it has taken all bytes that were lent
    needs_output,  // the room is too small
    ended,         // the peer has said its end: nothing will come
    failed,        // `error` says why; every later call fails likewise, but see receive()
};
// What a call of an engine returns.
struct secure_progress {
    secure_step what = secure_step::done;  // see above
    std::size_t bytes = 0;                 // received, or taken for sending
    std::error_code error = {};            // of `failed`
};

// What a handshake has agreed on, and what the peer has proved in it. A text is empty where there
// is none.
struct agreed_security {
    std::string version = {};   // of TLS, as the engine spells it: "TLSv1.3"
    std::string cipher = {};    // likewise: "TLS_AES_256_GCM_SHA384"
    std::string protocol = {};  // of ALPN: "h2"
    // That the client has named (SNI). If TLS 1.2 has resumed: that it named in the first
    // handshake.
    std::string host = {};
    // The certificate of the peer, which was verified: the text of its subject (RFC 2253), and all
    // of it (DER).
    std::string peer_subject = {};
    std::string peer_certificate = {};
    bool resumed = false;  // an earlier connection was resumed
};

// What a client may use to resume: the secret of an earlier connection.
class secure_session {
public:
    virtual ~secure_session() = default;
};

// One side of a connection. A call may write to the room whatever it returns; the user sends that
// too. Threads: one at a time.
class secure_engine {
public:
    // Room that every call can use: one record and what may stand before it.
    static constexpr std::size_t room_min = std::size_t{18} * 1024;

    virtual ~secure_engine() = default;

    // Lends bytes that have come from the peer; unread() of the previous ones must be 0. Lifetime:
    // until unread() is 0.
    virtual void input(std::span<const std::byte> bytes) noexcept = 0;
    virtual std::size_t unread() const noexcept = 0;
    // Says that no further bytes will come.
    virtual void end_input() noexcept = 0;
    // Lends room for bytes that go to the peer. written() counts those that are in it. Lifetime:
    // until the next call of output().
    virtual void output(std::span<std::byte> room) noexcept = 0;
    virtual std::size_t written() const noexcept = 0;

    // Shakes hands. done: both sides agree.
    virtual secure_progress handshake() noexcept = 0;
    // Receives some bytes. ended: the peer has said its end. An end of input before that is an
    // error: bytes may be missing. After that error, send() and end() may go on.
    virtual secure_progress receive(std::span<std::byte> into) noexcept = 0;
    // Takes some bytes, and writes them as one record. Needs room_min of room.
    virtual secure_progress send(std::span<const std::byte> bytes) noexcept = 0;
    // Writes the end of what this side says. Receiving may go on. Needs 256 bytes of room.
    virtual secure_progress end() noexcept = 0;

    // Returns the protocol of ALPN that the handshake has agreed on; empty if none.
    virtual std::string_view protocol() const noexcept = 0;
    // Returns what the handshake has agreed on; called once it is done. Errors: std::bad_alloc.
    // Cost: allocates.
    virtual agreed_security agreed() const {
        agreed_security made;
        made.protocol = protocol();
        return made;
    }

    // A client's. Returns what a later connection to the same host can resume; nullptr: nothing has
    // come that could. It may come with the first bytes after the handshake.
    virtual std::shared_ptr<const secure_session> latest_session() const noexcept {
        return nullptr;
    }
    // A client's, before the handshake: offers to resume a session of an engine of the same
    // client_security. Returns false, and offers nothing, if it does not fit this connection.
    virtual bool resume(const secure_session& earlier) noexcept {
        (void)earlier;
        return false;
    }
    // Returns true if the handshake has resumed an earlier connection.
    virtual bool resumed() const noexcept { return false; }
};

// What makes the engines of a server's connections. Threads: any, also concurrently.
class server_security {
public:
    virtual ~server_security() = default;
    // Errors: std::bad_alloc, std::system_error.
    virtual std::unique_ptr<secure_engine> accept() const = 0;
};

// What makes the engines of a client's connections. Threads: any, also concurrently.
class client_security {
public:
    virtual ~client_security() = default;
    // The server must prove that it is `host`: a name, or an address as text. There is no way to do
    // without. Errors: std::invalid_argument for text that is neither; std::bad_alloc.
    virtual std::unique_ptr<secure_engine> connect(std::string_view host) const = 0;
};

}  // namespace coppice::io
