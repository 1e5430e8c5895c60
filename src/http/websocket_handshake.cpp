// The opening handshake of WebSocket: which requests are accepted, and with what answer.
#include "websocket_handshake.hpp"

#include <coppice/base/internal/options.hpp>
#include <coppice/http/internal/scan.hpp>
#include <coppice/http/message.hpp>

#include "media_type.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace coppice::http::internal {

namespace {

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

using sha1_words = std::array<std::uint32_t, 5>;

// One block of SHA-1 (FIPS 180-4 section 6.1.2).
void add_sha1_block(sha1_words& hash, const unsigned char* block) noexcept {
    std::array<std::uint32_t, 80> w;
    for (std::size_t t = 0; t != 16; ++t) {
        const unsigned char* const b = block + 4 * t;
        w[t] = std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 |
               std::uint32_t{b[3]};
    }
    for (std::size_t t = 16; t != 80; ++t) {
        w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    }
    auto [a, b, c, d, e] = hash;
    for (std::size_t t = 0; t != 80; ++t) {
        std::uint32_t f = b ^ c ^ d;
        std::uint32_t k = t < 40 ? 0x6ed9eba1 : 0xca62c1d6;
        if (t < 20) {
            f = (b & c) | (~b & d);
            k = 0x5a827999;
        } else if (t >= 40 && t < 60) {
            f = (b & c) | (b & d) | (c & d);
            k = 0x8f1bbcdc;
        }
        const std::uint32_t next = std::rotl(a, 5) + f + e + k + w[t];
        e = d;
        d = c;
        c = std::rotl(b, 30);
        b = a;
        a = next;
    }
    hash = {hash[0] + a, hash[1] + b, hash[2] + c, hash[3] + d, hash[4] + e};
}

// The protocol proves with this hash that the server has read the request; nothing is secret.
std::array<unsigned char, 20> sha1(std::string_view text) {
    std::string padded(text);
    padded.push_back(static_cast<char>(0x80));
    while (padded.size() % 64 != 56) padded.push_back('\0');
    const std::uint64_t bits = std::uint64_t{text.size()} * 8;
    for (int i = 8; i-- != 0;) padded.push_back(static_cast<char>(bits >> (8 * i)));
    sha1_words hash = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    for (std::size_t at = 0; at != padded.size(); at += 64) {
        add_sha1_block(hash, reinterpret_cast<const unsigned char*>(padded.data()) + at);
    }
    std::array<unsigned char, 20> bytes;
    for (std::size_t i = 0; i != bytes.size(); ++i) {
        bytes[i] = static_cast<unsigned char>(hash[i / 4] >> (24 - 8 * (i % 4)));
    }
    return bytes;
}

// Returns true if the comma-separated fields of that name have this member, in any case.
bool has_member(const request& r, std::string_view name, std::string_view wanted) noexcept {
    for (const field& f : r.head().fields()) {
        if (!equals_ignoring_case(f.name, name)) continue;
        const auto differs = [wanted](std::string_view member) {
            return !equals_ignoring_case(member, wanted);
        };
        if (!for_each_member(f.value, differs)) return true;
    }
    return false;
}

// Returns the only field of that name; nothing if there is none, or more than one.
std::optional<std::string_view> only(const request& r, std::string_view name) noexcept {
    std::optional<std::string_view> found;
    for (const field& f : r.head().fields()) {
        if (!equals_ignoring_case(f.name, name)) continue;
        if (found) return std::nullopt;
        found = f.value;
    }
    return found;
}

// Returns true if the page that asks may connect.
bool may_connect(const request& r, const websocket_options& options) {
    if (!r.find("Origin")) return true;
    const auto& allowed = options.origins;
    if (std::ranges::find(allowed, "*") != allowed.end()) return true;
    const std::optional<std::string_view> origin = only(r, "Origin");
    if (!origin) return false;
    const auto is_same = [&](const std::string& o) { return equals_ignoring_case(o, *origin); };
    if (std::ranges::any_of(allowed, is_same)) return true;
    const std::size_t host = origin->find("://");
    return host != origin->npos && equals_ignoring_case(origin->substr(host + 3), r.head().host());
}

// Chooses a subprotocol. Returns false if the offer is malformed.
bool choose_protocol(const request& r, websocket_source& source) {
    const std::vector<std::string>& known = source.options->protocols;
    std::size_t best = known.size();
    for (const field& f : r.head().fields()) {
        if (!equals_ignoring_case(f.name, "Sec-WebSocket-Protocol")) continue;
        const auto visit = [&](std::string_view member) {
            std::string_view rest = member;
            if (take_token(rest).empty() || !rest.empty()) return false;
            const auto at = std::ranges::find(known, member);
            best = std::min(best, static_cast<std::size_t>(at - known.begin()));
            return true;
        };
        if (!for_each_member(f.value, visit)) return false;
    }
    if (best != known.size()) source.protocol = known[best];
    return true;
}

// One parameter of permessage-deflate.
struct parameter_value {
    bool offered = false;
    std::string value;  // "": none
};
struct deflate_offer {
    bool fits = true;  // no parameter is unknown, twice, or wrong
    parameter_value server_no_takeover, client_no_takeover, server_bits, client_bits;

