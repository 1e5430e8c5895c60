// Which clients a server lets in, which connections it closes for them; for the server's sources.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/http/server.hpp>
#include <coppice/io/endpoint.hpp>

#include <sys/types.h>
#include <array>
#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace coppice::http {

struct serving_loop;

// The number of open connections by client address, over all loops. Threads: any.
class address_counts : immovable {
public:
    using address = std::array<unsigned char, 16>;
    using slot = std::pair<const address, std::size_t>;

    // Returns what counts as one address: an IPv4 address, or the /64 of an IPv6 address, which is
    // what one subscriber has. An address of 64:ff9b::/96 counts as the IPv4 address in it. All
    // clients of a Unix socket count as one, as do clients that are gone already.
    static address of(const io::endpoint& client) noexcept;
    // Returns true if the client is on this machine, for example a proxy in front of the server.
    static bool is_local(const io::endpoint& client) noexcept;

    // Counts a connection of the address. Returns nullptr if the address has `most` connections
    // already, or there is no memory to count them. Cost: a lock and a look-up in a tree.
    slot* enter(const address& from, std::size_t most) noexcept;
    void leave(slot& s) noexcept;

private:
    std::mutex mutex_;
    std::map<address, std::size_t> open_;
};

// How many connections one address may have, and from how many connections on that is checked.
// Asking for an address is a system call, so a server with few connections does not check.
struct address_limit {
    static address_limit of(const server_options& o) noexcept;

    bool is_looked_at(std::size_t open) const noexcept { return open >= counted_from; }

    std::size_t most;
    std::size_t counted_from;  // open connections of all addresses
    bool strangers_only;       // clients on this machine are not counted
};

// A spare descriptor. When the process has no other left, it makes room for accepting a connection
// in order to refuse it. Threads: its loop's.
class reserve_descriptor : immovable {
public:
    reserve_descriptor() noexcept = default;
    ~reserve_descriptor() { (void)give_up(); }
    // Returns true if the descriptor is open, or could be opened now.
    bool take() noexcept;
    // Closes the descriptor. Returns false if it was not open.
    bool give_up() noexcept;

private:
    int file_ = -1;
};

// Sent to a loop by another loop that needs the place of an idle connection. Threads: any.
class shed_request : public io::operation {
public:
    explicit shed_request(serving_loop& l) noexcept : operation(&shed), loop_(l) {}
    enum class answer : unsigned char {
        none,  // the loop was asked before, and has not answered
        some,  // the loop is asked now; it had an idle connection at its last answer, or has never
               // been asked
        barren,  // the loop is asked now; it had none at its last answer
    };
    answer send() noexcept;

private:
    static void shed(operation* op) noexcept;

    serving_loop& loop_;
    std::mutex mutex_;
    bool sent_ = false;    // it is in the loop's mailbox, or being handled
    bool barren_ = false;  // the loop had none at its last answer
};

// The path of a Unix endpoint. It is removed before the server listens there and after the server
// has ended, but only if it is a socket on which no process listens. Abstract names and other
// endpoints have no path.
class socket_path : immovable {
public:
    explicit socket_path(const io::endpoint& at);
    ~socket_path() { remove(); }
    // Called when the server listens there: the path is now this server's to remove.
    void adopt() noexcept;
    void remove() noexcept;

private:
    std::string path_;  // "": none
    dev_t device_ = 0;
    ino_t inode_ = 0;  // 0: not this server's
};

// Raises the soft limit of descriptors to what the options need, as far as the hard limit permits,
// and warns if that is too little.
void provide_descriptors(const server_options& o, std::size_t loops);

}  // namespace coppice::http
