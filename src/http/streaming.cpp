// Bodies in pieces: those that handlers read, those that producers write, and files.
#include "serving.hpp"
#include "until_stopped.hpp"

#include <coppice/base/saturating.hpp>
#include <coppice/exec/just.hpp>
#include <coppice/exec/read_env.hpp>
#include <coppice/exec/starts_on.hpp>
#include <coppice/io/option.hpp>

#include <unistd.h>
#include <algorithm>
#include <charconv>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::size_t piece_bytes = 16 * 1024;  // of a produced body, sent together
constexpr std::size_t file_bytes = 64 * 1024;   // of a file, read when its socket is full
// of a file, sent before other connections get their turn
constexpr std::size_t turn_bytes = 1024 * 1024;

// One chunk: its size, CRLF, its data, CRLF (RFC 9112 section 7.1).
void append_chunk(std::string_view data, std::string& out) {
    char size[16];
    const auto end = std::to_chars(size, size + sizeof size, data.size(), 16).ptr;
    out.append(size, static_cast<std::size_t>(end - size)).append("\r\n");
    out.append(data).append("\r\n");
}

}  // namespace

// Ends a wait for input early, as if nothing had arrived, because the awaiter was stopped or its
// deadline has passed. It belongs to the loop, except for the callback. On another thread the
// callback posts this, which must then not be destroyed before it has arrived.
class connection::input_stop final : io::operation, io::timer_entry {
public:
    input_stop(connection& c, inplace_stop_token stop, execution::instant deadline) noexcept
        : operation(&arrive), timer_entry(&expire), connection_(c) {
        if (deadline != execution::instant::never()) {
            c.loop_.context.arm(*this, static_cast<time_point>(deadline));
        }
        callback_.emplace(stop, on_stop(*this));
    }
    ~input_stop() = default;

    // Called when the wait is over. The caller then awaits `settled`.
    void end() noexcept {
        callback_.reset();
        if (timer_entry::armed()) connection_.loop_.context.disarm(*this);
    }
    // Returns true if this has ended the wait.
    bool stopped() const noexcept { return stopped_; }

    // Awaited once the callback is gone: completes when what it may have posted has arrived.
    class settled {
    public:
        explicit settled(input_stop& of) noexcept : of_(of) {}
        bool await_ready() const noexcept { return !of_.posted_ || of_.arrived_; }
        void await_suspend(std::coroutine_handle<> h) noexcept { of_.waiter_ = h; }
        void await_resume() const noexcept {}

    private:
        input_stop& of_;
    };

private:
    class on_stop {
    public:
        explicit on_stop(input_stop& of) noexcept : of_(&of) {}
        void operator()() const noexcept { of_->stop(); }

    private:
        input_stop* of_;
    };
    void stop() noexcept {
        io::context& loop = connection_.loop_.context;
        posted_ = true;
        if (loop.is_current()) {
            loop.defer(*this);
        } else {
            loop.post(*this);
        }
    }
    static void arrive(operation* op) noexcept {
        input_stop& self = *static_cast<input_stop*>(op);
        self.arrived_ = true;
        if (self.waiter_) {
            self.waiter_.resume();
        } else {
            self.end_wait();
        }
    }
    static void expire(timer_entry* entry) noexcept {
        input_stop& self = *static_cast<input_stop*>(entry);
        if (!self.connection_.loop_.context.ending()) self.end_wait();
    }
    // Called last: resumes the waiter.
    void end_wait() noexcept {
        read_ahead& a = connection_.batch_->ahead;
        if (!a.waiter) return;
        stopped_ = true;
        std::exchange(a.waiter, {}).resume();
    }

    connection& connection_;
    std::optional<inplace_stop_callback<on_stop>> callback_;
    std::coroutine_handle<> waiter_;
    bool posted_ = false;  // written by the callback, read when the callback is gone
    bool arrived_ = false;
    bool stopped_ = false;
};

// The body of a request, as its handler reads it. Lives as long as the handler.
class incoming_body final : public body_reader {
public:
    incoming_body(connection& c, exchange& e) noexcept
        : connection_(c), exchange_(e), decoder_(limits_of(c)) {
        const request_head& head = e.parser.head();
        chunked_ = head.chunked();
        left_ = head.content_length().value_or(0);
        ended_ = !chunked_ && left_ == 0;
        bytes_.swap(e.rest);
        asked_ = !head.expects_continue() || !bytes_.empty();
        decoder_.keep_trailers(e.trailers);
    }
    // Runs after the handler and its locals are gone.
    ~incoming_body() {
        if (kept_ != 0) exchange_.budget.give(kept_);
    }

