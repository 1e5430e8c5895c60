// client_origins: the servers that may speak HTTP/2, and the client's requests that wait there.
#pragma once
// For each server, one call connects, and decides what the server speaks. The others wait: then for
// a stream of the connection, or, if it is HTTP/1.1, they take connections of their own. When the
// deciding call fails, those that wait fail with it. When it is stopped, the next one decides.

#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/http/internal/client_core.hpp>
#include <coppice/io/endpoint.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

namespace coppice::http {

class client_session;

namespace internal {

class client_call;
struct client_host;

}  // namespace internal

using namespace internal;

struct client_origins;

// A call that waits for a stream. It lies in the call's task.
struct client_joiner : list_hook<> {
    explicit client_joiner(client_call& c) noexcept : call(&c) {}
    client_call* call;
    std::error_code error;
    bool is_told = false;  // the wait is over
    bool is_lost = false;  // after the error, a retry may help
};

// One server. Threads: the loop's.
struct client_origin : immovable {
    client_origin(client_origins& a, const client_target& target);
    bool leads_to(const client_target& target) const noexcept;
    // Returns a session that takes requests, if possible one that takes one now, or nullptr.
    client_session* usable() noexcept;
    // Give those that wait what there is for them, first come first served. With a session: one
    // that was just made, and carries them in any case.
    void grant() noexcept { grant_on(nullptr); }
    void grant_on(client_session* made) noexcept;
    // Notes that the server speaks HTTP/2. There is room for the session, and grant_on() is to
    // follow.
    void begin(client_session& made) noexcept;
    // End the deciding: the server speaks HTTP/1.1; nothing; or the call that was to decide has
    // left.
    void speak_http1() noexcept;
    void fail(std::error_code error, bool is_lost) noexcept;
    void give_up_deciding() noexcept;
    // Returns true if the loop has not yet brought what has come on sessions without a stream.
    bool has_news() noexcept;
    // Called by a session that leaves.
    void left(const client_session& s) noexcept;

    client_origins* all;
    const io::endpoint to;  // as those of a client_target
    const std::string name;
    const std::uint16_t port;
    const std::string proven;
    std::vector<client_session*> sessions;  // the newest last; has room for one more
    intrusive_list<client_joiner> waiting;
    bool is_deciding = false;
    bool speaks_only_http1 = false;
};

// All servers of one client.
struct client_origins : immovable {
    explicit client_origins(client_core& owner) noexcept : client(owner) {}
    ~client_origins();
    // Errors: std::bad_alloc.
    client_origin& at(const client_target& target);
    // Return how many sessions have no request, and the one that has had none for longest, or
    // nullptr. `host`: of those that have a place there.
    std::size_t kept() const noexcept;
    client_session* oldest_kept(const client_host* host = nullptr) const noexcept;
    void close_idle() noexcept;
    // Ends such a session, if there is one, so that its place is free.
    void free_place(const client_host& host) noexcept;
    // Called when no call waits for a place there any longer: sessions take requests again.
    void note_unwanted(const client_host& host) noexcept;

    client_core& client;
    std::vector<std::unique_ptr<client_origin>> each;
};

}  // namespace coppice::http
