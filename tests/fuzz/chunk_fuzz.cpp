// http/parse.hpp, chunked bodies: whole, split, and bytewise input agree. An accepted body, chunked
// again in another way, decodes to the same. http_parser finds the same payload and the same end.
#include <coppice/http/parse.hpp>

#include <algorithm>
#include <charconv>
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

http::limits limits_for(unsigned char choice) {
    http::limits limit;
    if ((choice & 1) != 0) limit.header_bytes_max = 24;
    if ((choice & 2) != 0) limit.body_bytes_max = 20;
    return limit;
}

std::string chunked(std::string_view payload, std::size_t chunk) {
    std::string text;
    while (!payload.empty()) {
        const std::string_view piece = payload.substr(0, chunk);
        char size[16];
        text.append(size, std::to_chars(size, size + 16, piece.size(), 16).ptr);
        text.append("\r\n").append(piece).append("\r\n");
        payload.remove_prefix(piece.size());
    }
    return text + "0\r\n\r\n";
}

#ifdef FUZZ_WITH_ORACLE
// http_parser reads framing fields in trailers, which RFC 9110 section 6.5.1 forbids, and objects.
void oracle_agrees(std::string_view body, std::string_view payload) {
    const std::string head = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::string message = head + std::string(body);
    const test::second_opinion other(message);
    if (other.error == "HPE_INVALID_CONTENT_LENGTH" ||
        other.error == "HPE_UNEXPECTED_CONTENT_LENGTH" ||
        other.error == "HPE_INVALID_TRANSFER_ENCODING") {
        return;
    }
    verify(other.error.empty(), "http_parser refuses it: " + other.error);
    verify(other.message_ended, "http_parser wants more");
    verify_equal(other.body, std::string(payload), "payload");
    const std::string shorter = message.substr(0, message.size() - 1);
    verify(!test::second_opinion(shorter).message_ended, "http_parser sees the end earlier");
}
#endif

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static test::guarded_bytes memory(1 << 16);
    if (size == 0 || size > 60'000) return 0;
    const http::limits limit = limits_for(data[0]);
    const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);

    const std::string whole = test::decode_in_pieces(bytes, limit, memory, 0, bytes.npos);
    verify_equal(test::decode_in_pieces(bytes, limit, memory, 0, 1), whole, "bytewise");
    verify_equal(test::decode_in_pieces(bytes, limit, memory, 0, 3), whole, "in threes");
    const std::size_t at = bytes.empty() ? 1 : (bytes.size() * 31 + whole.size()) % bytes.size();
    verify_equal(test::decode_in_pieces(bytes, limit, memory, at, bytes.npos), whole, "split");
    verify_equal(test::decode_in_pieces(bytes, limit, memory, at, 2), whole, "split and in twos");
    if (!whole.starts_with("complete")) return 0;

    std::string copy(bytes);
    http::chunk_decoder decoder(limit);
    const http::chunk_decoder::result result = decoder.decode(copy);
    const std::string payload = copy.substr(0, result.produced);
    verify(payload.size() <= limit.body_bytes_max, "more payload than the limit allows");
    for (const std::size_t chunk : {std::size_t{1}, std::size_t{10}, payload.size() + 1}) {
        const std::string again = chunked(payload, chunk);
        verify_equal(test::decode_in_pieces(again, limit, memory, 0, again.npos),
                     "complete after " + std::to_string(again.size()) + ": " + payload, "again");
    }
#ifdef FUZZ_WITH_ORACLE
    oracle_agrees(bytes.substr(0, result.consumed), payload);
#endif
    return 0;
}
