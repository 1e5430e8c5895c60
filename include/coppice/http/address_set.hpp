// address_set: blocks of addresses, such as those of the proxies that a server trusts.
#pragma once

#include <coppice/io/endpoint.hpp>

#include <array>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace coppice::http {

// A set of addresses, given as blocks. An IPv4 address that is mapped into IPv6 (::ffff:10.0.0.1)
// is the IPv4 address, in blocks and in endpoints. Ports mean nothing here. Threads: a value.
class address_set {
public:
    // Makes the empty set.
    address_set() noexcept = default;
    // Makes the set of these blocks; see add().
    address_set(std::initializer_list<std::string_view> blocks);

    // Adds "10.0.0.0/8", "fd00::/8", one address ("127.0.0.1", "::1"), or "unix", which is every
    // client of a Unix endpoint. Errors: std::invalid_argument, which names the text and says what
    // is wrong with it, for other text and for a block whose address has bits beyond its prefix;
    // std::bad_alloc. The set has not changed then.
    void add(std::string_view block);
    // Returns true if the endpoint's address is in a block. Cost: O(blocks).
    bool contains(const io::endpoint& client) const noexcept;
    // Returns true if no address is in the set.
    bool empty() const noexcept { return blocks_.empty() && !unix_; }

private:
    struct block {
        std::array<unsigned char, 16> address{};
        unsigned bits = 0;  // of `address`, from its first byte
        bool v4 = false;    // in the last four bytes
    };
    static bool read(const io::endpoint& from, block& to) noexcept;

    std::vector<block> blocks_;
    bool unix_ = false;
};

}  // namespace coppice::http
