// Connections, requests and answers of http/client.hpp.
#include <coppice/base/saturating.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/message.hpp>
#include <coppice/http/parse.hpp>
#include <coppice/http/scan.hpp>
#include <coppice/io/option.hpp>

#include <algorithm>
#include <charconv>
#include <ranges>
#include <span>
#include <stdexcept>
#include <utility>

#include "lines.hpp"
#include "options.hpp"
#include "until_stopped.hpp"

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t piece_bytes = 16 * 1024;
constexpr int interim_answers_max = 100;

bool idempotent(std::string_view method) noexcept {
    constexpr std::string_view methods[] = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"};
    return std::ranges::find(methods, method) != std::ranges::end(methods);
}

// Fields of the caller that would change where the request ends, or what the server speaks next.
bool changes_framing(const field& f) noexcept {
    constexpr std::string_view names[] = {"Host", "Content-Length", "Transfer-Encoding", "Upgrade"};
    if (std::ranges::any_of(names, [&](auto n) { return equals_ignoring_case(f.name, n); })) {
        return true;
    }
    return equals_ignoring_case(f.name, "Connection") && !equals_ignoring_case(f.value, "close");
}

// Why `head` is not the one request that `r` asks for; "" if it is. `own_fields` of its fields are
// the client's: Host in front, the framing behind. The server's parser is the judge, so what this
// client sends is what that server would accept.
std::string_view fault_of(const client_request& r, std::string_view head,
                          std::size_t own_fields) noexcept {
    if (equals_ignoring_case(r.method, "CONNECT")) return "the client makes no tunnels (CONNECT)";
    if (!r.fields.empty() && !r.fields.ends_with("\r\n")) return "the fields do not end with CRLF";
    limits wide;
    wide.target_bytes_max = wide.header_bytes_max = head.size();
    wide.body_bytes_max = ~std::size_t{0};
    wide.fields_max = request_head::capacity;
    request_head read;
    const parse_result parsed = parse_head(head, read, wide);
    if (parsed.status == parse_status::error) return parsed.reason;
    if (parsed.status != parse_status::complete || parsed.consumed != head.size() ||
        read.method_text() != r.method || read.target() != r.target) {
        return "the method, the target, the host or the fields have line ends";
    }
    const std::span<const field> all = read.fields();
    if (!r.host.empty() && all.front().value != r.host) return "the host is invalid";
    const std::span<const field> theirs = all.subspan(1, all.size() - own_fields);
    if (std::ranges::any_of(theirs, changes_framing)) {
        return "the fields have one that only the client writes: Host, Content-Length, "
               "Transfer-Encoding, Upgrade, or Connection other than close";
    }
    return {};
}

void append_number(std::string& out, std::uint64_t value, int base = 10) {
    char text[20];
    out.append(text, std::to_chars(text, text + sizeof text, value, base).ptr);
}

}  // namespace

std::optional<std::string_view> client_response::find(std::string_view name) const noexcept {
    return find_line(head_, name);
}
std::optional<std::string_view> client_response::trailer(std::string_view name) const noexcept {
    return find_line(trailers_, name);
}

client::client(io::context& loop, client_options options)
    : loop_(loop), options_(checked(std::move(options))) {}
client::~client() = default;

std::unique_ptr<client_connection> client::take(const io::endpoint& to) {
    const time_point oldest = saturating_sub(loop_.now(), options_.idle);
    std::erase_if(idle_, [&](const auto& c) { return c->used < oldest; });
    while (true) {
        const auto found =
            std::find_if(idle_.rbegin(), idle_.rend(), [&](const auto& c) { return c->to == to; });
        if (found == idle_.rend()) break;
        std::unique_ptr<client_connection> c = std::move(*found);
        idle_.erase(std::next(found).base());
        // Else something has come since it was used last, or its server has closed it.
        if (c->socket.is_quiet()) return c;
    }
    return std::make_unique<client_connection>(loop_, to);
}

void client::keep(std::unique_ptr<client_connection> used) {
    if (options_.idle_connections_max == 0) return;
    if (idle_.size() == options_.idle_connections_max) idle_.erase(idle_.begin());
    used->used = loop_.now();
    used->fresh = false;
    idle_.push_back(std::move(used));
}

client_call::client_call(client& owner, const client_request& r) noexcept
    : timer_entry(&expired), client_(owner), request_(r) {}

