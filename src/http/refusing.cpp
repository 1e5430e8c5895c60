// What a connection answers by itself: refusals, faults, and what needs only the head.
#include "connection.hpp"

#include <coppice/http/internal/scan.hpp>

#include <cstdio>
#include <new>
#include <stdexcept>
#include <utility>

namespace coppice::http {

using namespace internal;

namespace {

// The methods of the server as a whole, for OPTIONS *.
constexpr std::string_view all_methods = "GET, HEAD, POST, PUT, DELETE, OPTIONS, PATCH";

}  // namespace

// Returns what the connection, a filter, or the router answers, from the head alone.
std::optional<response> connection::answer_without_handler(exchange& e, const request& r) {
    // After a 2xx answer, a proxy would treat the connection as a tunnel (RFC 9110 section 9.3.6)
    // and forward bytes that are not requests.
    if (r.verb() == method::connect) {
        e.closing = true;
        e.unread = true;
    }
    // A target that says how it is to be reached was not reached in that way (RFC 9110
    // section 7.4).
    const std::string_view scheme = r.head().scheme();
    if (!scheme.empty() && equals_ignoring_case(scheme, "https") != r.is_secure()) {
        return response::status(421);
    }
    for (const auto& f : loop_.routes.filters()) {
        if (std::optional<response> made = f->before(r)) return made;
    }
    // Of the protocols of an extended CONNECT, only WebSocket is there (RFC 9220 section 3).
    if (is_stream_ && link_->is_tunnel() && r.find("Upgrade") != "websocket") {
        return response::status(501, "the protocol is not implemented");
    }
    switch (e.match.status) {
        case match_status::found:
            if (const filter_chain* const chain = e.match.handler->chain()) {
                for (const auto& f : chain->filters) {
                    if (std::optional<response> made = f->before(r)) return made;
                }
            }
            return refuse_large_body(e);
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

std::optional<response> connection::refuse_large_body(exchange& e) {
    const std::uint64_t most = e.match.handler->needs().body ? loop_.options.streamed_body_bytes_max
                                                             : loop_.options.limits.body_bytes_max;
    if (e.parser.head().content_length().value_or(0) <= most) return std::nullopt;
    return refusal(e, 413, "the body is too large");
}

response connection::refusal(exchange& e, int status, const char* reason) {
    e.closing = true;
    e.unread = true;
    return response::status(status, static_text::promised(reason));
}

// Answers bytes that are not a request, or a request that cannot be completed.
void connection::refuse(exchange& e, int status, const char* reason) {
    put(e, refusal(e, status, reason), nullptr);
}

// Returns the answer after an exception: what a status_error says, or 500.
response connection::answer_to(exchange& e, const std::exception_ptr& error) noexcept {
    try {
        std::rethrow_exception(error);
    } catch (const status_error& known) {
        if (content_of(known.status()) != answer_content::any) return response(known.status());
        try {
            return response::text(std::string(known.what()), known.status());
        } catch (const std::bad_alloc&) {
            return response::status(known.status());
        }
    } catch (...) {
        report_exception(e, error);
    }
    return response::status(500);
}

// Reports an exception to the owner of the server; the client gets 500.
void connection::report_exception(exchange& e, std::exception_ptr error) noexcept {
    ++e.exceptions;
    try {
        if (loop_.options.on_exception) {
            loop_.options.on_exception(error);
            return;
        }
        std::rethrow_exception(error);
    } catch (const std::exception& known) {
        std::fprintf(stderr, "coppice: a handler threw: %s\n", known.what());
    } catch (...) {
        std::fprintf(stderr, "coppice: a handler threw something that is not a std::exception\n");
    }
}

// Returns what takes the place of an answer that does not fit: 405 for a resource that should have
// become a WebSocket and has not, 500 for an interim status. Only the connection sends interim
// answers; as a final answer, the client would take one for the beginning of the next.
response connection::unfit_answer(exchange& e, int status) {
    if (status >= 200) {
        const auto found = loop_.routes.match(method::connect, e.parser.head().path());
        response made = response::status(405, "this resource speaks no WebSocket");
        if (found.status != match_status::method_not_allowed) return made.add("Allow", all_methods);
        return made.add("Allow", found.allowed.to_string());
    }
    report_exception(e, std::make_exception_ptr(std::logic_error(
                            "the answer to a request has an interim status (1xx)")));
    return response::status(500);
}

// Returns the answer to a request that is not received for lack of memory. Ends the connection.
response connection::no_room(exchange& e) {
    return refusal(e, 503, no_room_reason).add("Retry-After", "1");
}

}  // namespace coppice::http
