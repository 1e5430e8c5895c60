// link: what a connection's bytes go through instead of its socket: encryption, or a stream.
#pragma once
// It takes the operations that the connection would start on the ring: one receive_pooled and one
// send at a time.

#include <coppice/base/lifetime.hpp>
#include <coppice/io/context.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/secure_engine.hpp>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

namespace coppice::http {

using namespace internal;

// Threads: its loop's, unless a function says otherwise. Lifetime: it outlives its owner until
// nothing of its own is pending.
class link : immovable {
public:
    struct let_go {
        void operator()(link* l) const noexcept { l->owner_is_gone(); }
    };
    using owned = std::unique_ptr<link, let_go>;

    // Starts a receive_pooled or a send, as event_loop::start_here() does. An error of the link's
    // own is -EPROTO, and failure() says which.
    [[nodiscard]] virtual bool start(io::internal::ring_operation& op) noexcept = 0;
    // Ends a pending operation early, in a later turn.
    virtual void cancel(io::internal::ring_operation& op) noexcept = 0;
    // Says to the peer that nothing more is sent.
    virtual void say_end() noexcept = 0;
    // Returns why an operation ended with -EPROTO.
    virtual std::error_code failure() const noexcept { return {}; }
    // Returns true if nothing else has failed than that the peer ended its sending without saying
    // so. A receive ends with -EPROTO then; sending goes on.
    virtual bool is_cut_off() const noexcept { return false; }
    virtual bool is_ready() const noexcept { return true; }
    // Returns true if what goes to the network is encrypted. Threads: any.
    virtual bool is_secure() const noexcept = 0;
    // Returns what the handshake of a client with this server has agreed on, or nullptr. Threads:
    // any, once a request has come.
    virtual const io::agreed_security* security() const noexcept { return nullptr; }
    io::context& owner() const noexcept { return loop_; }

    // For a stream; others have a socket, which says these things.
    //
    // Says that the connection has closed its side: what is pending ends in a later turn. `reset`:
    // the answer is not whole.
    virtual void close(bool reset) noexcept { (void)reset; }
    // Says that the client is too slow: it is the reason if the answer is not whole.
    virtual void blame_client() noexcept {}
    // Says that the connection has answered, and waits for what follows.
    virtual void rest() noexcept {}
    // Keeps the field lines that follow the answer's body; called before say_end(). Returns false
    // if there is no memory.
    [[nodiscard]] virtual bool keep_trailers(std::string_view lines) noexcept {
        return lines.empty();
    }
    // Returns true if a 2xx answer would make the stream a tunnel. Threads: any.
    virtual bool is_tunnel() const noexcept { return false; }
    // Returns the client's address, or nullptr: ask the socket. Threads: any.
    virtual const io::endpoint* peer() const noexcept { return nullptr; }

    // What tasks await; like those of io::stream.
    template <class Token = use_await_t>
    auto send(std::span<const std::byte> bytes, Token&& token = {}) noexcept(nothrow_token<Token>);
    template <class Token = use_await_t>
    auto receive_pooled(Token&& token = {}) noexcept(nothrow_token<Token>);

protected:
    explicit link(io::context& loop) noexcept : loop_(loop) {}
    ~link() = default;
    virtual void owner_is_gone() noexcept = 0;

    io::context& loop_;
};

}  // namespace coppice::http
