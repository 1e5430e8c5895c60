// Reading and matching blocks of addresses.
#include <coppice/http/address_set.hpp>

#include <netinet/in.h>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <string>

namespace coppice::http {

using namespace internal;

namespace {

constexpr unsigned bits_before_v4 = 96;

[[noreturn]] void refuse_block(std::string_view text, const char* why) {
    throw std::invalid_argument("address_set: '" + std::string(text) + "' " + why);
}

bool bits_agree(const unsigned char* a, const unsigned char* b, unsigned bits) noexcept {
    const std::size_t whole = bits / 8;
    if (std::memcmp(a, b, whole) != 0) return false;
    const unsigned rest = bits % 8;
    return rest == 0 || (a[whole] ^ b[whole]) >> (8 - rest) == 0;
}

}  // namespace

// Returns false if the endpoint has no address of IPv4 or IPv6.
bool address_set::read(const io::endpoint& from, block& to) noexcept {
    if (from.is_v4()) {
        const auto& v4 = reinterpret_cast<const sockaddr_in&>(*from.data());
        std::memcpy(to.address.data() + 12, &v4.sin_addr, 4);
        to.v4 = true;
    } else if (from.is_v6()) {
        const in6_addr& v6 = reinterpret_cast<const sockaddr_in6&>(*from.data()).sin6_addr;
        to.v4 = IN6_IS_ADDR_V4MAPPED(&v6);
        std::memcpy(to.address.data() + (to.v4 ? 12 : 0), v6.s6_addr + (to.v4 ? 12 : 0),
                    to.v4 ? 4 : 16);
    } else {
        return false;
    }
    to.bits = 128;
    return true;
}

address_set::address_set(std::initializer_list<std::string_view> blocks) {
    for (const std::string_view text : blocks) add(text);
}

void address_set::add(std::string_view text) {
    if (text == "unix") {
        unix_ = true;
        return;
    }
    const std::size_t slash = text.find('/');
    const std::string_view address = text.substr(0, slash);
    const result<io::endpoint> at = io::endpoint::parse(address, 0);
    block made;
    if (!at || address.starts_with('[') || !read(at.value(), made)) {
        refuse_block(text,
                     "is not an address or a block: write 10.0.0.0/8, fd00::/8, 127.0.0.1, "
                     "::1, or unix");
    }
    if (slash != text.npos) {
        const std::string_view digits = text.substr(slash + 1);
        const unsigned before = at.value().is_v4() ? bits_before_v4 : 0;
        unsigned bits = 0;
        const char* const end = digits.data() + digits.size();
        const auto number = std::from_chars(digits.data(), end, bits);
        if (number.ec != std::errc() || number.ptr != end || bits > 128 - before ||
            (digits.size() > 1 && digits.front() == '0')) {
            refuse_block(text, before != 0 ? "needs a prefix of 0 to 32 bits after the slash"
                                           : "needs a prefix of 0 to 128 bits after the slash");
        }
        made.bits = bits + before;
        if (made.v4 && made.bits < bits_before_v4) {
            refuse_block(text, "is mapped from IPv4: write the block of IPv4 itself");
        }
    }
    block masked = made;
    for (unsigned bit = made.bits; bit != 128; ++bit) {
        masked.address[bit / 8] &= static_cast<unsigned char>(~(0x80u >> bit % 8));
    }
    if (masked.address != made.address) {
        refuse_block(text, "has bits beyond its prefix: clear them, or write a longer prefix");
    }
    blocks_.push_back(made);
}

bool address_set::contains(const io::endpoint& client) const noexcept {
    if (client.is_unix()) return unix_;
    block one;
    if (!read(client, one)) return false;
    for (const block& b : blocks_) {
        if (b.v4 == one.v4 && bits_agree(b.address.data(), one.address.data(), b.bits)) return true;
    }
    return false;
}

}  // namespace coppice::http