    void add(std::string_view name, std::string&& value) {
        parameter_value* const p = name == "server_no_context_takeover"   ? &server_no_takeover
                                   : name == "client_no_context_takeover" ? &client_no_takeover
                                   : name == "server_max_window_bits"     ? &server_bits
                                   : name == "client_max_window_bits"     ? &client_bits
                                                                          : nullptr;
        if (p == nullptr || p->offered) {
            fits = false;
            return;
        }
        *p = {true, std::move(value)};
    }
    // Returns the number of bits, 15 if none is given, or 0 if it is not 8 to 15.
    static int bits_of(const parameter_value& p) noexcept {
        if (p.value.empty()) return 15;
        if (p.value == "8" || p.value == "9") return p.value[0] - '0';
        const bool two = p.value.size() == 2 && p.value[0] == '1';
        return two && p.value[1] >= '0' && p.value[1] <= '5' ? 10 + p.value[1] - '0' : 0;
    }
    bool is_valid() const noexcept {
        return fits && server_no_takeover.value.empty() && client_no_takeover.value.empty() &&
               !(server_bits.offered && server_bits.value.empty()) && bits_of(client_bits) != 0 &&
               // zlib cannot deflate with a window of 8 bits.
               bits_of(server_bits) > 8;
    }
};

// Parses one extension and its parameters. Returns false if it is malformed. `list` begins with the
// rest behind it.
bool take_extension(std::string_view& list, std::string_view& name, deflate_offer& offer) {
    list = trim(list);
    name = take_token(list);
    if (name.empty()) return false;
    for (list = trim(list); !list.empty() && list.front() == ';'; list = trim(list)) {
        list = trim(list.substr(1));
        const std::string_view parameter = take_token(list);
        if (parameter.empty()) return false;
        std::string value;
        list = trim(list);
        if (!list.empty() && list.front() == '=') {
            list = trim(list.substr(1));
            if (!list.empty() && list.front() == '"') {
                list.remove_prefix(1);
                if (!take_quoted(list, value)) return false;
            } else {
                value = take_token(list);
            }
            std::string_view rest = value;  // a quoted value must be a token too
            if (take_token(rest).empty() || !rest.empty()) return false;
        }
        offer.add(parameter, std::move(value));
    }
    return true;
}

// Notes what an offer gives, and writes the answer to it.
void choose(const deflate_offer& offer, const websocket_options& options, websocket_source& source,
            std::string& chosen) {
    source.deflates = true;
    source.server_takes_over = options.context_takeover && !offer.server_no_takeover.offered;
    source.client_takes_over = options.context_takeover && !offer.client_no_takeover.offered;
    source.server_window_bits =
        std::min(options.window_bits, deflate_offer::bits_of(offer.server_bits));
    chosen = "permessage-deflate";
    if (!source.server_takes_over) chosen += "; server_no_context_takeover";
    if (!source.client_takes_over) chosen += "; client_no_context_takeover";
    if (source.server_window_bits != 15) {
        chosen += "; server_max_window_bits=" + std::to_string(source.server_window_bits);
    }
    if (offer.client_bits.offered) {  // otherwise the client does not know the parameter
        source.client_window_bits =
            std::min(options.window_bits, deflate_offer::bits_of(offer.client_bits));
        if (source.client_window_bits != 15) {
            chosen += "; client_max_window_bits=" + std::to_string(source.client_window_bits);
        }
    }
}

response refuse(int status, static_text why) {
    return response::status(status, why);
}

}  // namespace