    void keep(std::size_t bytes) override {
        if (!exchange_.budget.reserve(bytes)) throw refused{503, no_room_reason};
        kept_ += bytes;
    }
    bool has_begun() const noexcept override { return begun_; }
    task<std::string_view> read() override {
        serving_loop& loop = connection_.loop_;
        turn_to_read turn(*this);
        for (;;) {
            if (const std::string_view piece = next_piece(); ended_ || !piece.empty()) {
                begun_ = true;
                co_return piece;
            }
            const inplace_stop_token stop = co_await execution::read_env(get_stop_token);
            const execution::instant deadline =
                co_await execution::read_env(execution::get_deadline);
            bool received = false;
            if (loop.context.is_current()) {
                received = co_await receive(stop, deadline);
            } else {  // the handler is on another thread; its task may belong there
                received = co_await execution::starts_on(loop.context.get_scheduler(),
                                                         receive(stop, deadline));
                thread_pool* const pool = loop.shared.pool;
                if (pool != nullptr && !pool->is_current()) {
                    co_await pool->get_scheduler().schedule();
                }
            }
            // What has arrived nevertheless is for the next call.
            if (!received || stop.stop_requested()) {
                turn.end();  // the frame may outlive the stop
                co_await execution::just_stopped();
            }
        }
    }

    bool is_complete() const noexcept { return ended_; }
    bool is_broken() const noexcept { return broken_; }
    // Returns what was received but does not belong to this body.
    std::string take_rest() { return bytes_.substr(at_); }

private:
    // Held by the read() that is under way. Errors: std::logic_error if another one is: the two
    // would wait in one place, and one of them forever.
    class turn_to_read : coppice::immovable {
    public:
        explicit turn_to_read(incoming_body& body) : body_(&body) {
            const std::lock_guard lock(body.turns_);  // a wrong program reads on two threads
            if (body.reading_) {
                throw std::logic_error(
                    "a body is read twice at the same time: await one read() before the next");
            }
            body.reading_ = true;
        }
        ~turn_to_read() { end(); }
        void end() noexcept {
            if (body_ == nullptr) return;
            const std::lock_guard lock(body_->turns_);
            std::exchange(body_, nullptr)->reading_ = false;
        }

    private:
        incoming_body* body_;
    };

    static limits limits_of(connection& c) noexcept {
        limits l = c.loop_.options.limits;
        l.body_bytes_max = saturating_cast<std::size_t>(c.loop_.options.streamed_body_bytes_max);
        return l;
    }

    // Returns the next piece that has arrived; "" if nothing has, or at the end.
    std::string_view next_piece() {
        if (ended_) return {};
        char* const begin = bytes_.data() + at_;
        const std::size_t size = bytes_.size() - at_;
        if (!chunked_) {
            const std::size_t taken =
                static_cast<std::size_t>(std::min<std::uint64_t>(size, left_));
            at_ += taken;
            left_ -= taken;
            received_ += taken;
            ended_ = left_ == 0;
            return {begin, taken};
        }
        const chunk_decoder::result r = decoder_.decode(std::span(begin, size));
        if (r.status == parse_status::error) throw refused{r.error, r.reason};
        at_ += r.consumed;
        received_ += r.produced;
        ended_ = r.status == parse_status::complete;
        return {begin, r.produced};
    }

