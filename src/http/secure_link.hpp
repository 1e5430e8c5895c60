// secure_link: encryption between a connection, of a server or of a client, and its loop.
#pragma once
// It takes the operations that the connection would start on the ring: one receive_pooled and one
// send at a time. Below, it has a receive and a send of its own on the same socket:
//
//   connection   receive_pooled  <-  engine.receive  <-  receive_pooled   ring
//                send             ->  engine.send     ->  send
//
// The handshake has no state of its own: any operation drives it. An operation is pending here only
// while one of the link's own is pending on the ring, so closing the socket ends both. If a pool
// computes the handshake, an operation may be pending without one on the ring: it ends when the
// computation has come home, which holds the loop.

#include <coppice/io/internal/record_memory.hpp>
#include <coppice/io/secure_engine.hpp>
#include <coppice/io/socket.hpp>

#include "link.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

namespace coppice {
class thread_pool;
}  // namespace coppice

namespace coppice::http {

using namespace internal;

// Threads: its loop's. Lifetime: it outlives its owner until the ring has returned what is pending.
class secure_link final : public link {
public:
    using owned = std::unique_ptr<secure_link, let_go>;
    // For the open socket in the slot. `other_protocol`: one of ALPN that both sides may agree on
    // besides HTTP/1.1; "" for none. `pool`: computes the handshake; nullptr: the loop does.
    // Errors: std::bad_alloc. Lifetime: the text and the pool outlive the link.
    static owned make(io::context& loop, io::internal::descriptor& slot,
                      std::unique_ptr<io::secure_engine> engine,
                      std::string_view other_protocol = {}, thread_pool* pool = nullptr);

    // A client's, before start(): offers to resume an earlier connection, if that fits.
    void resume(const io::secure_session& earlier) noexcept { (void)engine_->resume(earlier); }
    // A client's. Returns what a later connection can resume, once; nullptr: it has not come, or
    // was taken before. Called when bytes were received.
    std::shared_ptr<const io::secure_session> take_session() noexcept;
    // Returns true if the handshake has resumed an earlier connection.
    bool has_resumed() const noexcept { return engine_->resumed(); }
    // Takes what was received before the link was made. Called at most once, before start().
    void begin_with(io::pooled_buffer&& received) noexcept;
    // Starts a receive_pooled or a send, as event_loop::start_here() does. A send of no bytes ends
    // when the handshake is done. An error of the engine is -EPROTO, and failure() says which.
    [[nodiscard]] bool start(io::internal::ring_operation& op) noexcept override;
    // Ends a pending operation early, in a later turn. A send ends with what was encrypted, if that
    // is something; the rest of its record goes out with the next send.
    void cancel(io::internal::ring_operation& op) noexcept override;
    // Says the end to the peer, and then shuts down sending, unless something else has failed.
    // What the socket does not take at once is sent while it is open. A receive ends with the
    // peer's end only when all of it is sent.
    void say_end() noexcept override;

    bool is_ready() const noexcept override { return ready_; }
    bool is_secure() const noexcept override { return true; }
    // The socket is closed: a handshake that waits for the pool need not be computed.
    void close(bool reset) noexcept override;
    // Returns true if the handshake has agreed on the other protocol.
    bool speaks_other() const noexcept { return speaks_other_; }
    // Keeps what the handshake has agreed on, once it is done. Returns false if there is no memory.
    [[nodiscard]] bool keep_agreed() noexcept;
    const io::agreed_security* security() const noexcept override { return agreed_.get(); }
    // Returns the same for what may outlive the link; nullptr before keep_agreed().
    const std::shared_ptr<const io::agreed_security>& agreed() const noexcept { return agreed_; }
    // Returns true if nothing has arrived that was not received. May return false though it is so.
    bool is_quiet() const noexcept {
        return cipher_.empty() && result_ == 0 && !failure_ && !ended_ && !was_full_;
    }
    // Returns why an operation ended with -EPROTO.
    std::error_code failure() const noexcept override { return failure_ ? failure_ : cut_; }
    bool is_cut_off() const noexcept override { return cut_ && !failure_ && result_ == 0; }

private:
    using ring_operation = io::internal::ring_operation;

    secure_link(io::context& loop, io::internal::descriptor& slot,
                std::unique_ptr<io::secure_engine>&& engine,
                std::string_view other_protocol) noexcept;
    ~secure_link();
    void owner_is_gone() noexcept override;

    // A step of the handshake on a pool. Until it has come home, the engine is the pool's.
    class computation;

    // One operation of the link itself on the ring.
    struct own_operation : ring_operation {
        own_operation(secure_link& l, void (*function)(operation*) noexcept,
                      io::opcode what) noexcept
            : ring_operation(function, what), link(l) {}
        secure_link& link;
        bool pending = false;
    };
    // One operation of the connection.
    struct user {
        bool is_active() const noexcept { return op != nullptr && !done; }
        void finish(int result) noexcept {
            op->result = result;
            done = true;
        }
        ring_operation* take() noexcept {
            return std::exchange(done, false) ? std::exchange(op, nullptr) : nullptr;
        }
        ring_operation* op = nullptr;
        bool done = false;
    };
    enum class next { go_on, wait };

