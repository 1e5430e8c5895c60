// A relay in a simulated world, between a client and a server: it breaks a connection at any byte.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/execution.hpp>
#include <coppice/io/option.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "served_world.hpp"
#include "websocket_frames.hpp"

namespace coppice::test {

// What a relay does to one direction after so many bytes.
enum class breaking {
    nothing,
    end,    // says that the sender has ended
    reset,  // resets both sides
    stall,  // passes nothing more on until the sender ends
    pause,  // goes on later
};
struct breakage {
    breaking how = breaking::nothing;
    bool to_client = false;
    std::size_t at = 0;
    std::size_t piece = 4096;  // so many bytes are passed on at once, in both directions
};

// Carries one connection. Threads: the loop's.
class relay {
public:
    relay(io::context& loop, const io::endpoint& server)
        : loop_(loop), server_(server), acceptor_(loop, io::loopback(0)) {}
    io::endpoint where() const { return acceptor_.local(); }

    // Completes when both sides have ended, or were reset.
    task<> carry(breakage b) {
        breakage_ = b;
        io::tcp::socket client = co_await acceptor_.accept();
        acceptor_.close();
        io::tcp::socket server(loop_);
        co_await server.connect(server_);
        bool is_reset = false;
        try {
            co_await execution::when_all(pass(client, server, false), pass(server, client, true));
        } catch (const std::system_error&) {
            is_reset = true;
        }
        if (!is_reset) co_return;
        (void)client.set(io::linger(std::chrono::seconds(0)));
        (void)server.set(io::linger(std::chrono::seconds(0)));
    }
    // Returns how many bytes a side has sent.
    std::size_t carried(bool to_client) const noexcept { return carried_[to_client ? 1 : 0]; }

private:
    // Passes on what one side sends. An error of either side resets both.
    task<> pass(io::tcp::socket& from, io::tcp::socket& to, bool to_client) {
        const bool breaks = breakage_.how != breaking::nothing && to_client == breakage_.to_client;
        std::size_t& carried = carried_[to_client ? 1 : 0];
        std::array<std::byte, 4096> some;
        bool is_silent = false;
        for (;;) {
            const std::span<std::byte> room =
                std::span(some).first(std::min(some.size(), breakage_.piece));
            std::span<const std::byte> come = room.first(co_await from.receive(room));
            if (come.empty()) break;
            const std::size_t begin = std::exchange(carried, carried + come.size());
            if (breaks && begin <= breakage_.at && carried >= breakage_.at && !is_silent) {
                const auto before = come.first(breakage_.at - begin);
                co_await to.send_all(before);
                come = come.subspan(before.size());
                is_silent = co_await turn_silent(to);
            }
            if (!is_silent) co_await to.send_all(come);
        }
        if (!is_silent || breakage_.how == breaking::stall) to.shutdown_send();
    }
    // Breaks. Returns true if nothing more is passed on.
    task<bool> turn_silent(io::tcp::socket& to) {
        switch (breakage_.how) {
            case breaking::reset:
                throw std::system_error(std::make_error_code(std::errc::connection_reset));
            case breaking::end:
                to.shutdown_send();
                co_return true;
            case breaking::stall:
                co_return true;
            case breaking::pause:
                co_await io::timer(loop_).wait_for(std::chrono::milliseconds(20));
                co_return false;
            case breaking::nothing:
                break;
        }
        co_return false;
    }

    io::context& loop_;
    const io::endpoint server_;
    io::tcp::acceptor acceptor_;
    breakage breakage_;
    std::array<std::size_t, 2> carried_{};
};

// What the handlers of a server have seen.
struct seen_by_handlers {
    int begun = 0;
    int ended = 0;
    int parts = 0;  // bodies, messages, and conversations that were taken for whole ones wrongly

