// Writes a client's request: a head, which is exactly one request, and a short body.
#include <coppice/http/internal/client_call.hpp>
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/parse.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "client_connection.hpp"
#include "client_pieces.hpp"

namespace coppice::http::internal {

namespace {

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

}  // namespace

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

}  // namespace coppice::http::internal
