// multiplexing: how a connection finds that its client speaks HTTP/2, and hands over to a session.
#include "connection.hpp"
#include "stream_session.hpp"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

namespace coppice::http {

using namespace internal;

// Called with the first bytes of an encrypted connection, or with its end.
void connection::greeted(operation* op) noexcept {
    connection& c = receive_ended(op);
    auto* const link = static_cast<secure_link*>(c.link_.get());
    if (c.result > 0 && !link->keep_agreed()) {
        c.take_received().release();
        c.run_out_of_memory();
        return;
    }
    if (!link->speaks_other() || c.result <= 0) {
        if (c.take_input()) c.serve();
        return;
    }
    const io::pooled_buffer first = c.take_received();
    c.become_busy();
    c.multiplex(text_of(first));
}

// Called when bytes are not a request. Returns true if they begin the preface of a client that
// knows that this server speaks HTTP/2. A client of TLS has to agree on that before.
bool connection::is_preface(const exchange& e) const noexcept {
    if (loop_.options.http2 == nullptr || link_ != nullptr || served_ != 0) return false;
    const std::string_view preface = loop_.options.http2->preface();
    const std::size_t bytes = std::min(preface.size(), e.left.size());
    return e.left.substr(0, bytes) == preface.substr(0, bytes);
}

// Leaves the connection to a session, with what has been received. May end it.
void connection::multiplex_rest(exchange& e) noexcept {
    std::string first;
    try {
        first.assign(e.left);
    } catch (const std::bad_alloc&) {
        run_out_of_memory();
        return;
    }
    end_batch(loop_.context.turn_time());
    multiplex(first);
}

// Called when the connection has been idle for its time. Over HTTP/2 the client is told first.
void connection::end_idle() noexcept {
    if (session_ != nullptr) {
        session_->end_idle();
    } else {
        end_wait();
    }
}

void connection::multiplex(std::string_view first) noexcept {
    stream_session* const made = stream_session::make(*this);
    if (made == nullptr) {
        run_out_of_memory();
        return;
    }
    session_ = made;
    state_ = state::multiplexing;
    made->begin(first);
}

}  // namespace coppice::http