    // Called on the loop. Gives false if the client is gone, or the awaiter was stopped.
    task<bool> receive(inplace_stop_token stop, execution::instant deadline) {
        connection& c = connection_;
        broken_ = !c.socket_.is_open() || exchange_.given_up;
        if (broken_) co_return false;
        if (!std::exchange(asked_, true)) exchange_.output += "HTTP/1.1 100 Continue\r\n\r\n";
        if (!exchange_.output.empty()) {
            const bool written = co_await c.write(exchange_);
            broken_ = !c.socket_.is_open();
            if (!written) co_return false;
        }
        // The client's time does not count as the handler's, nor the handler's as the client's.
        const time_point began = c.loop_.context.turn_time();
        const duration allowed = c.transfer_time(c.loop_.options.timeouts.body, received_);
        c.enter(connection::phase::body, saturating_sub(allowed, taken_));
        exchange_.input.clear();
        exchange_.left = {};
        connection::input_stop listening(c, stop, deadline);
        const bool more = co_await c.receive_more(exchange_);
        listening.end();
        co_await connection::input_stop::settled(listening);
        const bool full = std::exchange(exchange_.out_of_room, false);
        broken_ = !more && !full && !listening.stopped();
        if (broken_) co_return false;
        const duration waited = c.loop_.context.turn_time() - began;
        taken_ += waited;
        received_ += exchange_.input.size();
        exchange_.origin.deadline = saturating_add(exchange_.origin.deadline, waited);
        c.enter(connection::phase::handling,
                saturating_sub(exchange_.origin.deadline, c.loop_.context.turn_time()));
        if (c.socket_.is_open()) c.watch();
        if (full) throw refused{503, no_room_reason};
        if (!more) co_return false;
        bytes_.assign(exchange_.input);
        at_ = 0;
        co_return true;
    }

    connection& connection_;
    exchange& exchange_;
    chunk_decoder decoder_;
    std::string bytes_;  // received bytes; those from at_ on have not been given out
    std::size_t at_ = 0;
    std::uint64_t left_;          // bytes left of a body with a declared length
    std::uint64_t received_ = 0;  // bytes since the handler's first wait
    duration taken_{};            // time that the client took to send them
    std::size_t kept_ = 0;        // bytes of the budget, for what the handler collects
    std::mutex turns_;
    bool reading_ = false;  // a read() is under way; under turns_
    bool begun_ = false;    // read() has given a piece, or the end
    bool chunked_;
    bool ended_;           // nothing more belongs to the body
    bool asked_;           // the client is not waiting for 100 (Continue)
    bool broken_ = false;  // the client went away in the middle of the body
};

// Copies the head to where it stays while the body arrives, and what has arrived after it into
// e.rest.
void connection::keep_head(exchange& e) {
    e.rest.assign(e.left.substr(e.head_bytes));
    e.head.assign(e.left.substr(0, e.head_bytes));
    e.buffer.release();
    e.left = {};
    e.parser.reset();
    (void)e.parser.parse(e.head);
    e.match = loop_.routes.match(e.parser.head().verb(), e.parser.head().path());
}

// Runs a handler that reads the body itself.
task<connection::step> connection::run_reading_handler(exchange& e) {
    if (away_) co_await come_home();
    keep_head(e);
    incoming_body body(*this, e);
    begin_run(e);
    e.origin.body = &body;
    e.origin.pool = loop_.on_pool(*e.match.handler) ? loop_.shared.pool : nullptr;
    step reached = step::gone;
    {
        request r(e.parser.head(), {}, e.match.parameters, &e.origin);
        std::optional<response> made;
        std::exception_ptr error;
        if (loop_.on_pool(*e.match.handler)) {
            co_await loop_.shared.pool->get_scheduler().schedule();
        }
        try {
            const handler& h = *e.match.handler;
            made = co_await result_of({e.origin.stop, loop_.context, loop_.team_of(h)}, h.start(r));
        } catch (const refused& why) {
            made.emplace(why.status == 503 ? no_room(e) : refusal(e, why.status, why.reason));
        } catch (...) {
            error = std::current_exception();
        }
        co_await come_home();
        e.origin.body = nullptr;
        if (body.is_broken() || e.given_up) {
            if (!e.given_up) ++e.stops;
            if (error) (void)answer_to(e, error);  // no client gets it; on_exception is told
        } else {
            if (body.is_complete()) {
                e.rest = body.take_rest();
                e.end.read_to_end();
            } else {
                e.end.abandoned();
            }
            reached = conclude(e, std::move(made), error, r);
        }
    }
    // Comes after everything that may refer to the stop source is gone: the request's values, the
    // answer, the error.
    if (reached != step::stream) end_run(e);
    co_return reached;
}