std::string accept_value(std::string_view key) {
    const auto hash = sha1(std::string(key) + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    std::string text;
    for (std::size_t i = 0; i != 21; i += 3) {  // of 20 bytes, and one of padding
        const std::uint32_t group = std::uint32_t{hash[i]} << 16 | std::uint32_t{hash[i + 1]} << 8 |
                                    (i + 2 < 20 ? std::uint32_t{hash[i + 2]} : 0);
        for (int shift = 18; shift >= 0; shift -= 6) text += base64_digits[(group >> shift) & 63];
    }
    text.back() = '=';
    return text;
}

bool is_websocket_key(std::string_view text) noexcept {
    if (text.size() != 24 || !text.ends_with("==")) return false;
    for (const char c : text.substr(0, 22)) {
        if (base64_digits.find(c) == base64_digits.npos) return false;
    }
    return base64_digits.find(text[21]) % 16 == 0;  // the last bits belong to no byte
}

bool negotiate_extensions(std::string_view offers, const websocket_options& options,
                          websocket_source& source, std::string& chosen) {
    for (;;) {
        std::string_view name;
        deflate_offer offer;
        if (!take_extension(offers, name, offer)) return false;
        const bool fits = options.deflate && chosen.empty() && name == "permessage-deflate";
        if (fits && offer.is_valid()) choose(offer, options, source, chosen);
        if (offers.empty()) return true;
        if (offers.front() != ',') return false;
        offers.remove_prefix(1);
    }
}

std::shared_ptr<const websocket_options> checked(websocket_options&& options) {
    if (options.window_bits < 9 || options.window_bits > 15) {
        throw std::invalid_argument("websocket_options: window_bits must be 9 to 15, got " +
                                    std::to_string(options.window_bits));
    }
    if (options.deflate_level < 1 || options.deflate_level > 9) {
        throw std::invalid_argument("websocket_options: deflate_level must be 1 to 9, got " +
                                    std::to_string(options.deflate_level));
    }
    check_option("websocket_options::ping_interval", options.ping_interval,
                 std::chrono::milliseconds(1));
    check_option("websocket_options::pong_timeout", options.pong_timeout);
    check_option("websocket_options::close_timeout", options.close_timeout);
    for (const std::string& name : options.protocols) {
        std::string_view rest = name;
        if (take_token(rest).empty() || !rest.empty()) {
            throw std::invalid_argument("websocket_options: a protocol must be a token, got \"" +
                                        name + "\"");
        }
    }
    return std::make_shared<const websocket_options>(std::move(options));
}

response upgrade(const request& r, std::shared_ptr<websocket_source> source) {
    const request_head& head = r.head();
    if (!has_member(r, "Upgrade", "websocket") || head.minor_version() == 0) {
        return refuse(426, "this resource speaks WebSocket").add("Upgrade", "websocket");
    }
    if (only(r, "Sec-WebSocket-Version") != "13") {
        return refuse(426, "the version of WebSocket must be 13")
            .add("Upgrade", "websocket")
            .add("Sec-WebSocket-Version", "13");
    }
    if (head.verb() != method::get) return refuse(400, "a WebSocket begins with GET");
    if (!has_member(r, "Connection", "Upgrade")) {
        return refuse(400, "the Connection field does not say Upgrade");
    }
    if (head.chunked() || head.content_length().value_or(0) != 0) {
        return refuse(400, "a WebSocket begins without a body");
    }
    const std::optional<std::string_view> key = only(r, "Sec-WebSocket-Key");
    if (!key || !is_websocket_key(*key)) {
        return refuse(400, "Sec-WebSocket-Key is not 16 bytes in base64");
    }
    if (!may_connect(r, *source->options)) return refuse(403, "this origin may not connect");
    if (!choose_protocol(r, *source)) return refuse(400, "Sec-WebSocket-Protocol is malformed");
    std::string extensions;
    for (const field& f : head.fields()) {
        if (!equals_ignoring_case(f.name, "Sec-WebSocket-Extensions")) continue;
        if (!negotiate_extensions(f.value, *source->options, *source, extensions)) {
            return refuse(400, "Sec-WebSocket-Extensions is malformed");
        }
    }
    response answer(101);
    answer.add("Upgrade", "websocket").add("Sec-WebSocket-Accept", accept_value(*key));
    if (!source->protocol.empty()) answer.add("Sec-WebSocket-Protocol", source->protocol);
    if (!extensions.empty()) answer.add("Sec-WebSocket-Extensions", extensions);
    answer.body(std::move(source));
    return answer;
}

task<> websocket_source::write_to(body_writer&) {
    throw std::logic_error("a WebSocket cannot be the body of another answer");
    co_return;
}

}  // namespace coppice::http::internal
