// Answering without waiting: from bytes to requests, to handlers, to bytes.
#include "serving.hpp"

#include <coppice/http/scan.hpp>

#include <charconv>
#include <cstdio>
#include <utility>

namespace coppice::http {

namespace {

// Answers are written before more are made once this much waits.
constexpr std::size_t output_bytes_max = 64 * 1024;

// What the server as a whole can do, for OPTIONS *.
constexpr std::string_view all_methods = "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH";

}  // namespace

// Answers request after request, until something has to be waited for.
[[gnu::flatten]] connection::step connection::advance(exchange& e) {
    for (;;) {
        if (e.left.empty()) return step::idle;
        const parse_result parsed = e.parser.parse(e.left);
        if (parsed.status == parse_status::error) [[unlikely]] {
            refuse(e, parsed.error, parsed.reason);
            return step::last;
        }
        if (parsed.status == parse_status::partial) [[unlikely]]
            return step::input;
        e.in_head = false;
        e.head_bytes = parsed.consumed;
        const request_head& head = e.parser.head();
        e.match = loop_.routes.match(head.verb(), head.path());
        const bool reads = e.match.status == match_status::found && e.match.handler->needs().body;
        const std::uint64_t length = head.content_length().value_or(0);
        if (reads) {
            e.body = {};
            e.end = e.head_bytes;
        } else {
            if (length > loop_.options.limits.body_bytes_max) [[unlikely]] {
                refuse(e, 413, "the body is too large");
                return step::last;
            }
            if (head.chunked() || length > e.left.size() - e.head_bytes) [[unlikely]]
                return step::body;
            e.body = e.left.substr(e.head_bytes, static_cast<std::size_t>(length));
            e.end = e.head_bytes + e.body.size();
        }
        const step s = settle(e, respond(e));
        if (s != step::answered) return s;
    }
}

// Once a request is answered: lets go of it, and says whether another may follow.
connection::step connection::settle(exchange& e, step s) {
    if (s != step::answered) return s;
    if (e.body_was_read) [[unlikely]] {
        e.buffer.release();
        e.input.swap(e.rest);
        e.left = e.input;
        e.body_was_read = false;
    } else {
        e.left.remove_prefix(e.end);
    }
    if (e.more) [[unlikely]]
        e.trailers.clear();
    if (e.closing) [[unlikely]] {
        e.unread = e.unread || !e.left.empty();
        return step::last;
    }
    return e.output.size() > output_bytes_max ? step::flush : step::answered;
}

// Answers the request whose head and body are there, or says what that has to wait for.
[[gnu::flatten]] connection::step connection::respond(exchange& e) {
    const request_head& head = e.parser.head();
    if (!head.scheme().empty() && misdirected(e)) [[unlikely]]
        return step::answered;
    request r(head, e.body, e.match.parameters, &e.origin);
    if (!loop_.routes.filters().empty() || e.match.status != match_status::found) [[unlikely]] {
        try {
            std::optional<response> made = answer_without_handler(e, r);
            if (made) return finish(e, std::move(*made), r);
        } catch (...) {
            report_exception(e, std::current_exception());
            return finish(e, response::status(500), r);
        }
    }
    const handler& h = *e.match.handler;
    if (h.is_asynchronous()) return step::handler;
    if (!away_) [[likely]] {
        if (loop_.on_pool(h)) return step::depart;
        return finish(e, call(e, h, r), r);
    }
    e.right.begin(e.output.empty());
    response made = call(e, h, r);
    if (!e.right.end()) return step::gone;
    return finish(e, std::move(made), r);
}

// True: the request was for what a connection without TLS cannot answer for, and that is answered.
bool connection::misdirected(exchange& e) {
    const request_head& head = e.parser.head();
    if (!equals_ignoring_case(head.scheme(), "https")) return false;
    put(e, response::status(421), &head);
    return true;
}

// What a filter or the router answers.
std::optional<response> connection::answer_without_handler(exchange& e, const request& r) {
    for (const auto& f : loop_.routes.filters()) {
        if (std::optional<response> made = f->before(r)) return made;
    }
    switch (e.match.status) {
        case match_status::found:
            return std::nullopt;
        case match_status::bad_path:
            return response::status(400, "the path is malformed");
        case match_status::method_not_allowed:
            if (r.verb() == method::options) {
                method_set allowed = e.match.allowed;
                allowed.insert(method::options);
                return response(204).add("Allow", allowed.to_string());
            }
            return response::status(405).add("Allow", e.match.allowed.to_string());
        case match_status::not_found:
            break;
    }
    if (r.verb() == method::options && r.path() == "*") {
        return response(204).add("Allow", all_methods);
    }
    return response::status(404);
}

response connection::call(exchange& e, const handler& h, request& r) {
    try {
        return h.answer(r);
    } catch (...) {
        report_exception(e, std::current_exception());
        return response::status(500);
    }
}

// Passes an answer through the filters and puts it into the output.
[[gnu::flatten]] connection::step connection::finish(exchange& e, response&& made,
                                                     const request& r) {
    if (!loop_.routes.filters().empty()) [[unlikely]]
        pass_filters(e, made, r);
    const request_head& head = e.parser.head();
    if (made.source() != nullptr && head.verb() != method::head && !bodyless(made.status()))
        [[unlikely]] {
        e.streamed.emplace(std::move(made));
        return step::stream;
    }
    put(e, made, &head);
    return step::answered;
}

void connection::pass_filters(exchange& e, response& made, const request& r) {
    const auto& filters = loop_.routes.filters();
    for (auto f = filters.rbegin(); f != filters.rend(); ++f) {
        try {
            (*f)->after(r, made);
        } catch (...) {
            report_exception(e, std::current_exception());
            made = response::status(500);
        }
    }
}

// The exception goes to the owner of the server; its client gets 500.
void connection::report_exception(exchange& e, std::exception_ptr error) noexcept {
    ++e.exceptions;
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

response connection::refusal(exchange& e, int status, const char* reason) {
    e.closing = true;
    e.unread = true;
    return response::status(status, static_text::promised(reason));
}

// Answers what was no request, or none that may go on.
void connection::refuse(exchange& e, int status, const char* reason) {
    put(e, refusal(e, status, reason), nullptr);
}

// Whether and how this answer leaves the connection open, and how its body ends.
serialize_options connection::framing(exchange& e, const response& r, const request_head* head) {
    ++served_;
    // A thread of the pool does not look at what its loop may change: the loop looks afterwards.
    e.closing = e.closing || (!away_ && loop_.draining) || r.closes() || head == nullptr ||
                !head->keep_alive() || served_ == loop_.options.requests_per_connection_max;
    serialize_options how;
    how.head_only = head != nullptr && head->verb() == method::head;
    how.minor_version = head == nullptr ? 1 : head->minor_version();
    how.date = date_for(e);
    if (r.source() != nullptr) [[unlikely]] {
        how.length = r.source()->length();
        how.chunked = !how.length && how.minor_version != 0;
        how.unframed = !how.length && how.minor_version == 0;
        e.closing = e.closing || (how.unframed && !how.head_only);
    }
    // A client that was not to close may be sending more.
    e.unread = e.unread || (e.closing && head != nullptr && head->keep_alive());
    how.keep_alive = !e.closing;
    return how;
}

// Appends an answer to e.output. Without a head it answers what was no request.
[[gnu::flatten]] void connection::put(exchange& e, const response& r, const request_head* head) {
    serialize(r, framing(e, r, head), e.output);
    note(e, r.status(), r.body().size(), head);
}

std::string_view connection::date_for(const exchange& e) noexcept {
    return away_ ? std::string_view(e.date.data(), e.date.size()) : loop_.date();
}

// Remembers that a request was answered, until the loop counts it.
void connection::note(exchange& e, int status, std::uint64_t body_bytes, const request_head* head) {
    if (e.latest.status != status) [[unlikely]] {
        if (e.latest.count != 0) e.earlier.push_back(e.latest);
        e.latest = {status, 0};
    }
    ++e.latest.count;
    if (loop_.options.access_log != nullptr) [[unlikely]]
        log(e, status, body_bytes, head);
}

// See access_log.hpp for the format.
void connection::log(exchange& e, int status, std::uint64_t body_bytes, const request_head* head) {
    e.more = true;
    if (e.peer.empty()) {
        e.peer = request(e.parser.head(), {}, {}, &e.origin).peer().to_string();
    }
    const std::string_view date = date_for(e);  // Sat, 21 Nov 2026 10:05:50 GMT
    e.log.append(e.peer).append(" [").append(date.substr(5, 2)).append("/");
    e.log.append(date.substr(8, 3)).append("/").append(date.substr(12, 4)).append(":");
    e.log.append(date.substr(17, 8)).append(" +0000] \"");
    if (head == nullptr) {
        e.log.append("-");
    } else {
        // The parser has let neither quotes nor controls through.
        e.log.append(head->method_text()).append(" ").append(head->target()).append(" HTTP/1.");
        e.log.push_back(static_cast<char>('0' + head->minor_version()));
    }
    char numbers[64];
    char* at = numbers;
    const auto number = [&](std::uint64_t value) {
        *at++ = ' ';
        at = std::to_chars(at, numbers + sizeof numbers, value).ptr;
    };
    number(static_cast<std::uint64_t>(status));
    number(body_bytes);
    const duration taken = loop_.context.now() - e.began;
    const auto microseconds = static_cast<std::uint64_t>(taken.count()) / 1000;
    number(microseconds / 1'000'000);
    *at++ = '.';
    for (std::uint64_t digit = 100'000; digit != 0; digit /= 10) {
        *at++ = static_cast<char>('0' + microseconds / digit % 10);
    }
    *at++ = '\n';
    e.log.append("\"").append(numbers, static_cast<std::size_t>(at - numbers));
}

}  // namespace coppice::http
