// Whom a server lets in, whom it sheds for that, and what accepting needs; for serving.hpp.
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

// Open connections by client address, over all loops. Threads: any.
class address_counts : immovable {
public:
    using address = std::array<unsigned char, 16>;
    using slot = std::pair<const address, std::size_t>;

    // What counts as one address: an IPv4 address, or the /64 of an IPv6 one, which is what one
    // subscriber has. Clients of a Unix socket are one; so are those that are gone already.
    static address of(const io::endpoint& client) noexcept;
    // Whether the client is on this machine: a proxy in front of the server, for one.
    static bool is_local(const io::endpoint& client) noexcept;

    // Nullptr: the address has its `most` connections already, or there is no memory to count them.
    // Cost: a lock and a tree.
    slot* enter(const address& from, std::size_t most) noexcept;
    void leave(slot& s) noexcept;

private:
    std::mutex mutex_;
    std::map<address, std::size_t> open_;
};

// How many connections one address may have, and from when on that is looked at. Asking for an
// address is a system call, so a server with few connections does not.
struct address_limit {
    static address_limit of(const server_options& o) noexcept;

    bool is_looked_at(std::size_t open) const noexcept { return open >= counted_from; }

    std::size_t most;
    std::size_t counted_from;  // connections that are open, all together
    bool strangers_only;       // clients on this machine are not counted
};

// A descriptor that is open for nothing, so that a full table has one place: for accepting a
// connection in order to refuse it. Threads: its loop's.
class reserve_descriptor : immovable {
public:
    reserve_descriptor() noexcept = default;
    ~reserve_descriptor() { (void)give_up(); }
    // Whether it is there, or could be opened now.
    bool take() noexcept;
    // False: it is not there.
    bool give_up() noexcept;

private:
    int file_ = -1;
};

// Sent to a loop by others that need the place of an idle connection. Threads: any.
class shed_request : public io::operation {
public:
    explicit shed_request(serving_loop& l) noexcept : operation(&shed), loop_(l) {}
    enum class answer : unsigned char {
        none,    // the loop was asked already, and has not answered
        some,    // the loop is asked now; it had an idle connection when it was asked last, if ever
        barren,  // the loop is asked now; it had none when it was asked last
    };
    answer send() noexcept;

private:
    static void shed(operation* op) noexcept;

    serving_loop& loop_;
    std::mutex mutex_;
    bool sent_ = false;    // it is in the loop's mailbox, or being looked at
    bool barren_ = false;  // the loop had none when it was asked last
};

// The path of a Unix endpoint: removed before the server listens there and after it, but only if it
// is a socket on which nobody listens. A name without a file, and other endpoints, have none.
class socket_path : immovable {
public:
    explicit socket_path(const io::endpoint& at);
    ~socket_path() { remove(); }
    // The server listens there now: it is this one's to remove.
    void adopt() noexcept;
    void remove() noexcept;

private:
    std::string path_;  // "": none
    dev_t device_ = 0;
    ino_t inode_ = 0;  // 0: not this server's
};

// Raises the soft limit of descriptors to what the options need, as far as the hard one lets it,
// and warns if that is too little.
void provide_descriptors(const server_options& o, std::size_t loops);

}  // namespace coppice::http
