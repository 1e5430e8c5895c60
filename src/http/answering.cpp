// From bytes to requests, to handlers, to bytes: answers that need no waiting.
#include "connection.hpp"

#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

// Once this much output is unsent, it is written before more answers are made.
constexpr std::size_t output_bytes_max = 64 * 1024;

}  // namespace

// Answers request after request, until something has to be waited for.
[[gnu::flatten]] connection::step connection::advance(exchange& e) {
    for (;;) {
        if (e.left.empty()) return step::idle;
        const parse_result parsed = e.parser.parse(e.left);
        if (parsed.status == parse_status::error) [[unlikely]] {
            if (is_preface(e)) return step::preface;
            refuse(e, parsed.error, parsed.reason);
            return step::last;
        }
        if (parsed.status == parse_status::partial) [[unlikely]]
            return step::input;
        e.in_head = false;
        e.head_bytes = parsed.consumed;
        const request_head& head = e.parser.head();
        e.match = loop_.routes.match(head.verb(), head.path());
        const bool whole = e.end.begin(head, e.head_bytes, e.left.size() - e.head_bytes);
        if (!whole || !is_plain(e)) [[unlikely]] {
            const step s = settle(e, admit(e));
            if (s == step::answered) continue;
            if (s != step::admitted) return s;
        }
        e.body = e.left.substr(e.head_bytes, e.end.bytes() - e.head_bytes);
        const step s = settle(e, respond(e));
        if (s != step::answered || away_) return s;
    }
}

// Called when a request is answered: removes it from the input, and tells if another may follow.
// This is the only way from one request to the next.
connection::step connection::settle(exchange& e, step s) {
    if (s != step::answered) return s;
    if (e.more) [[unlikely]] {
        e.trailers.clear();
        e.marks.forget();
    }
    if (!e.end.is_known()) [[unlikely]]
        return e.closing ? step::last : step::drop;
    if (e.end.is_in_rest()) [[unlikely]] {
        e.buffer.release();
        e.input.swap(e.rest);
        e.left = e.input;
    } else {
        e.left.remove_prefix(e.end.bytes());
    }
    if (e.closing) [[unlikely]]
        return step::last;
    return e.output.size() > output_bytes_max ? step::flush : step::answered;
}

// Returns true if only the handler can answer the request, and nothing starts before the body has
// arrived.
inline bool connection::is_plain(const exchange& e) const noexcept {
    const request_head& head = e.parser.head();
    return e.match.status == match_status::found && !e.match.handler->starts_early() &&
           loop_.routes.filters().empty() && head.scheme().empty() &&
           head.content_length().value_or(0) <= loop_.options.limits.body_bytes_max;
}

// Called once for each request when its head has arrived, and perhaps not its body. Answers the
// request if that does not need its handler.
connection::step connection::admit(exchange& e) {
    e.body = {};
    request r(e.parser.head(), {}, e.match.parameters, &e.origin);
    std::optional<response> made;
    try {
        made = answer_without_handler(e, r);
    } catch (...) {
        made = answer_to(e, std::current_exception());
    }
    if (made) return finish(e, std::move(*made), r);
    if (e.match.handler->needs().body) return step::handler;
    return e.end.is_known() ? step::admitted : step::body;
}

// Answers a request whose head and body have arrived, or returns what the answer has to wait for.
[[gnu::flatten]] connection::step connection::respond(exchange& e) {
    const request_head& head = e.parser.head();
    request r(head, e.body, e.match.parameters, &e.origin);
    const handler& h = *e.match.handler;
    if (h.is_asynchronous()) return step::handler;
    if (!away_) [[likely]] {
        if (loop_.on_pool(h)) return step::depart;
        return finish(e, call(e, h, r), r);
    }
    if (!begin_away(e)) return step::gone;
    const route_flight flight(loop_.counts_of(e.match));
    response made = call(e, h, r);
    if (!e.right.end()) return step::gone;
    return finish(e, std::move(made), r);
}

// Returns true if the answer makes the connection a WebSocket.
bool connection::upgrades(const response& made) noexcept {
    return made.status() == 101 && made.source() != nullptr && made.source()->upgrade() != nullptr;
}

// Returns true if this may be the answer to the request. To the client of a tunnel, a 2xx answer of
// another kind would say that its WebSocket is open.
inline bool connection::fits(const response& made) const noexcept {
    if (!is_stream_) [[likely]]
        return made.status() >= 200 || upgrades(made);
    return link_->is_tunnel() ? made.status() >= 300 || upgrades(made) : made.status() >= 200;
}

response connection::call(exchange& e, const handler& h, request& r) {
    try {
        return h.answer(r);
    } catch (...) {
        return answer_to(e, std::current_exception());
    }
}