client_call::~client_call() {
    if (timer_entry::armed()) client_.loop_.disarm(*this);
}

void client_call::stop() noexcept {
    if (client_.loop_.is_current()) {
        stopped_ = true;
        interrupt();
    } else {
        posted_ = true;
        client_.loop_.post(posted_operation_);
    }
}

void client_call::posted_stop::arrive(operation* op) noexcept {
    client_call& call = static_cast<posted_stop*>(op)->call;
    call.arrived_ = true;
    call.stopped_ = true;
    call.interrupt();
    if (call.waiter_) call.waiter_.resume();  // may end the call
}

// Whatever waits on the socket ends in a coming turn. The connection ends with a reset: to a server
// its mere end would say that nothing more is asked, and the answer would still be made.
void client_call::interrupt() noexcept {
    if (sending_) enough_->request_stop();  // the source may wait for something else
    if (connection_ == nullptr || !connection_->socket.is_open()) return;
    (void)connection_->socket.set(io::linger(std::chrono::seconds(0)));
    connection_->socket.close();
}

void client_call::expired(io::timer_entry* entry) noexcept {
    client_call& call = *static_cast<client_call*>(entry);
    if (call.client_.loop_.ending()) return;
    call.late_ = true;
    call.interrupt();
}

// What follows has so much time.
void client_call::limit(duration time) noexcept {
    if (timer_entry::armed()) client_.loop_.disarm(*this);
    if (in_sink_) return;
    client_.loop_.arm(*this, saturating_add(client_.loop_.now(), time));
}

void client_call::fail(std::error_code error, const char* what) const {
    if (late_) error = std::make_error_code(std::errc::timed_out);
    throw std::system_error(error, what);
}

bool client_call::stopped() const noexcept {
    return stopped_ || outer_.stop_requested() ||
           (deadline_ != execution::instant::never() && client_.loop_.now() >= deadline_);
}

task<std::optional<client_response>> client_call::perform(inplace_stop_token stop,
                                                          execution::instant deadline) {
    outer_ = stop;
    deadline_ = deadline;
    std::optional<client_response> answer;
    try {
        answer = co_await result_on_loop({{stop, client_.loop_}, deadline}, request());
    } catch (...) {
        interrupt();
        throw;
    }
    if (!answer) interrupt();
    co_return answer;
}

task<client_response> client_call::request() {
    client_response answer;
    write_request();
    bool again = idempotent(request_.method) && request_.source == nullptr;
    while (!stopped_) {
        connection_ = client_.take(request_.to);
        const bool kept = !connection_->fresh;
        if (co_await attempt(answer, kept && again)) co_return answer;
        again = false;
    }
    fail(std::make_error_code(std::errc::operation_canceled), "http request");
}

// False: the kept connection turned out to be closed, and the request may be sent again.
task<bool> client_call::attempt(client_response& answer, bool may_fail) {
    send_error_.clear();
    head_received_ = false;
    if (connection_->fresh) {
        limit(client_.options_.connect);
        ++client_.made_;
        std::error_code ec;
        co_await connection_->socket.connect(request_.to, use_await[ec]);
        if (ec) fail(ec, "connect");
    }
    limit(client_.options_.answer);
    if (!co_await exchange(answer)) {
        const bool ends = late_ || stopped();
        if (may_fail && !ends && connection_->input.empty()) co_return false;
        fail(send_error_ ? send_error_ : std::make_error_code(std::errc::connection_aborted),
             "no answer came");
    }
    // A body that its server does not take, though it has answered with a success.
    if (late_) fail(std::make_error_code(std::errc::timed_out), "the request's body");
    if (timer_entry::armed()) client_.loop_.disarm(*this);
    const bool reusable = !closes_ && (!version_1_0_ || keep_alive_) &&
                          connection_->socket.is_open() && connection_->input.empty();
    if (reusable) client_.keep(std::move(connection_));
    connection_ = nullptr;
    co_return true;
}