    static void input_ended(io::operation* op) noexcept;
    static void output_ended(io::operation* op) noexcept;
    void advance() noexcept;
    void pump() noexcept;
    next work() noexcept;
    next shake_hands() noexcept;
    next note_handshake(const io::secure_progress& p) noexcept;
    void computed(io::secure_progress p) noexcept;
    next decrypt() noexcept;
    next encrypt() noexcept;
    next say_end_now() noexcept;
    next judge(const io::secure_progress& p) noexcept;
    bool finish_all_if_failed() noexcept;
    bool is_open() const noexcept { return slot_.generation == generation_; }
    bool is_pending() const noexcept { return input_.pending || output_.pending || is_computing_; }
    bool start_own(own_operation& op) noexcept;
    next take_in() noexcept;
    void came(int result) noexcept;
    bool has_output() const noexcept { return room_.is_there() && engine_->written() > sent_; }
    bool make_room() noexcept;
    void flush() noexcept;
    void went(int result) noexcept;
    void finish_sending() noexcept;

    io::internal::descriptor& slot_;
    const std::uint32_t generation_;
    const std::unique_ptr<io::secure_engine> engine_;
    const std::string_view other_protocol_;
    std::unique_ptr<computation> computation_;           // nullptr: the loop computes
    std::shared_ptr<const io::agreed_security> agreed_;  // nullptr: it was not kept
    own_operation input_;
    own_operation output_;
    user reader_, writer_;
    std::size_t taken_ = 0;             // bytes of the writer's that are encrypted
    io::pooled_buffer cipher_;          // received, lent to the engine
    io::internal::record_memory room_;  // what the engine has written
    std::size_t sent_ = 0;              // bytes of the room
    std::error_code failure_;           // of the engine; stays
    std::error_code cut_;               // of receiving alone: the peer's end has not come
    int result_ = 0;                    // of the socket, if that has failed; stays
    bool has_left_output_ = false;      // a writer was canceled before all of it was sent
    bool has_given_session_ = false;    // take_session() has returned it
    bool ready_ = false;                // the handshake is done
    bool speaks_other_ = false;         // and has agreed on other_protocol_
    bool is_computing_ = false;         // the pool has the engine
    bool was_cut_short_ = false;        // the last step of the handshake needs output
    bool wants_input_ = false;          // the engine can do nothing before bytes come
    bool was_full_ = false;             // the last receive filled its buffer: there may be more
    bool ended_ = false;                // the socket gives nothing further
    bool ending_ = false;               // say_end() was called
    bool has_told_ = false;             // and the engine has written it
    bool has_shut_ = false;             // and sending is shut down
    bool is_owned_ = true;
};

// A socket that tells which of the loop's descriptors it is; or none, in the place of a stream.
class slotted_socket : public io::tcp::socket {
public:
    using socket::socket;
    explicit slotted_socket(io::tcp::socket&& s) noexcept : socket(std::move(s)) {}
    io::internal::descriptor* slot() const noexcept { return reference().on; }
    // Makes it stand for a stream of another socket.
    void stand_for_stream() noexcept { is_stream_ = true; }
    bool is_open() const noexcept { return socket::is_open() || is_stream_; }
    void close() noexcept {
        is_stream_ = false;
        socket::close();
    }

private:
    bool is_stream_ = false;
};

// An operation of a link that a task awaits.
class secure_request : public io::basic_request<io::operation>, io::timer_entry {
    using base = io::basic_request<io::operation>;

public:
    std::error_code error() const noexcept;

protected:
    secure_request(link& through, io::opcode what) noexcept
        : base(through.owner()), timer_entry(&expire), link_(through), inner_(*this, what) {}
    ~secure_request() = default;
    bool submit() noexcept final;
    void interrupt() noexcept final { link_.cancel(inner_); }
    int outcome() const noexcept { return base::outcome(); }

    link& link_;
    struct inner_operation : io::internal::ring_operation {
        inner_operation(secure_request& r, io::opcode what) noexcept
            : ring_operation(&ended_inside, what), of(r) {}
        secure_request& of;
    };
    inner_operation inner_;

private:
    static void ended_inside(io::operation* op) noexcept;
    static void expire(io::timer_entry* entry) noexcept;
};

class secure_send_request : public secure_request {
public:
    using value_type = std::size_t;
    static constexpr const char* name = "send";
    struct arguments {
        link* target;
        std::span<const std::byte> bytes;
    };
    explicit secure_send_request(const arguments& a) noexcept
        : secure_request(*a.target, io::opcode::send) {
        inner_.data = const_cast<std::byte*>(a.bytes.data());
        inner_.size = a.bytes.size();
    }
    std::size_t take() const noexcept {
        return outcome() < 0 ? 0 : static_cast<std::size_t>(outcome());
    }

protected:
    ~secure_send_request() = default;
};

class secure_receive_request : public secure_request {
public:
    using value_type = io::pooled_buffer;
    static constexpr const char* name = "receive_pooled";
    struct arguments {
        link* target;
    };
    explicit secure_receive_request(const arguments& a) noexcept
        : secure_request(*a.target, io::opcode::receive_pooled) {}
    io::pooled_buffer take() noexcept {
        if (outcome() <= 0) return {};
        return {owner().buffers(), inner_.data, static_cast<std::size_t>(outcome())};
    }

protected:
    ~secure_receive_request() = default;
};

template <class Token>
auto link::send(std::span<const std::byte> bytes, Token&& token) noexcept(nothrow_token<Token>) {
    return io::initiate<secure_send_request>({this, bytes}, static_cast<Token&&>(token));
}
template <class Token>
auto link::receive_pooled(Token&& token) noexcept(nothrow_token<Token>) {
    return io::initiate<secure_receive_request>({this}, static_cast<Token&&>(token));
}

}  // namespace coppice::http
