// TLS: whatever happens to the bytes between two engines, each receives a part of what the other
// one has sent, from its beginning, and the end only if the other has said it.
#include <coppice/tls/context.hpp>
#include <coppice/tls/engine.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "../../src/tls/contexts.hpp"
#include "certificates.hpp"
#include "verify.hpp"

namespace {

using namespace coppice;
using namespace coppice::test;

// What happens to the bytes of one direction. Each change is four bytes of the input: where, in two
// bytes; what; and a value.
class wire {
public:
    void add(std::size_t at, unsigned what, unsigned value) {
        changes_.insert({at, {what % 5, value}});
    }
    // Returns what arrives of these bytes.
    std::string pass(std::string_view bytes) {
        std::string arrived;
        for (const char c : bytes) {
            if (is_cut_) break;
            bool keep = true;
            char byte = c;
            const auto [first, last] = changes_.equal_range(passed_.size());
            for (auto each = first; each != last; ++each) {
                const auto [what, value] = each->second;
                is_touched_ = true;
                switch (what) {
                    case 0:
                        byte = static_cast<char>(byte ^ static_cast<char>(value | 1));
                        break;
                    case 1:
                        keep = false;
                        break;
                    case 2:
                        arrived += static_cast<char>(value);
                        break;
                    case 3:  // replays the latest bytes
                        arrived += passed_.substr(passed_.size() -
                                                  std::min<std::size_t>(passed_.size(), value * 4));
                        break;
                    default:
                        is_cut_ = true;
                        return arrived;
                }
            }
            passed_ += c;
            if (keep) arrived += byte;
        }
        return arrived;
    }
    bool is_cut() const noexcept { return is_cut_; }
    bool is_touched() const noexcept { return is_touched_; }

private:
    std::multimap<std::size_t, std::pair<unsigned, unsigned>> changes_;  // what and value, by place
    std::string passed_;
    bool is_cut_ = false;
    bool is_touched_ = false;
};

// An engine with its memory. It shakes hands, sends a text and its end, and receives to the end.
class peer {
public:
    peer(tls::engine e, std::string_view text)
        : engine_(std::move(e)), room_(tls::engine::room_min), unsent_(text) {
        engine_.output(room_);
    }
    void come(std::string_view more) { coming_ += more; }
    void end_input() {
        if (!std::exchange(is_input_ended_, true)) engine_.end_input();
    }
    // Goes on as far as it can, with input in pieces. Returns what it has written.
    std::string go_on(std::size_t piece) {
        std::string written;
        while (!has_failed_ && one_call(piece)) take(written);
        take(written);
        return written;
    }

    bool is_ready() const noexcept { return engine_.is_ready(); }
    bool has_ended() const noexcept { return has_ended_; }
    bool has_failed() const noexcept { return has_failed_; }
    std::error_code error() const noexcept { return error_; }
    const std::string& received() const noexcept { return received_; }

