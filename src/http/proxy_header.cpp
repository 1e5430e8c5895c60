// The parser of the PROXY protocol.
#include <coppice/http/proxy_header.hpp>

#include <netinet/in.h>
#include <sys/socket.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <optional>

namespace coppice::http {

using namespace internal;

namespace {

constexpr std::string_view signature_v1 = "PROXY ";
constexpr std::size_t line_bytes_max = 107;  // of version 1, with its CRLF
constexpr std::string_view signature_v2{"\r\n\r\n\0\r\nQUIT\n", 12};
constexpr std::size_t fixed_bytes_v2 = 16;
constexpr std::size_t path_bytes_v2 = 108;

constexpr parse_result partial_header{};
constexpr parse_result wrong_header(const char* reason) noexcept {
    return {parse_status::error, 0, 400, reason};
}
constexpr parse_result whole_header(std::size_t bytes) noexcept {
    return {parse_status::complete, bytes, 0, ""};
}

// ---- Version 1 ---------------------------------------------------------------------------------

// Removes the text up to the next space from the front of `line`, and the space.
std::string_view next_word(std::string_view& line) noexcept {
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view word = line.substr(0, space);
    line.remove_prefix(std::min(space + 1, line.size()));
    return word;
}

std::optional<io::endpoint> endpoint_of(std::string_view address, std::string_view port,
                                        bool is_v6) noexcept {
    std::uint16_t number = 0;
    const char* const end = port.data() + port.size();
    const auto read = std::from_chars(port.data(), end, number);
    if (read.ec != std::errc() || read.ptr != end || (port.size() > 1 && port.front() == '0') ||
        address.starts_with('[')) {
        return std::nullopt;
    }
    const result<io::endpoint> at = io::endpoint::parse(address, number);
    if (!at || at.value().is_v6() != is_v6) return std::nullopt;
    return at.value();
}

// `line`: what follows the signature, without the CRLF.
bool read_line(std::string_view line, proxy_header& out) noexcept {
    out = {};
    if (line == "UNKNOWN" || line.starts_with("UNKNOWN ")) return true;  // the rest means nothing
    // Four spaces separate five words: a space more would be part of the last word.
    if (std::count(line.begin(), line.end(), ' ') != 4) return false;
    const std::string_view family = next_word(line);
    const std::string_view from = next_word(line);
    const std::string_view to = next_word(line);
    const std::string_view from_port = next_word(line);
    if (family != "TCP4" && family != "TCP6") return false;
    const auto client = endpoint_of(from, from_port, family == "TCP6");
    const auto server = endpoint_of(to, line, family == "TCP6");
    if (!client || !server) return false;
    out = {*client, *server};
    return true;
}

parse_result parse_v1(std::string_view bytes, proxy_header& out) noexcept {
    constexpr const char* malformed = "the PROXY line is malformed";
    const std::string_view seen = bytes.substr(0, line_bytes_max);
    for (std::size_t i = signature_v1.size(); i < seen.size(); ++i) {
        const auto byte = static_cast<unsigned char>(seen[i]);
        if (byte == '\r') {
            if (i + 1 == seen.size()) break;
            if (seen[i + 1] != '\n') return wrong_header(malformed);
            const std::string_view line = seen.substr(0, i).substr(signature_v1.size());
            return read_line(line, out) ? whole_header(i + 2) : wrong_header(malformed);
        }
        if (byte < 0x20 || byte > 0x7e) return wrong_header(malformed);
    }
    if (seen.size() == line_bytes_max) return wrong_header("the PROXY line is too long");
    return partial_header;
}

// ---- Version 2 ---------------------------------------------------------------------------------

unsigned byte_at(std::string_view bytes, std::size_t at) noexcept {
    return static_cast<unsigned char>(bytes[at]);
}
unsigned number_at(std::string_view bytes, std::size_t at) noexcept {
    return byte_at(bytes, at) << 8 | byte_at(bytes, at + 1);
}

io::endpoint endpoint_v4(std::string_view address, std::string_view port) noexcept {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    std::memcpy(&at.sin_addr, address.data(), 4);
    std::memcpy(&at.sin_port, port.data(), 2);
    return io::endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at);
}
io::endpoint endpoint_v6(std::string_view address, std::string_view port) noexcept {
    sockaddr_in6 at{};
    at.sin6_family = AF_INET6;
    std::memcpy(&at.sin6_addr, address.data(), 16);
    std::memcpy(&at.sin6_port, port.data(), 2);
    return io::endpoint::from(reinterpret_cast<const sockaddr*>(&at), sizeof at);
}

// Reads a path that NULs pad, or an abstract name, which begins with one. Returns nothing if a NUL
// is followed by something else, or the name cannot be an endpoint's.
std::optional<io::endpoint> endpoint_unix(std::string_view padded) noexcept {
    const std::size_t last = padded.find_last_not_of('\0');
    if (last == padded.npos) return io::endpoint();
    std::array<char, path_bytes_v2> text;
    const std::size_t size = last + 1;
    std::memcpy(text.data(), padded.data(), size);
    if (text[0] == '@') return std::nullopt;  // would pass for an abstract name
    if (text[0] == '\0') text[0] = '@';
    const result<io::endpoint> at = io::endpoint::unix_path({text.data(), size});
    if (!at) return std::nullopt;
    return at.value();
}

// CRC-32C (RFC 9260 appendix A) of the header, in which the checksum itself counts as zeros.
std::uint32_t checksum_of(std::string_view header, std::size_t at) noexcept {
    std::uint32_t crc = ~std::uint32_t{0};
    for (std::size_t i = 0; i != header.size(); ++i) {
        if (i - at >= 4) crc ^= byte_at(header, i);
        for (int bit = 0; bit != 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0u);
    }
    return ~crc;
}

// Returns false unless the bytes from `at` on are whole TLVs, with at most one checksum, which
// agrees.
bool check_extensions(std::string_view header, std::size_t at) noexcept {
    constexpr unsigned type_checksum = 0x03;
    bool checked = false;
    while (at != header.size()) {
        if (header.size() - at < 3) return false;
        const unsigned type = byte_at(header, at);
        const std::size_t length = number_at(header, at + 1);
        at += 3;
        if (header.size() - at < length) return false;
        if (type == type_checksum) {
            if (checked || length != 4) return false;
            checked = true;
            const std::uint32_t told = number_at(header, at) << 16 | number_at(header, at + 2);
            if (told != checksum_of(header, at)) return false;
        }
        at += length;
    }
    return true;
}

// Reads the addresses of a whole header, whose first 16 bytes are checked.
parse_result read_addresses(std::string_view header, unsigned family, proxy_header& out) noexcept {
    constexpr std::array<std::size_t, 4> sizes{0, 12, 36, 2 * path_bytes_v2};
    const std::size_t size = sizes[family];
    const std::string_view body = header.substr(fixed_bytes_v2);
    if (body.size() < size) return wrong_header("the PROXY header is too short for its addresses");
    if (family == 1) {
        out = {endpoint_v4(body, body.substr(8)), endpoint_v4(body.substr(4), body.substr(10))};
    } else if (family == 2) {
        out = {endpoint_v6(body, body.substr(32)), endpoint_v6(body.substr(16), body.substr(34))};
    } else if (family == 3) {
        const auto client = endpoint_unix(body.substr(0, path_bytes_v2));
        const auto server = endpoint_unix(body.substr(path_bytes_v2, path_bytes_v2));
        if (!client || !server) return wrong_header("a path in the PROXY header is malformed");
        out = {*client, *server};
    }
    if (!check_extensions(header, fixed_bytes_v2 + size)) {
        return wrong_header("the extensions of the PROXY header are malformed");
    }
    return whole_header(header.size());
}

parse_result parse_v2(std::string_view bytes, proxy_header& out) noexcept {
    constexpr unsigned version = 2;
    if (bytes.size() <= 12) return partial_header;
    const unsigned command = byte_at(bytes, 12) & 15;
    if (byte_at(bytes, 12) >> 4 != version || command > 1) {
        return wrong_header("the PROXY header has an unknown version or command");
    }
    if (bytes.size() == 13) return partial_header;
    const unsigned family = byte_at(bytes, 13) >> 4;
    const unsigned transport = byte_at(bytes, 13) & 15;
    const bool is_local = command == 0;  // its addresses mean nothing
    if (!is_local && (family > 3 || transport > 2)) {
        return wrong_header("the PROXY header has an unknown family or transport");
    }
    if (bytes.size() < fixed_bytes_v2) return partial_header;
    const std::size_t size = fixed_bytes_v2 + number_at(bytes, 14);
    if (size > proxy_header_bytes_max) return wrong_header("the PROXY header is too long");
    if (bytes.size() < size) return partial_header;
    out = {};
    // Without a family or a transport, the format of the rest is unknown.
    if (is_local || family == 0 || transport == 0) return whole_header(size);
    return read_addresses(bytes.substr(0, size), family, out);
}

bool both_begin_alike(std::string_view a, std::string_view b) noexcept {
    const std::size_t common = std::min(a.size(), b.size());
    return a.substr(0, common) == b.substr(0, common);
}

}  // namespace

parse_result parse_proxy_header(std::string_view bytes, proxy_header& out) noexcept {
    if (bytes.empty()) return partial_header;
    if (both_begin_alike(bytes, signature_v1)) return parse_v1(bytes, out);
    if (both_begin_alike(bytes, signature_v2)) return parse_v2(bytes, out);
    return wrong_header("the connection does not begin with a PROXY header");
}

}  // namespace coppice::http