// Writes a streamed request body in chunks, or as it is if its length is declared.
class client_writer final : public body_writer {
public:
    client_writer(client_call& call, std::optional<std::uint64_t> length,
                  inplace_stop_token stop) noexcept
        : call_(call), stop_(stop), left_(length), chunked_(!length) {}
    task<> write(std::string_view bytes) override {
        if (left_) {
            if (bytes.size() > *left_) {
                throw std::length_error("a body is longer than its declared length");
            }
        }
        while (!bytes.empty()) {
            const std::size_t taken = std::min(bytes.size(), piece_bytes - piece_.size());
            piece_.append(bytes.substr(0, taken));
            bytes.remove_prefix(taken);
            if (left_) *left_ -= taken;  // not before: a stop leaves the rest out
            if (piece_.size() == piece_bytes) co_await flush();
        }
    }
    // Stops the source if the connection is gone: what has come of an answer says why.
    task<> flush() override {
        if (!unsent_) put_piece();
        bool sent = false;
        if (call_.client_.loop_.is_current()) {
            sent = co_await call_.send_output();
        } else {  // the source has gone elsewhere
            sent = co_await execution::starts_on(call_.client_.loop_.get_scheduler(),
                                                 call_.send_output());
        }
        const bool behind = std::exchange(unsent_, !sent);
        if (!sent) co_await execution::just_stopped();
        if (behind) co_await flush();  // what a stopped call has left was first
    }
    void trailer(std::string_view name, std::string_view value) override {
        if (chunked_) trailers_.add(name, value);
    }
    inplace_stop_token stop_token() const noexcept override { return stop_; }
    task<> finish() {
        if (left_.value_or(0) != 0) {
            throw std::length_error("a body is shorter than its declared length");
        }
        if (unsent_) co_await flush();
        put_piece();
        if (chunked_) call_.output_.append("0\r\n").append(trailers_.fields()).append("\r\n");
        co_await flush();
    }

private:
    void put_piece() {
        if (piece_.empty()) return;
        if (chunked_) {
            append_number(call_.output_, piece_.size(), 16);
            call_.output_.append("\r\n").append(piece_).append("\r\n");
        } else {
            call_.output_ += piece_;
        }
        piece_.clear();
    }
    client_call& call_;
    const inplace_stop_token stop_;
    std::string piece_;
    response trailers_;                  // only its fields
    std::optional<std::uint64_t> left_;  // of the declared length
    bool chunked_;
    bool unsent_ = false;  // the output has what a call that was stopped has left
};

// Puts the request into output_, but for a body that a source writes.
void client_call::write_request() {
    std::string& out = output_;
    out.clear();
    out.append(request_.method).append(" ").append(request_.target).append(" HTTP/1.1\r\nHost: ");
    if (!request_.host.empty()) {
        out.append(request_.host);
    } else if (request_.to.data()->sa_family == AF_UNIX) {
        out.append("localhost");
    } else {
        out.append(request_.to.to_string());
    }
    out.append("\r\n").append(request_.fields);
    bool framed = true;
    const bool has_body = request_.source != nullptr || !request_.body.empty();
    const std::optional<std::uint64_t> length =
        request_.source != nullptr ? request_.source->length() : request_.body.size();
    if (!length) {
        out.append("Transfer-Encoding: chunked\r\n");
    } else if (has_body || request_.method == "POST" || request_.method == "PUT") {
        out.append("Content-Length: ");
        append_number(out, *length);
        out.append("\r\n");
    } else {
        framed = false;
    }
    out.append("\r\n");
    if (const std::string_view fault = fault_of(request_, out, framed ? 2 : 1); !fault.empty()) {
        fail(std::make_error_code(std::errc::invalid_argument),
             ("http request: " + std::string(fault)).c_str());
    }
    if (!body_apart()) out.append(request_.body);
}

bool client_call::body_apart() const noexcept {
    return request_.source != nullptr || request_.body.size() > piece_bytes;
}

// False: no answer came. A server may answer before it has the whole body, and close (RFC 9112
// section 9.5); so a body that is not sent at once is sent while the answer is received.
task<bool> client_call::exchange(client_response& answer) {
    if (!body_apart()) {
        // A failed send is nothing yet: the answer may have come before the connection broke.
        (void)co_await send_piece(output_);
        co_return co_await receive_answer(answer);
    }
    enough_.emplace();
    sending_ = true;
    const auto [sent, answered] =
        co_await execution::when_all(send_body(enough_->get_token()), receive_answer(answer));
    // With a reset: what the kernel still holds of the body would keep it waiting for the server.
    if (!sent) interrupt();
    co_return answered;
}