// Takes what a producer writes to the output, in chunks if needed, and to the client.
class outgoing_body final : public body_writer {
public:
    outgoing_body(connection& c, exchange& e, bool chunked,
                  std::optional<std::uint64_t> length) noexcept
        : connection_(c), exchange_(e), left_(length), chunked_(chunked) {}

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
            written_ += taken;
            if (piece_.size() == piece_bytes) co_await flush();
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
    void trailer(std::string_view name, std::string_view value) override {
        if (chunked_) trailers_.add(name, value);
    }
    inplace_stop_token stop_token() const noexcept override { return exchange_.origin.stop; }

    // Called on the loop after the producer. Returns false if the body is shorter than was
    // declared.
    bool finish() {
        put_piece();
        if (chunked_) exchange_.output.append("0\r\n").append(trailers_.fields()).append("\r\n");
        return left_.value_or(0) == 0;
    }
    std::uint64_t written() const noexcept { return written_; }

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
        if (connection_.socket_.is_open()) {
            connection_.enter(connection::phase::handling, duration::max());
        }
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
    bool unsent_ = false;  // the output holds the rest of a stopped call
};

// Sends an answer whose body comes in pieces.
task<connection::step> connection::send_stream(exchange& e) {
    if (away_) co_await come_home();
    std::optional<response> kept = std::exchange(e.streamed, std::nullopt);
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
    enter(phase::handling, duration::max());
    outgoing_body out(*this, e, how.chunked, how.length);
    std::exception_ptr error;
    std::optional<bool> whole;
    try {
        whole = co_await end_of({e.origin.stop, loop_.context}, answer.source()->write_to(out));
    } catch (...) {
        error = std::current_exception();
    }
    co_await come_home();
    note(e, status, out.written(), &head);
    if (error) report_exception(e, std::exchange(error, nullptr));
    kept.reset();  // its body may refer to the stop source
    end_run(e);
    if (!whole) ++e.stops;
    if (whole && socket_.is_open() && out.finish()) {
        e.streaming = false;
        co_return step::answered;
    }
    abort();  // so that the client does not take a part for the whole
    co_return step::gone;
}

// Sends the output, and a part of a file after it. While the socket takes bytes, the kernel moves
// them. When it is full, a piece is copied and sent in the usual way, which waits.
task<bool> connection::send_file(exchange& e, file_part part) {
    if (!co_await write(e)) co_return false;
    const time_point latest = saturating_add(
        loop_.context.turn_time(), transfer_time(loop_.options.timeouts.write, part.size));
    std::uint64_t at = part.offset;
    const std::uint64_t end = part.offset + part.size;
    for (std::size_t in_turn = 0; at != end;) {
        if (in_turn >= turn_bytes) {
            co_await loop_.context.get_scheduler().schedule();
            in_turn = 0;
        }
        if (!socket_.is_open()) co_return false;
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(end - at, turn_bytes));
        const coppice::internal::result<std::size_t> sent =
            loop_.context.system().send_file(socket_.native(), part.file, at, most);
        std::size_t n = sent ? sent.value() : 0;
        if (!sent && sent.error() == std::errc::operation_would_block) {
            e.output.resize(std::min(most, file_bytes));
            const ssize_t read =
                ::pread(part.file, e.output.data(), e.output.size(), static_cast<off_t>(at));
            n = static_cast<std::size_t>(std::max<ssize_t>(read, 0));
            e.output.resize(n);
            enter(phase::writing, latest - loop_.context.turn_time());
            std::error_code ec;
            co_await socket_.send_all(std::as_bytes(std::span(e.output)), use_await[ec]);
            e.output.clear();
            if (ec) co_return false;
        } else if (!sent && sent.error() == std::errc::interrupted) {
            continue;
        }
        if (n == 0) co_return false;  // the file was truncated meanwhile, or cannot be read
        e.bytes_sent += n;
        at += n;
        in_turn += n;
    }
    co_return true;
}

// Ends the connection with a reset.
void connection::abort() noexcept {
    if (!socket_.is_open()) return;
    (void)socket_.set(io::linger(std::chrono::seconds(0)));
    if (batch_ != nullptr) batch_->unread = false;
    close_socket();
}

// Ends the connection, whatever it is doing: with a reset if a part of an answer may have been
// sent, so that the client does not take the part for the whole (RFC 9112 section 8).
void connection::break_off() noexcept {
    const bool begun =
        batch_ != nullptr && (batch_->streaming || batch_->sent != 0 || phase_ == phase::writing);
    if (begun) {
        abort();
    } else {
        close_socket();
    }
}

}  // namespace coppice::http