    // An error stays. An engine whose input was only cut off may still send.
    void verify_failed() {
        if (!has_failed_) return;
        std::array<std::byte, 16> some;
        const tls::progress again = engine_.receive(some);
        verify(again.what == tls::step::failed && again.bytes == 0, "a failed engine receives");
        if (is_ready() && error_ == tls::errc::truncated) return;
        verify(engine_.send(some).what == tls::step::failed, "a failed engine sends");
    }

private:
    void take(std::string& written) {
        written.append(reinterpret_cast<const char*>(room_.data()), engine_.written());
        engine_.output(room_);
    }
    // Returns true if a further call may get on.
    bool one_call(std::size_t piece) {
        verify(++calls_ < 100'000, "the engine goes on for ever");
        if (!is_shaken_) {
            const tls::progress p = engine_.handshake();
            verify(p.what != tls::step::ended, "a handshake has ended");
            is_shaken_ = p.what == tls::step::done;
            return after(p, piece);
        }
        if (!unsent_.empty()) {
            const tls::progress p = engine_.send(std::as_bytes(std::span(unsent_)));
            unsent_.remove_prefix(p.bytes);
            if (p.what != tls::step::needs_input) return after(p, piece);
        } else if (!has_said_end_) {
            const tls::progress p = engine_.end();
            has_said_end_ = p.what == tls::step::done;
            if (p.what != tls::step::needs_input) return after(p, piece);
        }
        if (has_ended_) return false;
        std::array<char, 700> some;
        const tls::progress p = engine_.receive(std::as_writable_bytes(std::span(some)));
        verify(p.bytes <= some.size(), "more than there is room for");
        received_.append(some.data(), p.bytes);
        has_ended_ = p.what == tls::step::ended;
        return after(p, piece);
    }
    bool after(const tls::progress& p, std::size_t piece) {
        switch (p.what) {
            case tls::step::failed:
                verify(static_cast<bool>(p.error), "a failure without an error");
                has_failed_ = true;
                error_ = p.error;
                return false;
            case tls::step::needs_input:
                return lend(piece);
            default:
                return true;
        }
    }
    bool lend(std::size_t piece) {
        verify(engine_.unread() == 0, "input is needed although there is some");
        if (coming_.empty()) return false;
        lent_ = coming_.substr(0, piece);
        coming_.erase(0, lent_.size());
        engine_.input(std::as_bytes(std::span(lent_)));
        return true;
    }

    tls::engine engine_;
    std::vector<std::byte> room_;
    std::string_view unsent_;
    std::string lent_, coming_, received_;
    std::error_code error_;
    int calls_ = 0;
    bool is_input_ended_ = false;
    bool is_shaken_ = false;
    bool has_said_end_ = false;
    bool has_ended_ = false;
    bool has_failed_ = false;
};

// The contexts of all ways that the first byte chooses.
struct contexts {
    contexts() {
        const authority issuer;
        const tls::certificate of_client = issuer.issue({.usage = "clientAuth"});
        for (unsigned way = 0; way != 8; ++way) {
            tls::server_options s{.certificates = {issuer.issue()}};
            tls::client_options c{.system_authorities = false, .authorities = issuer.pem()};
            if ((way & 2) != 0) s.protocols = c.protocols = {"h2", "http/1.1"};
            if ((way & 4) != 0) {
                s.clients = tls::client_certificates::require;
                s.client_authorities = issuer.pem();
                c.own = of_client;
            }
            servers.emplace_back(s);
            clients.emplace_back(c);
            if ((way & 1) != 0)
                SSL_CTX_set_max_proto_version(clients.back().state()->context(), TLS1_2_VERSION);
        }
    }
    std::vector<tls::server_context> servers;
    std::vector<tls::client_context> clients;
};

const std::string text_of_client = "a request" + std::string(3000, 'c');
const std::string text_of_server = "an answer" + std::string(20'000, 's');

void verify_received(const peer& by, const std::string& sent, bool untouched) {
    verify(std::string_view(sent).starts_with(by.received()), "bytes that were not sent");
    if (by.has_ended()) verify_equal(by.received(), sent, "an end before the end");
    if (untouched)
        verify(by.has_ended() && !by.has_failed(),
               "without a change it ends well: " + by.error().message());
}

// The bytes go to one side, as if the peer had sent them.
void send_raw(peer& to, std::string_view bytes, std::size_t piece) {
    to.come(bytes);
    (void)to.go_on(piece);
    to.end_input();
    (void)to.go_on(piece);
    verify(!to.is_ready() && to.has_failed(), "a handshake without a peer");
    to.verify_failed();
}

void talk(peer& client, peer& server, wire& to_server, wire& to_client, std::size_t piece) {
    for (;;) {
        const std::string up = client.go_on(piece);
        server.come(to_server.pass(up));
        if (to_server.is_cut()) server.end_input();
        const std::string down = server.go_on(piece);
        client.come(to_client.pass(down));
        if (to_client.is_cut()) client.end_input();
        if (up.empty() && down.empty()) break;
    }
    server.end_input();
    (void)server.go_on(piece);
    client.end_input();
    (void)client.go_on(piece);
    verify_received(client, text_of_server, !to_client.is_touched() && !to_server.is_touched());
    verify_received(server, text_of_client, !to_client.is_touched() && !to_server.is_touched());
    verify(client.has_ended() || client.has_failed(), "the client neither ends nor fails");
    verify(server.has_ended() || server.has_failed(), "the server neither ends nor fails");
    client.verify_failed();
    server.verify_failed();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const contexts all;
    if (size < 2) return 0;
    const unsigned way = data[0];
    const std::size_t piece = data[1] == 0 ? 1'000'000 : data[1];
    const std::span<const std::uint8_t> rest(data + 2, size - 2);
    peer server(tls::engine(all.servers[way & 7]), text_of_server);
    peer client(tls::engine(all.clients[way & 7], "server.example"), text_of_client);
    if ((way & 24) == 24) {
        peer& to = (way & 32) != 0 ? client : server;
        send_raw(to, {reinterpret_cast<const char*>(rest.data()), rest.size()}, piece);
        return 0;
    }
    wire to_server, to_client;
    for (std::size_t i = 0; i + 4 <= rest.size() && i != 64; i += 4) {
        wire& changed = (rest[i + 2] & 128) != 0 ? to_client : to_server;
        changed.add(rest[i] * std::size_t{256} + rest[i + 1], rest[i + 2] & 127, rest[i + 3]);
    }
    talk(client, server, to_server, to_client, piece);
    return 0;
}