// False: the server wants no more of it, or the connection is gone.
task<bool> client_call::send_body(inplace_stop_token enough) {
    const std::optional<bool> sent =
        co_await (execution::stop_when(send_pieces(), enough) | execution::stopped_as_optional());
    const bool given_up = enough.stop_requested() || send_error_;
    if (!sent && !given_up) co_await execution::just_stopped();
    sending_ = false;
    if (!given_up) limit(head_received_ ? client_.options_.body : client_.options_.answer);
    co_return sent.value_or(false);
}

task<bool> client_call::send_pieces() {
    if (request_.source != nullptr) {
        client_writer writer(*this, request_.source->length(),
                             co_await execution::read_env(get_stop_token));
        co_await request_.source->write_to(writer);
        co_await writer.finish();
        co_return true;
    }
    if (!co_await send_piece(output_)) co_return false;
    for (std::string_view left = request_.body; !left.empty();) {
        const std::string_view piece = left.substr(0, piece_bytes);
        left.remove_prefix(piece.size());
        if (!co_await send_piece(piece)) co_return false;
    }
    co_return true;
}

// False: the connection is gone; send_error_ says why.
task<bool> client_call::send_piece(std::string_view piece) {
    sent_ = 0;
    if (send_error_ || !connection_->socket.is_open()) {
        send_error_ = std::make_error_code(std::errc::connection_aborted);
        co_return false;
    }
    if (body_apart()) limit(client_.options_.body);
    while (sent_ != piece.size() && !send_error_) {
        const auto left = std::as_bytes(std::span(piece)).subspan(sent_);
        sent_ += co_await connection_->socket.send(left, use_await[send_error_]);
    }
    co_return !send_error_;
}

// Sends output_. False: also if what awaits this was stopped. Then the next call sends the rest.
task<bool> client_call::send_output() {
    const bool sent = co_await send_piece(output_);
    output_.erase(0, sent_);
    if (send_error_ == std::errc::operation_canceled && connection_->socket.is_open()) {
        send_error_.clear();
    }
    co_return sent;
}