    // Counts a handler until the result is destroyed.
    auto count() {
        ++begun;
        return scope_exit([this] { ++ended; });
    }
    void expect_all_ended_and_no_part() const {
        EXPECT_GT(begun, 0);
        EXPECT_EQ(begun, ended);
        EXPECT_EQ(parts, 0);
    }
};

// One conversation of a client with `to`, which checks what it gets. `is_whole`: nothing breaks, so
// all of it must arrive.
using relayed_talk =
    std::function<task<>(io::context& loop, const io::endpoint& to, bool is_whole)>;

// Has the conversation again and again with one server, through a relay that breaks in one way at
// each `step`-th byte of one direction.
inline task<> talk_in_pieces(io::context& loop, io::endpoint to, breakage b, std::size_t step,
                             const relayed_talk& talk) {
    const auto talk_through = [&](breakage now, bool is_whole) -> task<std::size_t> {
        relay r(loop, to);
        co_await execution::when_all(r.carry(now), talk(loop, r.where(), is_whole));
        co_return r.carried(now.to_client);
    };
    const std::size_t bytes = co_await talk_through({.to_client = b.to_client}, true);
    EXPECT_GT(bytes, 50u);
    co_await talk_through({.piece = 1}, true);
    for (b.at = 0; b.at <= bytes; b.at += step) {
        co_await talk_through(b, b.how == breaking::pause);
        if (testing::Test::HasFailure()) {
            ADD_FAILURE() << "at byte " << b.at << " of " << bytes;
            co_return;
        }
    }
}

// Has the conversation with servers of these options, with every breakage. Halts and delays come at
// each fourth of the bytes only.
inline void break_at_every_byte(const std::function<http::server_options()>& options,
                                const std::function<http::router()>& routes,
                                const relayed_talk& talk, std::size_t step = 1) {
    std::uint64_t seed = 1;
    for (const breaking how : {breaking::end, breaking::reset, breaking::stall, breaking::pause}) {
        for (const bool to_client : {false, true}) {
            SCOPED_TRACE(testing::Message() << "way " << static_cast<int>(how)
                                            << (to_client ? " to client" : " to server"));
            io::simulation world(++seed);
            http::server_options o = options();
            o.timeouts.header = o.timeouts.idle = std::chrono::seconds(2);
            o.timeouts.body = o.timeouts.write = std::chrono::seconds(2);
            o.timeouts.handler = std::chrono::seconds(5);
            o.on_exception = [](std::exception_ptr) {};
            (void)serve_in(world, std::move(o), routes(),
                           [&](io::context& loop, const io::endpoint& to) {
                               const bool waits = how == breaking::stall || how == breaking::pause;
                               return talk_in_pieces(loop, to, {how, to_client},
                                                     waits ? 4 * step : step, talk);
                           });
            EXPECT_EQ(world.open_descriptors(), 0u);
            if (testing::Test::HasFailure()) return;
        }
    }
}

// ---- What the clients of such conversations do -------------------------------------------------

// Sends bytes over a stream that is connected, and receives until the other side ends.
template <class Stream>
task<> send_bytes(Stream& peer, std::string_view bytes) {
    std::error_code ec;
    co_await peer.send_all(std::as_bytes(std::span(bytes)), use_await[ec]);
}
template <class Stream>
task<> receive_bytes(Stream& peer, std::string& received) {
    std::array<char, 512> some;
    for (std::error_code ec; !ec;) {
        const std::size_t n =
            co_await peer.receive(std::as_writable_bytes(std::span(some)), use_await[ec]);
        if (n == 0) break;
        received.append(some.data(), n);
    }
}

// Sends bytes over a connected stream, and receives meanwhile.
template <class Stream>
task<std::string> exchange_all(Stream& peer, std::string bytes) {
    std::string received;
    co_await execution::when_all(send_bytes(peer, bytes), receive_bytes(peer, received));
    co_return received;
}

// Checks the frames of a WebSocket that a server has sent: all of these, or the first of them and
// another end.
inline void expect_frames(std::string_view received, const std::vector<std::string>& wanted,
                          bool is_whole) {
    const auto take = [&](std::size_t n) {
        const std::string got(received.size() < n ? "" : received.substr(0, n));
        received.remove_prefix(got.size());
        return got;
    };
    std::vector<std::string> got;
    for (std::string f = next_frame(take); f != "end"; f = next_frame(take)) {
        if (!f.starts_with("9:")) got.push_back(f);  // the server pings a silent client
    }
    if (is_whole) {
        EXPECT_EQ(got, wanted);
        return;
    }
    if (!got.empty() && got.back().starts_with("8:")) got.pop_back();
    ASSERT_LE(got.size(), wanted.size());
    EXPECT_TRUE(std::equal(got.begin(), got.end(), wanted.begin())) << got.back();
}

}  // namespace coppice::test