// Passes an answer through the filters and puts it into the output.
[[gnu::flatten]] connection::step connection::finish(exchange& e, response&& made,
                                                     const request& r) {
    if (!fits(made)) [[unlikely]]
        made = unfit_answer(e, made.status());
    if (loop_.routes.has_filters()) [[unlikely]] {
        pass_filters(e, made, r);
        // a filter's mistake
        if (!fits(made)) made = unfit_answer(e, made.status());
    }
    const request_head& head = e.parser.head();
    if (made.source() != nullptr && head.verb() != method::head &&
        (content_of(made.status()) == answer_content::any || made.status() == 101)) [[unlikely]] {
        e.streamed.emplace(std::move(made));
        return step::stream;
    }
    put(e, made, &head);
    return step::answered;
}

void connection::pass_filters(exchange& e, response& made, const request& r) {
    const auto pass = [&](const std::vector<std::shared_ptr<const filter>>& filters) {
        for (auto f = filters.rbegin(); f != filters.rend(); ++f) {
            try {
                (*f)->after(r, made);
            } catch (...) {
                made = answer_to(e, std::current_exception());
            }
        }
    };
    const filter_chain* const chain =
        e.match.status == match_status::found ? e.match.handler->chain() : nullptr;
    if (chain != nullptr) pass(chain->filters);
    pass(loop_.routes.filters());
}

// Decides if this answer leaves the connection open, and how its body ends.
serialize_options connection::framing(exchange& e, const response& r, const request_head* head) {
    ++served_;
    // A thread of the pool must not read `draining`, which its loop may change. The loop checks it
    // afterwards.
    e.closing = e.closing || (!away_ && loop_.draining) || r.closes() || head == nullptr ||
                !head->keep_alive() || served_ == loop_.options.requests_per_connection_max;
    if (!e.end.is_known()) [[unlikely]]
        decide_about_rest(e, head);
    serialize_options how;
    how.head_only = head != nullptr && head->verb() == method::head;
    how.minor_version = head == nullptr ? 1 : head->minor_version();
    how.date = date_for(e);
    if (loop_.options.send_request_id && !r.find("X-Request-Id")) [[unlikely]]
        how.request_id = e.marks.id(head);
    if (r.source() != nullptr) [[unlikely]] {
        how.length = r.source()->length();
        how.unframed = !how.length && (how.minor_version == 0 || is_stream_);
        how.chunked = !how.length && !how.unframed;
        e.closing = e.closing || (how.unframed && !how.head_only &&
                                  content_of(r.status()) == answer_content::any);
    }
    // A client that has not said that it ends the connection may be sending more.
    e.unread = e.unread || (e.closing && head != nullptr && head->keep_alive());
    how.keep_alive = !e.closing;
    return how;
}

// Appends an answer to e.output. `head` is nullptr if the answer is to bytes that were not a
// request.
[[gnu::flatten]] void connection::put(exchange& e, const response& r, const request_head* head) {
    serialize(r, framing(e, r, head), e.output);
    const bool sent = content_of(r.status()) == answer_content::any;
    note(e, r.status(), sent ? r.body().size() : 0, head);
}

// Called when a request is answered before the end of its body has arrived. A short rest is
// dropped; otherwise the connection ends. A client that waits for 100 (Continue) may or may not
// send the body, so the meaning of its next bytes cannot be known.
void connection::decide_about_rest(exchange& e, const request_head* head) {
    if (!e.closing && e.end.can_be_dropped()) {
        const std::size_t received = e.left.size() - e.head_bytes;
        const std::uint64_t most = loop_.options.dropped_body_bytes_max;
        const bool waits = head->expects_continue() && received == 0;
        const bool is_short = head->chunked() || *head->content_length() - received <= most;
        if (most != 0 && is_short && !waits) return;
    }
    e.closing = e.unread = true;
}

std::string_view connection::date_for(const exchange& e) noexcept {
    return away_ ? std::string_view(e.date.data(), e.date.size()) : loop_.date();
}

// Notes that a request was answered, until the loop counts it.
void connection::note(exchange& e, int status, std::uint64_t body_bytes, const request_head* head) {
    if (e.latest.status != status) [[unlikely]] {
        if (e.latest.count != 0) e.earlier.push_back(e.latest);
        e.latest = {status, 0};
    }
    ++e.latest.count;
    if (loop_.by_route != nullptr) [[unlikely]]
        count_route(e, status, head);
    if (loop_.options.access_log != nullptr) [[unlikely]]
        log(e, status, body_bytes, head);
}

}  // namespace coppice::http
