// Answers whose bodies come in pieces, from a producer or a file.
#include "connection.hpp"
#include "until_stopped.hpp"

#include <coppice/exec/just.hpp>
#include <coppice/exec/starts_on.hpp>

#include <algorithm>
#include <charconv>
#include <stdexcept>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t body_piece_bytes = 16 * 1024;  // of a produced body, sent together

// One chunk: its size, CRLF, its data, CRLF (RFC 9112 section 7.1).
void append_chunk(std::string_view data, std::string& out) {
    char size[16];
    const auto end = std::to_chars(size, size + sizeof size, data.size(), 16).ptr;
    out.append(size, static_cast<std::size_t>(end - size)).append("\r\n");
    out.append(data).append("\r\n");
}

}  // namespace

// Takes what a producer writes to the output, in chunks if needed, and to the client.
class outgoing_body final : public body_writer {
public:
    outgoing_body(connection& c, exchange& e, const serialize_options& how) noexcept
        : connection_(c),
          exchange_(e),
          left_(how.length),
          chunked_(how.chunked),
          trails_(how.chunked || (c.is_stream_ && !how.length)) {}

    task<> write(std::string_view bytes) override {
        if (left_) {
            if (bytes.size() > *left_) {
                throw std::length_error("a body is longer than its declared length");
            }
        }
        while (!bytes.empty()) {
            const std::size_t taken = std::min(bytes.size(), body_piece_bytes - piece_.size());
            piece_.append(bytes.substr(0, taken));
            bytes.remove_prefix(taken);
            if (left_) *left_ -= taken;  // only now: a stop leaves the rest out
            written_ += taken;
            if (piece_.size() == body_piece_bytes) co_await flush();
        }
    }
    task<> flush() override {
        io::context& loop = connection_.loop_.context;
        bool sent = false;
        if (loop.is_current()) {
            sent = co_await send();
        } else {  // the producer is on another thread; its task may belong there
            thread_pool* const pool = connection_.loop_.shared.pool;
            const bool from_pool = pool != nullptr && pool->is_current();
            sent = co_await execution::starts_on(loop.get_scheduler(), send());
            if (from_pool && !pool->is_current()) co_await pool->get_scheduler().schedule();
        }
        if (!sent) co_await execution::just_stopped();
    }
    std::uint64_t written() const noexcept override { return written_; }
    void trailer(std::string_view name, std::string_view value) override {
        if (trails_) trailers_.add(name, value);
    }
    inplace_stop_token stop_token() const noexcept override { return exchange_.origin.stop; }
    inplace_stop_token drain_token() const noexcept override {
        return connection_.loop_.drain_source.get_token();
    }

    // Returns true unless the body is shorter than was declared.
    bool is_whole() const noexcept { return left_.value_or(0) == 0; }
    // Called on the loop after the producer. Returns false if there is no memory for the fields
    // after the body.
    bool finish() {
        put_piece();
        if (chunked_) {
            exchange_.output.append("0\r\n").append(trailers_.fields()).append("\r\n");
        } else if (trails_ && !connection_.link_->keep_trailers(trailers_.fields())) {
            return false;
        }
        return true;
    }

private:
    // Called on the loop. Gives false if the client is gone, or the awaiter was stopped; the next
    // call then sends the rest.
    task<bool> send() {
        if (!connection_.socket_.is_open() || exchange_.origin.stop.stop_requested()) {
            co_return false;
        }
        // First sends what a stopped call has left, so that it never grows.
        const bool behind = unsent_;
        if (!behind) put_piece();
        bool sent = co_await connection_.write(exchange_);
        if (sent && behind) {
            put_piece();
            sent = co_await connection_.write(exchange_);
        }
        unsent_ = !sent;
        if (connection_.socket_.is_open()) connection_.run_untimed();
        co_return sent;
    }
    void put_piece() {
        if (piece_.empty()) return;
        if (chunked_) {
            append_chunk(piece_, exchange_.output);
        } else {
            exchange_.output += piece_;
        }
        piece_.clear();
    }

    connection& connection_;
    exchange& exchange_;
    std::string piece_;
    response trailers_;                  // only its fields
    std::optional<std::uint64_t> left_;  // of the declared length
    std::uint64_t written_ = 0;
    bool chunked_;
    bool trails_;          // fields may follow the body
    bool unsent_ = false;  // the output holds the rest of a stopped call
};

// Sends an answer whose body comes in pieces.
task<connection::step> connection::send_stream(exchange& e) {
    if (away_) co_await come_home();
    std::optional<response> kept = std::exchange(e.streamed, std::nullopt);
    if (upgrades(*kept)) co_return co_await serve_websocket(e, std::move(kept));
    const response& answer = *kept;
    const int status = answer.status();
    const request_head& head = e.parser.head();
    const serialize_options how = framing(e, answer, &head);
    e.streaming = true;
    serialize_head(answer, how, e.output);
    if (const std::optional<file_part> part = answer.source()->file()) {
        note(e, answer.status(), part->size, &head);
        if (co_await send_file(e, *part)) {
            e.streaming = false;
            co_return step::answered;
        }
        abort();
        co_return step::gone;
    }
    if (!e.stop) begin_run(e);
    run_untimed();
    const route_flight flight(loop_.counts_of(e.match));
    outgoing_body out(*this, e, how);
    std::exception_ptr error;
    std::optional<bool> whole;
    try {
        whole = co_await end_of({e.origin.stop, loop_.context}, answer.source()->write_to(out));
    } catch (...) {
        error = std::current_exception();
    }
    if (!come_home_at_once()) co_await come_home();
    note(e, status, out.written(), &head);
    if (whole && !out.is_whole() && !e.origin.stop.stop_requested()) {
        error = std::make_exception_ptr(
            std::length_error("a body is shorter than its declared length"));
    }
    if (error) report_exception(e, std::exchange(error, nullptr));
    kept.reset();  // its body may refer to the stop source
    give_back(e, e.reserved_body);
    end_run(e);
    if (!whole) ++e.stops;
    if (whole && out.is_whole() && socket_.is_open() && out.finish()) {
        e.streaming = false;
        co_return step::answered;
    }
    abort();  // so that the client does not take a part for the whole
    co_return step::gone;
}

}  // namespace coppice::http
