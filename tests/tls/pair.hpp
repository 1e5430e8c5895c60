// A client's and a server's engine, joined in memory.
#pragma once

#include "certificates.hpp"

#include <coppice/tls/engine.hpp>

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace coppice::test {

inline std::span<const std::byte> bytes_in(std::string_view text) {
    return std::as_bytes(std::span(text.data(), text.size()));
}

// An engine with its memory: what has come for it, and what it has written.
class side {
public:
    explicit side(tls::engine e) : engine(std::move(e)) { engine.output(room_); }
    side(const side&) = delete;
    side& operator=(const side&) = delete;

    // Returns what was written since the last call.
    std::string take_written() {
        std::string text(reinterpret_cast<const char*>(room_.data()), engine.written());
        engine.output(room_);
        return text;
    }
    void come(std::string_view more) { coming_ += more; }
    // Lends what has come. Returns false if there is nothing new.
    bool lend() {
        if (coming_.empty() || engine.unread() != 0) return false;
        lent_ = std::exchange(coming_, {});
        engine.input(bytes_in(lent_));
        return true;
    }
    tls::progress shake() {
        tls::progress p = engine.handshake();
        while (p.what == tls::step::needs_input && lend()) p = engine.handshake();
        return p;
    }
    // Receives what has come, to the last byte; keeps how it ended.
    std::string receive_all() {
        std::string text;
        char some[3000];
        for (;;) {
            last = engine.receive(std::as_writable_bytes(std::span(some)));
            text.append(some, last.bytes);
            if (last.what == tls::step::done || (last.what == tls::step::needs_input && lend()))
                continue;
            return text;
        }
    }
    tls::engine engine;
    tls::progress last;

private:
    std::vector<std::byte> room_ = std::vector<std::byte>(tls::engine::room_min);
    std::string lent_, coming_;
};

struct joined_engines {
    joined_engines(tls::engine c, tls::engine s) : client(std::move(c)), server(std::move(s)) {}
    // Moves what each has written to the other.
    void move() {
        server.come(client.take_written());
        client.come(server.take_written());
    }
    // Shakes hands until both are done or one has failed.
    void shake() {
        for (int i = 0; i != 20; ++i) {
            client_end = client.shake();
            server.come(client.take_written());
            server_end = server.shake();
            client.come(server.take_written());
            if (client_end.what == tls::step::done && server_end.what == tls::step::done) return;
            if (client_end.what == tls::step::failed && server_end.what == tls::step::failed)
                return;
        }
    }
    bool is_ready() const { return client.engine.is_ready() && server.engine.is_ready(); }
    // What the other side gets of a text.
    std::string pass(side& from, side& to, std::string_view text) {
        while (!text.empty()) {
            const tls::progress p = from.engine.send(bytes_in(text));
            EXPECT_NE(p.what, tls::step::failed) << p.error.message();
            if (p.what == tls::step::failed) return {};
            text.remove_prefix(p.bytes);
            to.come(from.take_written());
        }
        return to.receive_all();
    }

    side client, server;
    tls::progress client_end, server_end;
};

// The usual two: one authority, and a server "server.example" whose client trusts the authority.
struct usual {
    authority issuer;
    tls::server_options server{.certificates = {issuer.issue()}};
    tls::client_options client{.system_authorities = false, .authorities = issuer.pem()};

    joined_engines join(std::string_view host = "server.example") const {
        return {tls::engine(tls::client_context(client), host),
                tls::engine(tls::server_context(server))};
    }
};

}  // namespace coppice::test
