// The states of a client's request in which the answer's body arrives.
#include <coppice/base/lifetime.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/http/internal/client_call.hpp>
#include <coppice/http/message.hpp>

#include <algorithm>
#include <span>
#include <utility>

#include "client_connection.hpp"
#include "lines.hpp"
#include "until_stopped.hpp"

namespace coppice::http::internal {

namespace {

// The most bytes of an unwanted answer's body that are received and dropped; beyond this, another
// connection is cheaper.
constexpr std::size_t dropped_bytes_max = 64 * 1024;

}  // namespace

// Decides how the body ends (RFC 9112 section 6.3).
void client_call::begin_body() {
    state_ = outcome_ != outcome::answered ? state::dropping
             : how_ == bodies::whole       ? state::receiving
                                           : state::handed_over;
    consumed_ = 0;
    collected_ = 0;
    last_chunk_ = false;
    decoder_.reset();
    answer_.trailers_.clear();
    answer_.body_.clear();
    if (method_ == "HEAD" || bodyless(answer_.status())) {
        left_ = 0;
    } else if (chunked_) {
        limits wide = client_.options.limits;
        if (!collects()) wide.body_bytes_max = ~std::size_t{0};
        decoder_.emplace(wide);
        decoder_->keep_trailers(answer_.trailers_);
    } else {
        left_ = length_.value_or(~std::uint64_t{0});
        if (!length_) closes_ = true;
        if (collects() && length_ && left_ > client_.options.limits.body_bytes_max) {
            fail(std::make_error_code(std::errc::message_size), "http request: the answer's body");
        }
    }
}

// Returns true if the body is collected in the answer, whose size is limited.
bool client_call::collects() const noexcept {
    return how_ == bodies::whole && request_.sink == nullptr && outcome_ == outcome::answered;
}

// Gives the next piece of the body that has arrived and was not given out yet. Does not wait.
client_call::step client_call::next_step(std::string_view& piece) {
    std::string& input = connection_->input;
    input.erase(0, std::exchange(consumed_, 0));
    if (decoder_) return next_chunk(piece);
    if (left_ == 0) return step::end;
    if (input.empty()) return step::more;
    consumed_ = static_cast<std::size_t>(std::min<std::uint64_t>(left_, input.size()));
    left_ -= consumed_;
    piece = std::string_view(input).substr(0, consumed_);
    return step::piece;
}

client_call::step client_call::next_chunk(std::string_view& piece) {
    std::string& input = connection_->input;
    if (last_chunk_) return step::end;
    if (input.empty()) return step::more;
    const chunk_decoder::result r = decoder_->decode(std::span(input));
    if (r.status == parse_status::error) {
        fail(
            std::make_error_code(r.error == 400 ? std::errc::bad_message : std::errc::message_size),
            "http request: the answer's body");
    }
    last_chunk_ = r.status == parse_status::complete;
    if (r.produced == 0) {
        input.erase(0, r.consumed);
        return last_chunk_ ? step::end : step::more;
    }
    consumed_ = r.consumed;
    piece = std::string_view(input).substr(0, r.produced);
    return step::piece;
}

// Called when nothing more arrives. Returns if that is the proper end of the body, and throws
// otherwise.
void client_call::end_of_stream() {
    if (decoder_ || length_ || stopped_ || late_ || ended_by_) {
        const client_stream* const stream = connection_->stream.get();
        const bool known = stream != nullptr && stream->failure();
        fail(known ? stream->failure() : std::make_error_code(std::errc::connection_aborted),
             "http request: the answer's body");
    }
    left_ = 0;
}

task<> client_call::receive_body() {
    for (;;) {
        std::string_view piece;
        const step reached = next_step(piece);
        if (reached == step::end) co_return;
        if (reached == step::piece) {
            co_await deliver(piece);
            continue;
        }
        limit(client_.options.body);
        const bool more = co_await receive_more();
        if (!more) end_of_stream();
    }
}

task<> client_call::deliver(std::string_view piece) {
    if (request_.sink != nullptr) {
        co_await give_to_sink(piece);
        co_return;
    }
    collected_ += piece.size();
    if (collected_ > client_.options.limits.body_bytes_max) {
        fail(std::make_error_code(std::errc::message_size), "http request: the answer's body");
    }
    answer_.body_.append(piece);
}

// Runs the sink by until_interrupted(): the sink may wait for something other than the socket.
task<> client_call::give_to_sink(std::string_view piece) {
    unlimit();  // the sink's time is not limited here
    state_ = state::delivering;
    const scope_exit done([this] { state_ = state::receiving; });
    const bool ended = co_await until_interrupted(request_.sink(piece));
    if (stopped_) fail(std::make_error_code(std::errc::operation_canceled), "http request");
    if (!ended) co_await execution::just_stopped();
}

// Receives and drops the body of an unwanted answer, so that its connection can be used again, if
// that does not take long.
task<> client_call::drop_body() {
    const bool short_enough = decoder_ || left_ <= dropped_bytes_max;
    std::size_t dropped = 0;
    bool whole = false;
    limit(client_.options.body);  // for the whole body
    try {
        while (short_enough && dropped <= dropped_bytes_max) {
            std::string_view piece;
            const step reached = next_step(piece);
            whole = reached == step::end;
            if (whole) break;
            dropped += piece.size();
            if (reached == step::piece) continue;
            const bool more = co_await receive_more();
            if (!more) end_of_stream();
        }
    } catch (const std::system_error&) {
        whole = false;
    }
    unlimit();
    if (!whole && connection_->socket.is_open()) interrupt();
    late_ = false;
}

// Called when the answer's body has ended: keeps the connection for other requests if it is
// reusable.
void client_call::finish() {
    unlimit();
    // The request's own Connection field can only say close (RFC 9112 section 9.6).
    const bool asked_to_close = find_line(fields_, "Connection").has_value();
    const bool reusable = connection_->stream == nullptr && !closes_ && !asked_to_close &&
                          (!version_1_0_ || keep_alive_) && connection_->socket.is_open() &&
                          connection_->input.empty();
    if (reusable) client_.keep(std::move(connection_));
    let_go();
}

task<std::string_view> client_call::read() {
    if (!loop_.is_current()) {
        co_return co_await execution::starts_on(loop_.get_scheduler(), read());
    }
    const inplace_stop_token stop = co_await execution::read_env(get_stop_token);
    const execution::instant deadline = co_await execution::read_env(execution::get_deadline);
    if (broken_) throw std::system_error(broken_, broken_by_);
    std::optional<std::string_view> piece;
    const scope_exit rest([this] { unlimit(); });  // the time between reads is not limited
    try {
        piece = co_await result_on_loop({{stop, loop_}, deadline}, next_piece());
    } catch (const std::system_error& error) {
        break_off(error.code(), error.what());
        throw;
    } catch (...) {
        break_off(std::make_error_code(std::errc::not_enough_memory), "");
        throw;
    }
    if (!piece) co_await execution::just_stopped();
    co_return *piece;
}

// Gives the next piece for read(), "" at the end.
task<std::string_view> client_call::next_piece() {
    while (!finished()) {
        std::string_view piece;
        const step reached = next_step(piece);
        if (reached == step::piece) co_return piece;
        if (reached == step::end) {
            finish();
            break;
        }
        limit(std::min(client_.options.body, saturating_sub(end_, loop_.now())));
        const bool more = co_await receive_more();
        // The reader was stopped, but not the call, whose socket would be closed. Nothing is lost.
        const bool stopped =
            ended_by_ == std::errc::operation_canceled && connection_->socket.is_open();
        if (!more && stopped) co_await execution::just_stopped();
        if (!more) end_of_stream();
    }
    co_return std::string_view();
}

// Ends the connection, and makes read() throw this error from now on. Each call throws a new
// object, since readers on other threads may still hold the old one.
void client_call::break_off(std::error_code error, std::string_view what) {
    interrupt();
    broken_ = error;
    const std::string message = ": " + error.message();  // the next error adds it again
    if (what.ends_with(message)) what.remove_suffix(message.size());
    broken_by_ = what;
}

}  // namespace coppice::http::internal
