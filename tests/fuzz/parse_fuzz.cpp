// http/parse.hpp, request heads: whole, bytewise, and split input agree. An accepted head, written
// out again, is accepted as the same head. http_parser reads it the same way.
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/parse.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "delivery.hpp"
#include "oracle.hpp"
#include "verify.hpp"

namespace {

using namespace coppice;
using test::verify;
using test::verify_equal;

// The first byte of an input chooses the limits, so that small ones occur as often as large ones.
http::limits limits_for(unsigned char choice) {
    http::limits limit;
    if ((choice & 1) != 0) limit.target_bytes_max = 12;
    if ((choice & 2) != 0) limit.header_bytes_max = 48;
    if ((choice & 4) != 0) limit.fields_max = 3;
    if ((choice & 8) != 0) limit.body_bytes_max = 20;
    return limit;
}

std::string parse(std::string_view bytes, const http::limits& limit, test::guarded_bytes& memory) {
    static http::request_head head;
    const http::parse_result result = http::parse_head(memory.place_view(bytes), head, limit);
    return test::describe(result, head);
}

// All deliveries in one pass. A parser that is fed bytewise tells at which prefix the result is
// known. The pure function must return that result for this prefix and for the whole input, and no
// result for one byte less.
void deliveries_agree(std::string_view bytes, const http::limits& limit, const std::string& whole,
                      test::guarded_bytes& memory) {
    http::head_parser growing(limit);
    std::size_t size = 0;
    std::string answer;
    do {
        answer = test::describe(growing.parse(bytes.substr(0, size)), growing.head());
    } while (answer == "partial" && ++size <= bytes.size());
    verify_equal(answer, whole, "bytewise");
    if (answer != "partial") {
        verify_equal(parse(bytes.substr(0, size), limit, memory), whole, "the deciding prefix");
    }
    if (size > 0) {
        verify_equal(parse(bytes.substr(0, size - 1), limit, memory), "partial", "before it");
    }
    const std::size_t at = bytes.empty() ? 0 : (bytes.size() * 31 + whole.size()) % bytes.size();
    http::head_parser split(limit);
    if (split.parse(bytes.substr(0, at)).status == http::parse_status::partial) {
        verify_equal(test::describe(split.parse(bytes), split.head()), whole, "split");
    }
}

// An accepted head, written from its parts.
std::string rewritten(const http::request_head& head) {
    std::string text(head.method_text());
    text.append(" ").append(head.target());
    text.append(head.minor_version() == 0 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
    for (const http::field& f : head.fields()) {
        text.append(f.name).append(": ").append(f.value).append("\r\n");
    }
    return text + "\r\n";
}

#ifdef FUZZ_WITH_ORACLE
bool unclear_connection(const http::field& f) {
    return http::internal::equals_ignoring_case(f.name, "proxy-connection") ||
           (http::internal::equals_ignoring_case(f.name, "connection") &&
            f.value.find(',') != f.value.npos);
}

// Differences of http_parser that are permitted on a valid head:
//  - it knows a fixed list of methods;
//  - in HTTP/1.0 it lets keep-alive win over close (RFC 9112 section 9.3 says otherwise);
//  - it reads Proxy-Connection as Connection, and misses options in lists that start like another;
//  - it keeps the whitespace after a value;
//  - it takes any name that begins with Transfer-Encoding for a sign of that field.
void oracle_agrees(std::string_view bytes, const http::request_head& head) {
    const test::second_opinion other(bytes);
    if (head.verb() == http::method::other && other.error == "HPE_INVALID_METHOD") return;
    const bool longer_name = std::ranges::any_of(head.fields(), [](const http::field& f) {
        return f.name.size() > 17 &&
               http::internal::equals_ignoring_case(f.name.substr(0, 17), "transfer-encoding");
    });
    if (longer_name && (other.error == "HPE_INVALID_TRANSFER_ENCODING" ||
                        other.error == "HPE_UNEXPECTED_CONTENT_LENGTH"))
        return;
    verify(other.error.empty(), "http_parser refuses it: " + other.error);
    verify(other.head_ended, "http_parser wants more");
    verify(!test::second_opinion(bytes.substr(0, bytes.size() - 1)).head_ended,
           "http_parser sees the end earlier");
    verify_equal(other.method, std::string(head.method_text()), "method");
    verify_equal(other.target, std::string(head.target()), "target");
    verify(std::min(other.minor_version, 1u) == static_cast<unsigned>(head.minor_version()),
           "version");
    verify(other.chunked == head.chunked(), "chunked");
    verify(other.length == head.content_length(), "length");
    if (std::ranges::none_of(head.fields(), unclear_connection) &&
        (head.minor_version() == 1 || !other.keep_alive)) {
        verify(other.keep_alive == head.keep_alive(), "keep-alive");
    }
    verify(other.fields.size() == head.fields().size(), "the number of fields");
    for (std::size_t i = 0; i < other.fields.size(); ++i) {
        verify_equal(other.fields[i].first, std::string(head.fields()[i].name), "a name");
        verify_equal(std::string(http::internal::trim(other.fields[i].second)),
                     std::string(head.fields()[i].value), "a value");
    }
}
#endif

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static test::guarded_bytes memory(1 << 16);
    if (size == 0 || size > 60'000) return 0;
    const http::limits limit = limits_for(data[0]);
    const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);

    const std::string whole = parse(bytes, limit, memory);
    deliveries_agree(bytes, limit, whole, memory);

    http::request_head head;
    const http::parse_result result = http::parse_head(bytes, head, limit);
    if (result.status != http::parse_status::complete) return 0;
    verify(result.consumed <= bytes.size(), "more consumed than given");
    verify_equal(parse(bytes.substr(0, result.consumed), limit, memory), whole, "the head alone");
    std::string again = rewritten(head);
    const http::limits none{.header_bytes_max = SIZE_MAX};  // a space after each colon may be new
    const std::string second = parse(again, none, memory);
    verify_equal(second.substr(second.find('\n')), whole.substr(whole.find('\n')), "rewritten");
#ifdef FUZZ_WITH_ORACLE
    oracle_agrees(bytes.substr(0, result.consumed), head);
#endif
    return 0;
}
