// What a client receives: the answer's head, and its body, whole or piece by piece.
#include <coppice/base/saturating.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/message.hpp>
#include <coppice/http/uri.hpp>

#include <algorithm>
#include <span>
#include <utility>

#include "lines.hpp"
#include "until_stopped.hpp"

namespace coppice::http {

using namespace internal;

namespace {

constexpr int interim_answers_max = 100;
// The most bytes of an unwanted answer's body that are received and dropped; beyond this, another
// connection is cheaper.
constexpr std::size_t dropped_bytes_max = 64 * 1024;

}  // namespace

std::optional<std::string_view> client_head::find(std::string_view name) const noexcept {
    return find_line(head_, name);
}
std::optional<std::string_view> client_head::trailer(std::string_view name) const noexcept {
    return find_line(trailers_, name);
}
std::vector<field> client_head::fields() const {
    std::vector<field> all;
    for_each_line(head_, [&](const field& f) { all.push_back(f); });
    return all;
}
std::vector<std::string_view> client_head::find_all(std::string_view name) const {
    std::vector<std::string_view> values;
    for_each_line(head_, [&](const field& f) {
        if (equals_ignoring_case(f.name, name)) values.push_back(f.value);
    });
    return values;
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

// Ends the connection, and makes read() throw this error from now on. Each call throws a new
// object, since readers on other threads may still hold the old one.
void client_call::break_off(std::error_code error, std::string_view what) {
    interrupt();
    broken_ = error;
    const std::string message = ": " + error.message();  // the next error adds it again
    if (what.ends_with(message)) what.remove_suffix(message.size());
    broken_by_ = what;
}

// Gives false if no answer arrived.
task<bool> client_call::receive_answer() {
    const bool answered = co_await receive_head();
    head_received_ = answered;
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
        limit(client_.options_.body);  // for a server that has answered and no longer reads
    }
    co_return answered;
}

task<bool> client_call::receive_more() {
    ended_by_ = std::make_error_code(std::errc::connection_aborted);
    if (!connection_->socket.is_open()) co_return false;
    std::error_code ec;
    const io::pooled_buffer received = co_await connection_->socket.receive_pooled(use_await[ec]);
    ended_by_ = ec;
    if (ec || received.empty()) co_return false;
    heard_ = true;
    const auto bytes = received.bytes();
    connection_->input.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    co_return true;
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
            if (size > client_.options_.limits.header_bytes_max) {
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

// Refuses input that cannot become a head, instead of waiting for more. `news`: what has arrived,
// with the three bytes before it.
void client_call::check_beginning(std::string_view news) const {
    constexpr std::string_view start = "HTTP/1.";
    const std::string_view begun = std::string_view(connection_->input).substr(0, start.size());
    bool good = start.starts_with(begun);
    for (std::size_t i = 1; i < news.size(); ++i)
        good = good && (news[i] != '\n' || news[i - 1] == '\r');
    if (!good)
        fail(std::make_error_code(std::errc::bad_message), "http request: the answer's head");
}

// Parses: status-line *( field-line CRLF ) (RFC 9112 sections 4 and 5).
void client_call::read_head(std::string_view head) {
    const auto require = [&](bool good) {
        if (!good)
            fail(std::make_error_code(std::errc::bad_message), "http request: the answer's head");
    };
    length_.reset();
    chunked_ = closes_ = keep_alive_ = false;
    const std::size_t line_end = head.find("\r\n");
    const std::string_view line = head.substr(0, line_end);
    // A higher minor version is read as 1.1 (RFC 9110 section 2.5).
    require(line.size() >= 12 && line.starts_with("HTTP/1.") && is(line[7], digit_byte) &&
            line[8] == ' ');
    require(line.size() == 12 || line[12] == ' ');
    require(std::ranges::all_of(line.substr(12), [](char c) { return is(c, value_byte); }));
    version_1_0_ = line[7] == '0';
    const std::optional<int> status = parse_integer<int>(line.substr(9, 3));
    require(status && *status >= 100 && *status <= 599 && is(line[9], digit_byte));
    answer_.status_ = *status;
    answer_.head_.assign(head.substr(line_end + 2));
    std::size_t fields = 0;
    for (std::string_view left = answer_.head_; !left.empty();) {
        const std::size_t end = left.find("\r\n");
        const std::string_view each = left.substr(0, end);
        left.remove_prefix(end + 2);
        const std::size_t colon = each.find(':');
        if (++fields > client_.options_.limits.fields_max) {
            fail(std::make_error_code(std::errc::message_size),
                 "http request: the number of the answer's fields");
        }
        require(colon != each.npos && colon != 0);
        require(
            std::ranges::all_of(each.substr(0, colon), [](char c) { return is(c, token_byte); }));
        require(
            std::ranges::all_of(each.substr(colon + 1), [](char c) { return is(c, value_byte); }));
        read_framing_field(each.substr(0, colon), trim(each.substr(colon + 1)));
    }
}

void client_call::read_framing_field(std::string_view name, std::string_view value) {
    const auto require = [&](bool good) {
        if (!good)
            fail(std::make_error_code(std::errc::bad_message),
                 "http request: the answer's framing");
    };
    if (equals_ignoring_case(name, "content-length")) {
        require(!length_ && !chunked_);
        length_ = parse_integer<std::uint64_t>(value);
        require(length_.has_value());
    } else if (equals_ignoring_case(name, "transfer-encoding")) {
        // The client asks for no other coding, so only chunked is valid.
        require(!length_ && !chunked_ && !version_1_0_ && equals_ignoring_case(value, "chunked"));
        chunked_ = true;
    } else if (equals_ignoring_case(name, "connection")) {
        for_each_member(value, [&](std::string_view member) {
            closes_ = closes_ || equals_ignoring_case(member, "close");
            keep_alive_ = keep_alive_ || equals_ignoring_case(member, "keep-alive");
            return true;
        });
    }
}

// Decides how the body ends (RFC 9112 section 6.3).
void client_call::begin_body() {
    consumed_ = 0;
    collected_ = 0;
    last_chunk_ = false;
    decoder_.reset();
    answer_.trailers_.clear();
    answer_.body_.clear();
    if (method_ == "HEAD" || bodyless(answer_.status())) {
        left_ = 0;
    } else if (chunked_) {
        limits wide = client_.options_.limits;
        if (!collects()) wide.body_bytes_max = ~std::size_t{0};
        decoder_.emplace(wide);
        decoder_->keep_trailers(answer_.trailers_);
    } else {
        left_ = length_.value_or(~std::uint64_t{0});
        if (!length_) closes_ = true;
        if (collects() && length_ && left_ > client_.options_.limits.body_bytes_max) {
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
        fail(std::make_error_code(std::errc::connection_aborted),
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
        limit(client_.options_.body);
        const bool more = co_await receive_more();
        if (!more) end_of_stream();
    }
}

// Receives and drops the body of an unwanted answer, so that its connection can be used again, if
// that does not take long.
task<> client_call::drop_body() {
    const bool short_enough = decoder_ || left_ <= dropped_bytes_max;
    std::size_t dropped = 0;
    bool whole = false;
    limit(client_.options_.body);  // for the whole body
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
        limit(std::min(client_.options_.body, saturating_sub(end_, loop_.now())));
        const bool more = co_await receive_more();
        // The reader was stopped, but not the call, whose socket would be closed. Nothing is lost.
        const bool stopped =
            ended_by_ == std::errc::operation_canceled && connection_->socket.is_open();
        if (!more && stopped) co_await execution::just_stopped();
        if (!more) end_of_stream();
    }
    co_return std::string_view();
}

// Runs the sink by until_interrupted(): the sink may wait for something other than the socket.
task<> client_call::give_to_sink(std::string_view piece) {
    unlimit();  // the sink's time is not limited here
    in_sink_ = true;
    const scope_exit done([this] { in_sink_ = false; });
    const bool ended = co_await until_interrupted(request_.sink(piece));
    if (stopped_) fail(std::make_error_code(std::errc::operation_canceled), "http request");
    if (!ended) co_await execution::just_stopped();
}

task<> client_call::deliver(std::string_view piece) {
    if (request_.sink != nullptr) {
        co_await give_to_sink(piece);
        co_return;
    }
    collected_ += piece.size();
    if (collected_ > client_.options_.limits.body_bytes_max) {
        fail(std::make_error_code(std::errc::message_size), "http request: the answer's body");
    }
    answer_.body_.append(piece);
}

}  // namespace coppice::http
