// Conversations with a server in a simulation, with its access log; for tests.
#pragma once

#include <coppice/http/server.hpp>
#include <coppice/http/trace_context.hpp>

#include "raw_peer.hpp"
#include "served_world.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::test {

inline std::string text_of(const http::trace_context& t) {
    const auto text = t.text();
    return std::string(text.data(), text.size());
}

// Sends requests in one connection, each with these field lines, to a server that answers with the
// id and the trace of each. Returns all that was received.
struct answered {
    std::string text;
    std::string log;
};
inline answered serve(http::server_options o, http::router r, const std::string& bytes) {
    answered result;
    const int file = ::memfd_create("log", 0);
    {
        http::access_log log(file);
        o.access_log = &log;
        const talk client = [&](io::context& loop, const io::endpoint& to) -> task<> {
            raw_peer peer(loop, to);
            co_await peer.send(bytes, 1 << 20);
            peer.finish_sending();
            result.text = co_await peer.receive_all();
        };
        io::simulation world(3);
        (void)serve_in(world, std::move(o), std::move(r), client);
    }
    result.log.resize(static_cast<std::size_t>(::lseek(file, 0, SEEK_END)));
    EXPECT_EQ(::pread(file, result.log.data(), result.log.size(), 0),
              static_cast<ssize_t>(result.log.size()));
    ::close(file);
    return result;
}
inline std::string get(const std::string& lines, const std::string& target = "/") {
    return "GET " + target + " HTTP/1.1\r\nHost: a\r\n" + lines + "\r\n";
}
inline http::router telling() {
    http::router r;
    r.get("/", [](http::request& q) {
        return http::response::text("[" + std::string(q.id()) + " " + text_of(q.trace()) + "]");
    });
    return r;
}
inline int count_of(std::string_view text, std::string_view part) {
    int n = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != text.npos; ++at) ++n;
    return n;
}

}  // namespace coppice::test
