// One connection: from bytes to answers and back, in batches.
#include "serving.hpp"

#include <cstdio>
#include <strings.h>
#include <utility>

namespace coppice::http {

namespace {

// Answers are written before more are made once this much waits.
constexpr std::size_t output_bytes_max = 64 * 1024;
// How long a closing connection still reads what the client had sent, so that the client sees the
// answer and not a reset.
constexpr duration linger_time = std::chrono::seconds(2);

constexpr std::string_view continue_line = "HTTP/1.1 100 Continue\r\n\r\n";

bool is_https(std::string_view scheme) noexcept {
    return scheme.size() == 5 && ::strncasecmp(scheme.data(), "https", 5) == 0;
}

std::string_view text_of(const io::pooled_buffer& buffer) noexcept {
    return {reinterpret_cast<const char*>(buffer.bytes().data()), buffer.bytes().size()};
}

}  // namespace

connection::connection(serving_loop& l, io::tcp::socket s) noexcept
    : timer_entry(&expired), loop_(l), socket_(std::move(s)) {
    loop_.connections.push_back(*this);
    loop_.counts.accepted.add();
}

connection::~connection() {
    if (timer_entry::armed()) loop_.context.disarm(*this);
    loop_.connections.erase(*this);
    loop_.counts.closed.add();
    // Relaxed: a count.
    loop_.open_connections.fetch_sub(1, relaxed);
    loop_.connection_ended();
}

session connection::serve(serving_loop& l, io::tcp::socket s) {
    connection c(l, std::move(s));
    for (bool more = true; more;) {
        c.enter(phase::idle, l.options.timeouts.idle);
        if (l.draining) break;
        std::error_code ec;
        io::pooled_buffer buffer = co_await c.socket_.receive_pooled(use_await[ec]);
        if (ec || buffer.empty()) break;
        std::unique_ptr<exchange> e = l.take_exchange();
        more = co_await c.converse(*e, std::move(buffer));
        l.give_exchange(std::move(e));
    }
    if (c.unread_ && c.socket_.is_open()) co_await c.linger();
}

// Answers every request that `buffer` begins. True: all were answered and the connection is idle.
task<bool> connection::converse(exchange& e, io::pooled_buffer buffer) {
    batch_began_ = monotonic_clock().now();
    loop_.counts.bytes_received.add(buffer.bytes().size());
    std::string_view bytes = text_of(buffer);  // what is left: in `buffer`, later in e.input
    for (;;) {
        const parse_result parsed = e.parser.parse(bytes);
        if (parsed.status == parse_status::error) {
            put(e, refusal(parsed.error, parsed.reason), nullptr);
            co_return co_await write(e);
        }
        if (parsed.status == parse_status::partial) {
            if (!e.output.empty() && !co_await write(e)) co_return false;
            if (bytes.empty()) co_return true;
            keep(e, bytes, buffer);
            if (phase_ != phase::header) enter(phase::header, loop_.options.timeouts.header);
            if (!co_await receive_more(e)) co_return false;
            bytes = e.input;
            continue;
        }
        const request_head& head = e.parser.head();
        std::size_t end = parsed.consumed;
        std::string_view body;
        if (head.chunked() || head.content_length().value_or(0) > bytes.size() - end) {
            keep(e, bytes, buffer);
            const std::optional<body_end> received =
                co_await receive_body(e, parsed.consumed, head.content_length().value_or(0));
            if (!received) co_return false;
            bytes = e.input;
            // The input has moved: the head's views are made again.
            e.parser.reset();
            (void)e.parser.parse(bytes.substr(0, parsed.consumed));
            end = received->next;
            body = bytes.substr(parsed.consumed, received->body);
        } else {
            body = bytes.substr(end, static_cast<std::size_t>(head.content_length().value_or(0)));
            end += body.size();
        }
        if (!co_await answer(e, head, body)) co_return false;
        bytes.remove_prefix(end);
        e.parser.reset();
        if (closing_) {
            unread_ = !bytes.empty();
            co_return co_await write(e) && false;
        }
        phase_ = phase::handling;  // what follows is another request, with its own deadline
        if (e.output.size() > output_bytes_max && !co_await write(e)) co_return false;
    }
}

// Moves what is left of the batch into e.input, and gives the buffer back.
void connection::keep(exchange& e, std::string_view& bytes, io::pooled_buffer& buffer) {
    if (buffer.empty()) {
        e.input.erase(0, static_cast<std::size_t>(bytes.data() - e.input.data()));
    } else {
        e.input.assign(bytes);
        buffer.release();
    }
    bytes = e.input;
}

task<bool> connection::receive_more(exchange& e) {
    std::error_code ec;
    const io::pooled_buffer buffer = co_await socket_.receive_pooled(use_await[ec]);
    if (ec || buffer.empty()) co_return false;  // gone in the middle of a request
    loop_.counts.bytes_received.add(buffer.bytes().size());
    e.input += text_of(buffer);
    co_return true;
}

// Receives the rest of a body whose head is the first `head` bytes of e.input. Nothing: the
// connection is over.
task<std::optional<connection::body_end>> connection::receive_body(exchange& e, std::size_t head,
                                                                   std::uint64_t length) {
    const bool chunked = e.parser.head().chunked();
    if (e.parser.head().expects_continue() && e.input.size() == head) e.output += continue_line;
    if (!e.output.empty() && !co_await write(e)) co_return std::nullopt;
    const limits& limit = loop_.options.limits;
    enter(phase::body,
          transfer_time(loop_.options.timeouts.body, chunked ? limit.body_bytes_max : length));
    if (!chunked) {
        const std::size_t size = static_cast<std::size_t>(length);  // within body_bytes_max
        while (e.input.size() - head < size) {
            if (!co_await receive_more(e)) co_return std::nullopt;
        }
        co_return body_end{size, head + size};
    }
    chunk_decoder decoder(limit);
    for (std::size_t decoded = head;;) {  // the body so far ends here; framed bytes follow
        const std::size_t framed = e.input.size() - decoded;
        const chunk_decoder::result r = decoder.decode(std::span(e.input.data() + decoded, framed));
        decoded += r.produced;
        if (r.status == parse_status::complete) {
            // What follows the body is the next request.
            co_return body_end{decoded - head, decoded - r.produced + r.consumed};
        }
        if (r.status == parse_status::error) {
            put(e, refusal(r.error, r.reason), nullptr);
            (void)co_await write(e);
            co_return std::nullopt;
        }
        e.input.resize(decoded);
        if (!co_await receive_more(e)) co_return std::nullopt;
    }
}

// Puts the answer to one request into e.output. False: the connection is over.
task<bool> connection::answer(exchange& e, const request_head& head, std::string_view body) {
    if (is_https(head.scheme())) {  // not what a connection without TLS can answer for
        put(e, response::status(421), &head);
        co_return true;
    }
    route_match<handler> match = loop_.routes.match(head.verb(), head.path());
    switch (match.status) {
        case match_status::bad_path:
            put(e, response::status(400, "the path is malformed"), &head);
            break;
        case match_status::not_found:
            put(e, response::status(404), &head);
            break;
        case match_status::method_not_allowed:
            put(e, response::status(405).add("Allow", match.allowed.to_string()), &head);
            break;
        case match_status::found: {
            request r(head, body, match.parameters);
            if (!match.handler->is_asynchronous()) {
                put(e, respond(*match.handler, r), &head);
                break;
            }
            // What is ready should not wait for what may take long.
            if (!e.output.empty() && !co_await write(e)) co_return false;
            enter(phase::handling, duration::max());
            response made(500);
            try {
                made = co_await match.handler->start(r);
            } catch (...) {
                report_exception();
            }
            if (!loop_.context.is_current()) co_await loop_.context.get_scheduler().schedule();
            if (!socket_.is_open()) co_return false;  // cut off meanwhile
            put(e, made, &head);
        }
    }
    co_return true;
}

response connection::respond(const handler& h, request& r) {
    try {
        return h.answer(r);
    } catch (...) {
        report_exception();
        return response::status(500);
    }
}

// The exception goes to the owner of the server; its client gets 500.
void connection::report_exception() noexcept {
    loop_.counts.exceptions.add();
    const std::exception_ptr error = std::current_exception();
    if (loop_.options.on_exception) {
        loop_.options.on_exception(error);
        return;
    }
    try {
        std::rethrow_exception(error);
    } catch (const std::exception& known) {
        std::fprintf(stderr, "coppice: a handler threw: %s\n", known.what());
    } catch (...) {
        std::fprintf(stderr, "coppice: a handler threw something that is no std::exception\n");
    }
}

response connection::refusal(int status, const char* reason) {
    closing_ = true;
    unread_ = true;
    return response::status(status, static_text::promised(reason));
}

// Appends an answer to e.output. Without a head it answers what was no request.
void connection::put(exchange& e, const response& r, const request_head* head) {
    closing_ = closing_ || loop_.draining || r.closes() || head == nullptr || !head->keep_alive();
    serialize_options how;
    how.keep_alive = !closing_;
    how.head_only = head != nullptr && head->verb() == method::head;
    how.minor_version = head == nullptr ? 1 : head->minor_version();
    how.date = loop_.date();
    serialize(r, how, e.output);
    ++batch_requests_;
    loop_.counts.requests.add();
    loop_.counts.by_status[static_cast<std::size_t>(r.status() - 100)].add();
}

// Writes e.output. False: the connection is over.
task<bool> connection::write(exchange& e) {
    enter(phase::writing, transfer_time(loop_.options.timeouts.write, e.output.size()));
    std::error_code ec;
    co_await socket_.send_all(std::as_bytes(std::span(e.output)), use_await[ec]);
    if (!ec) loop_.counts.bytes_sent.add(e.output.size());
    e.output.clear();
    if (batch_requests_ != 0) {
        const duration taken = monotonic_clock().now() - batch_began_;
        loop_.counts.latency.record(static_cast<std::uint64_t>(taken.count()), batch_requests_);
        batch_requests_ = 0;
    }
    co_return !ec && !closing_;
}

// Reads on for a moment after the last answer.
task<> connection::linger() {
    socket_.shutdown_send();
    enter(phase::lingering, linger_time);
    std::error_code ec;
    while (!ec) {
        const io::pooled_buffer dropped = co_await socket_.receive_pooled(use_await[ec]);
        if (dropped.empty()) break;
    }
}

// Starts a phase that must end within `time`. The timer is only moved if it would fire too late;
// one that fires too early is armed again by expired().
void connection::enter(phase p, duration time) noexcept {
    phase_ = p;
    const time_point now = loop_.context.turn_time();
    set_deadline(time < time_point::max() - now ? now + time : time_point::max());
}

void connection::set_deadline(time_point when) noexcept {
    deadline_ = when;
    if (timer_entry::armed()) {
        if (armed_for_ <= deadline_) return;
        loop_.context.disarm(*this);
    }
    armed_for_ = deadline_;
    loop_.context.arm(*this, deadline_);
}

void connection::expired(timer_entry* entry) noexcept {
    connection& c = *static_cast<connection*>(entry);
    if (c.loop_.context.ending()) return;  // whatever waits is being ended already
    if (c.loop_.context.turn_time() < c.deadline_) {
        c.set_deadline(c.deadline_);
        return;
    }
    c.loop_.counts.timed_out.add();
    c.socket_.close();  // what is pending ends, and the session with it
}

duration connection::transfer_time(duration base, std::uint64_t bytes) const noexcept {
    return base + std::chrono::seconds(bytes / loop_.options.timeouts.rate_min);
}

void connection::drain() noexcept {
    if (phase_ == phase::idle) {
        socket_.close();
    } else if (phase_ == phase::header || phase_ == phase::body) {
        const time_point latest = loop_.context.turn_time() + loop_.options.timeouts.drain_request;
        if (latest < deadline_) set_deadline(latest);
    }
}

}  // namespace coppice::http
