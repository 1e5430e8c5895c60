// The state asking of a client's request: sends it, and receives the head of its answer.
#include <coppice/exec/when_all.hpp>
#include <coppice/http/internal/client_call.hpp>
#include <coppice/token/use_await.hpp>

#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>

#include "client_connection.hpp"

namespace coppice::http::internal {

namespace {

constexpr int interim_answers_max = 100;

}  // namespace

// Gives false if no answer arrived. A server may answer before it has the whole body, and close
// (RFC 9112 section 9.5). A body that is not sent together with the head is therefore sent while
// the answer is received.
task<bool> client_call::exchange() {
    state_ = state::asking;
    send_error_.clear();
    heard_ = false;
    limit(client_.options.answer);
    if (!body_apart()) {
        // A failed send decides nothing: the answer may have arrived before the connection broke.
        (void)co_await send_piece(output_);
        co_return co_await receive_answer();
    }
    enough_.emplace();
    sending_ = true;
    const auto [sent, answered] =
        co_await execution::when_all(send_body(enough_->get_token()), receive_answer());
    // Ends the connection with a reset: otherwise the kernel would wait for the server to take the
    // body bytes that it holds. Not if the answer is still to be read from the connection.
    const bool to_be_read = answered && how_ == bodies::by_pieces && outcome_ == outcome::answered;
    if (!sent && !to_be_read) interrupt();
    if (!sent) closes_ = true;
    co_return answered;
}

// Gives false if no answer arrived.
task<bool> client_call::receive_answer() {
    const bool answered = co_await receive_head();
    // Only an answer that is not a success says that the rest of the body is not wanted; for a
    // success, a server may need all of it. If no answer can arrive any longer, the body is not
    // wanted either.
    if (sending_ && (!answered || answer_.status() >= 300)) enough_->request_stop();
    if (answered) {
        outcome_ = judge();
        begin_body();
        if (outcome_ != outcome::answered) {
            co_await drop_body();
        } else if (how_ == bodies::whole) {
            co_await receive_body();
        }
    }
    if (sending_) {
        if (closes_ && how_ == bodies::whole) enough_->request_stop();
        limit(client_.options.body);  // for a server that has answered and no longer reads
    }
    co_return answered;
}

// Receives the final answer's head; skips a few interim ones (1xx). 101 is final: it would be
// followed by another protocol, which was not asked for. Gives false if no answer arrived.
task<bool> client_call::receive_head() {
    std::string& input = connection_->input;
    int interim = 0;
    do {
        if (interim++ == interim_answers_max) {
            fail(std::make_error_code(std::errc::message_size),
                 "http request: too many interim answers");
        }
        std::size_t searched = 0;
        for (;;) {
            const std::size_t end = input.find("\r\n\r\n", searched);
            // Includes the status line, so that it does not matter how the head arrives.
            const std::size_t size = end == input.npos ? input.size() : end + 4;
            if (size > client_.options.limits.header_bytes_max) {
                fail(std::make_error_code(std::errc::message_size),
                     "http request: the answer's head");
            }
            if (end != input.npos) {
                read_head(std::string_view(input).substr(0, end + 2));
                input.erase(0, end + 4);
                break;
            }
            check_beginning(std::string_view(input).substr(searched));
            searched = input.size() < 3 ? 0 : input.size() - 3;
            if (!co_await receive_more()) co_return false;
        }
        if (answer_.status() == 101) {
            fail(std::make_error_code(std::errc::bad_message),
                 "http request: the server switched protocols unasked");
        }
    } while (answer_.status() < 200);
    co_return true;
}

task<bool> client_call::receive_more() {
    ended_by_ = std::make_error_code(std::errc::connection_aborted);
    if (!connection_->socket.is_open()) co_return false;
    std::error_code ec;
    io::pooled_buffer received;
    if (connection_->through() == nullptr) {
        received = co_await connection_->socket.receive_pooled(use_await[ec]);
    } else {
        received = co_await receive_encrypted(ec);
    }
    ended_by_ = ec;
    if (ec || received.empty()) co_return false;
    heard_ = true;
    const auto bytes = received.bytes();
    connection_->input.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    co_return true;
}

// Also from a stream. Apart from receive_more(), whose frame would be larger.
task<io::pooled_buffer> client_call::receive_encrypted(std::error_code& ec) {
    io::pooled_buffer received = co_await connection_->through()->receive_pooled(use_await[ec]);
    secure_link* const link = connection_->link.get();
    if (link != nullptr) client_.keep_session(proven_, port_, link->take_session());
    co_return received;
}

}  // namespace coppice::http::internal