// False: nothing came.
task<bool> client_call::receive_answer(client_response& answer) {
    const bool answered = co_await receive_head(answer);
    head_received_ = answered;
    // Only an answer that is no success says that the rest of the body is not wanted; to one that
    // is, a server may need all of it. What cannot be answered any more is not wanted either.
    if (sending_ && (!answered || answer.status() >= 300)) enough_->request_stop();
    if (answered) co_await receive_body(answer);
    if (sending_) {
        if (closes_) enough_->request_stop();
        limit(client_.options_.body);  // of a server that has answered and reads no more
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
    const auto bytes = received.bytes();
    connection_->input.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    co_return true;
}

// The final answer's head; a few interim ones (1xx) are passed over. 101 is final: what follows it
// would be another protocol, for which nobody has asked. False: nothing came.
task<bool> client_call::receive_head(client_response& answer) {
    std::string& input = connection_->input;
    int interim = 0;
    do {
        if (interim++ == interim_answers_max) {
            fail(std::make_error_code(std::errc::message_size), "the interim answers");
        }
        std::size_t searched = 0;
        for (;;) {
            const std::size_t end = input.find("\r\n\r\n", searched);
            // With its status line; so that it does not matter how the head arrives.
            const std::size_t size = end == input.npos ? input.size() : end + 4;
            if (size > client_.options_.limits.header_bytes_max) {
                fail(std::make_error_code(std::errc::message_size), "the answer's head");
            }
            if (end != input.npos) {
                read_head(answer, std::string_view(input).substr(0, end + 2));
                input.erase(0, end + 4);
                break;
            }
            check_beginning(std::string_view(input).substr(searched));
            searched = input.size() < 3 ? 0 : input.size() - 3;
            if (!co_await receive_more()) co_return false;
        }
        if (answer.status() == 101) {
            fail(std::make_error_code(std::errc::bad_message), "an upgrade that was not asked for");
        }
    } while (answer.status() < 200);
    co_return true;
}

// What cannot become a head is not waited for. `news`: what has come, with the three bytes before.
void client_call::check_beginning(std::string_view news) const {
    constexpr std::string_view start = "HTTP/1.";
    const std::string_view begun = std::string_view(connection_->input).substr(0, start.size());
    bool good = start.starts_with(begun);
    for (std::size_t i = 1; i < news.size(); ++i)
        good = good && (news[i] != '\n' || news[i - 1] == '\r');
    if (!good) fail(std::make_error_code(std::errc::bad_message), "the answer's head");
}

// status-line *( field-line CRLF ) (RFC 9112 sections 4 and 5).
void client_call::read_head(client_response& answer, std::string_view head) {
    const auto require = [&](bool good) {
        if (!good) fail(std::make_error_code(std::errc::bad_message), "the answer's head");
    };
    length_.reset();
    chunked_ = closes_ = keep_alive_ = false;
    const std::size_t line_end = head.find("\r\n");
    const std::string_view line = head.substr(0, line_end);
    require(line.size() >= 12 && (line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 ")));
    require(line.size() == 12 || line[12] == ' ');
    require(std::ranges::all_of(line.substr(12), [](char c) { return is(c, value_byte); }));
    version_1_0_ = line[7] == '0';
    const std::optional<int> status = parse_integer<int>(line.substr(9, 3));
    require(status && *status >= 100 && *status <= 599 && is(line[9], digit_byte));
    answer.status_ = *status;
    answer.head_.assign(head.substr(line_end + 2));
    std::size_t fields = 0;
    for (std::string_view left = answer.head_; !left.empty();) {
        const std::size_t end = left.find("\r\n");
        const std::string_view each = left.substr(0, end);
        left.remove_prefix(end + 2);
        const std::size_t colon = each.find(':');
        if (++fields > client_.options_.limits.fields_max) {
            fail(std::make_error_code(std::errc::message_size), "the answer's fields");
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
        if (!good) fail(std::make_error_code(std::errc::bad_message), "the answer's framing");
    };
    if (equals_ignoring_case(name, "content-length")) {
        require(!length_ && !chunked_);
        length_ = parse_integer<std::uint64_t>(value);
        require(length_.has_value());
    } else if (equals_ignoring_case(name, "transfer-encoding")) {
        // Only what was not asked for could be anything else than chunked.
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

// RFC 9112 section 6.3.
task<> client_call::receive_body(client_response& answer) {
    if (request_.method == "HEAD" || bodyless(answer.status())) co_return;
    if (chunked_) {
        co_await receive_chunked(answer);
        co_return;
    }
    std::string& input = connection_->input;
    std::uint64_t left = length_.value_or(~std::uint64_t{0});
    if (!length_) closes_ = true;
    if (request_.sink == nullptr && length_ && left > client_.options_.limits.body_bytes_max) {
        fail(std::make_error_code(std::errc::message_size), "the answer's body");
    }
    while (left != 0) {
        const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(left, input.size()));
        co_await deliver(answer, std::string_view(input).substr(0, taken));
        input.erase(0, taken);
        left -= taken;
        if (left == 0) break;
        limit(client_.options_.body);
        if (co_await receive_more()) continue;
        if (length_ || stopped_ || late_ || ended_by_) {
            fail(std::make_error_code(std::errc::connection_aborted), "the answer's body");
        }
        break;  // the stream's proper end is the body's
    }
}

task<> client_call::receive_chunked(client_response& answer) {
    std::string& input = connection_->input;
    limits wide = client_.options_.limits;
    if (request_.sink != nullptr) wide.body_bytes_max = ~std::size_t{0};
    chunk_decoder decoder(wide);
    answer.trailers_.clear();
    decoder.keep_trailers(answer.trailers_);
    for (;;) {
        const chunk_decoder::result r = decoder.decode(std::span(input));
        if (r.status == parse_status::error) {
            fail(std::make_error_code(r.error == 400 ? std::errc::bad_message
                                                     : std::errc::message_size),
                 "the answer's body");
        }
        co_await deliver(answer, std::string_view(input).substr(0, r.produced));
        input.erase(0, r.consumed);
        if (r.status == parse_status::complete) co_return;
        limit(client_.options_.body);
        if (!co_await receive_more()) {
            fail(std::make_error_code(std::errc::connection_aborted), "the answer's body");
        }
    }
}

task<> client_call::deliver(client_response& answer, std::string_view piece) {
    if (piece.empty()) co_return;
    if (request_.sink != nullptr) {
        // The sink's time is its own.
        if (timer_entry::armed()) client_.loop_.disarm(*this);
        in_sink_ = true;
        co_await request_.sink(piece);
        in_sink_ = false;
        co_return;
    }
    collected_ += piece.size();
    if (collected_ > client_.options_.limits.body_bytes_max) {
        fail(std::make_error_code(std::errc::message_size), "the answer's body");
    }
    answer.body_.append(piece);
}

}  // namespace coppice::http
