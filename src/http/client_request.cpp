// What a client sends: a head, which is exactly one request, and a body.
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/http/client.hpp>
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/message.hpp>
#include <coppice/http/parse.hpp>

#include <algorithm>
#include <charconv>
#include <span>
#include <stdexcept>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t piece_bytes = 16 * 1024;

// Returns true for a field of the caller that would change where the request ends, or what protocol
// the server speaks next.
bool changes_framing(const field& f) noexcept {
    constexpr std::string_view names[] = {"Host", "Content-Length", "Transfer-Encoding", "Upgrade"};
    if (std::ranges::any_of(names, [&](auto n) { return equals_ignoring_case(f.name, n); })) {
        return true;
    }
    return equals_ignoring_case(f.name, "Connection") && !equals_ignoring_case(f.value, "close");
}

// The parts of a request's head.
struct head_parts {
    std::string_view method, target, host, fields;
};

// Returns why `head` is not exactly the request that `r` asks for; "" if it is. `own_fields` of its
// fields are the client's: Host in front, the framing at the end. The server's parser decides, so
// the client sends only what that server would accept.
std::string_view fault_of(const head_parts& r, std::string_view head,
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

// Writes a streamed request body: in chunks, or unchanged if its length is declared.
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
            if (left_) *left_ -= taken;  // only now: a stop leaves the rest out
            if (piece_.size() == piece_bytes) co_await flush();
        }
    }
    // Stops the source if the connection is gone; what has arrived of an answer tells why.
    task<> flush() override {
        if (!unsent_) put_piece();
        bool sent = false;
        if (call_.loop_.is_current()) {
            sent = co_await call_.send_output();
        } else {  // the source is on another thread
            sent = co_await execution::starts_on(call_.loop_.get_scheduler(), call_.send_output());
        }
        const bool behind = std::exchange(unsent_, !sent);
        if (!sent) co_await execution::just_stopped();
        if (behind) co_await flush();  // the rest of a stopped call was sent first
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
    bool unsent_ = false;  // the output holds the rest of a stopped call
};

// Puts the request into output_, without a body that is sent separately.
void client_call::write_request() {
    std::string& out = output_;
    out.clear();
    out.append(method_).append(" ").append(target_).append(" HTTP/1.1\r\nHost: ");
    if (!host_field_.empty()) {
        out.append(host_field_);
    } else if (to_->is_unix()) {
        out.append("localhost");
    } else {
        out.append(to_->to_string());
    }
    out.append("\r\n").append(fields_);
    bool framed = true;
    body_source* const source = without_body_ ? nullptr : request_.source.get();
    const std::string_view body = without_body_ ? std::string_view() : request_.body;
    const bool has_body = source != nullptr || !body.empty();
    const std::optional<std::uint64_t> length = source != nullptr ? source->length() : body.size();
    if (!length) {
        out.append("Transfer-Encoding: chunked\r\n");
    } else if (has_body || method_ == "POST" || method_ == "PUT") {
        out.append("Content-Length: ");
        append_number(out, *length);
        out.append("\r\n");
    } else {
        framed = false;
    }
    out.append("\r\n");
    const std::string_view fault =
        fault_of({method_, target_, host_field_, fields_}, out, framed ? 2 : 1);
    if (!fault.empty()) {
        fail(std::make_error_code(std::errc::invalid_argument),
             ("http request: " + std::string(fault)).c_str());
    }
    if (!body_apart()) out.append(body);
}

bool client_call::body_apart() const noexcept {
    return !without_body_ && (request_.source != nullptr || request_.body.size() > piece_bytes);
}

// Gives false if no answer arrived. A server may answer before it has the whole body, and close
// (RFC 9112 section 9.5). A body that is not sent together with the head is therefore sent while
// the answer is received.
task<bool> client_call::exchange() {
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

// Gives false if the server does not want the rest of the body, or the connection is gone.
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

// Gives false if the connection is gone; send_error_ says why.
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

// Sends output_. Gives false if the connection is gone, and also if the awaiter was stopped; the
// next call then sends the rest.
task<bool> client_call::send_output() {
    const bool sent = co_await send_piece(output_);
    output_.erase(0, sent_);
    if (send_error_ == std::errc::operation_canceled && connection_->socket.is_open()) {
        send_error_.clear();
    }
    co_return sent;
}

}  // namespace coppice::http
