// http/multipart.hpp: whole, split, and bytewise input agree. A written form is read as it was.
#include <coppice/http/multipart.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "multipart_pieces.hpp"
#include "verify.hpp"

namespace {

using namespace coppice;
using test::verify;
using test::verify_equal;

http::multipart_limits limits_for(unsigned char choice) {
    http::multipart_limits limits;
    if ((choice & 1) != 0) limits.part_head_bytes_max = 64;
    if ((choice & 2) != 0) limits.parts_max = 2;
    return limits;
}

// Two parts with these contents, which do not hold the boundary.
void written_is_read(std::string_view content, test::guarded_bytes& memory) {
    const std::string head = "Content-Disposition: form-data; name=\"a\"\r\n\r\n";
    const std::string boundary = "c00fdb9b";
    if (content.find(boundary) != content.npos) return;
    const std::size_t half = content.size() / 2;
    std::string body = "--" + boundary + "\r\n" + head;
    body.append(content.substr(0, half)).append("\r\n--").append(boundary).append("\r\n");
    body.append(head).append(content.substr(half)).append("\r\n--").append(boundary).append("--");
    std::string wanted = "[a|-|text/plain]";
    wanted.append(content.substr(0, half)).append("[/][a|-|text/plain]");
    wanted.append(content.substr(half)).append("[/][end]");
    for (const std::size_t step : {body.size(), std::size_t{1}, std::size_t{5}}) {
        verify_equal(test::parse_in_pieces(body, boundary, {}, memory, 0, step), wanted, "written");
    }
}

// Before its last boundary, an accepted form has no boundary after a bare CR or LF, which tolerant
// readers would accept.
void tolerant_readers_agree(std::string_view bytes, std::string_view said) {
    if (!said.ends_with("[end]")) return;
    const std::size_t last = bytes.find("--B--");
    for (std::size_t at = 1; at < last && last != bytes.npos; ++at) {
        if (!bytes.substr(at).starts_with("--B")) continue;
        const char before = bytes[at - 1];
        const bool after_line = before == '\r' || before == '\n';
        const bool strict = at >= 2 && bytes.substr(at - 2, 2) == "\r\n";
        verify(!after_line || strict, "a boundary behind a bare CR or LF");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static test::guarded_bytes memory(1 << 17);
    if (size == 0 || size > 60'000) return 0;
    const http::multipart_limits limits = limits_for(data[0]);
    const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
    const auto said = [&](std::size_t first, std::size_t step) {
        return test::parse_in_pieces(bytes, "B", limits, memory, first, step);
    };
    const std::string whole = said(0, bytes.npos);
    verify(whole.find("(left over)") == whole.npos || bytes.find("(left") != bytes.npos, "left");
    verify_equal(said(0, 1), whole, "bytewise");
    verify_equal(said(0, 3), whole, "in threes");
    const std::size_t at = bytes.empty() ? 0 : (bytes.size() * 31 + whole.size()) % bytes.size();
    verify_equal(said(at, bytes.npos), whole, "split");
    verify_equal(said(at, 2), whole, "split and in twos");
    tolerant_readers_agree(bytes, whole);
    written_is_read(bytes, memory);

    // A sanitized file name leads to no other directory.
    const std::string name = http::safe_file_name(bytes);
    verify(name.size() <= 255 && name.find_first_of("/\\\r\n") == name.npos, "an unsafe name");
    verify(name.find('\0') == name.npos && !name.starts_with('.'), "an unsafe name");
    return 0;
}
