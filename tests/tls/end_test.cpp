// Streams and loops that end at any moment: in a completion, between two turns, and with what is
// pending.
#include "streams.hpp"

#include <coppice/io/simulation.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;

// An error of an operation that something ended, or none.
bool is_end(std::error_code error) {
    return !error || error == std::errc::operation_canceled || error == tls::errc::truncated ||
           error == std::errc::broken_pipe || error == std::errc::connection_reset;
}

// Two streams that work in both directions at once, and count what has ended.
struct busy_streams {
    busy_streams(io::context& loop, const usual& u) {
        joined_streams both(loop, u);
        client = std::make_unique<tls::stream<>>(std::move(both.client));
        server = std::make_unique<tls::stream<>>(std::move(both.server));
        for (tls::stream<>* each : {client.get(), server.get()}) {
            ++begun;
            each->handshake([this, each](std::error_code error) {
                note(error);
                if (!error) work(*each);
            });
        }
    }
    void work(tls::stream<>& s) {
        begun += 2;
        s.send_all(bytes_in(much), [this](std::error_code error) { note(error); });
        receive(s);
    }
    void receive(tls::stream<>& s) {
        s.receive(place[&s == server.get()], [this, &s](std::error_code error, std::size_t n) {
            if (error || (received += n) == 2 * much.size()) return note(error);
            receive(s);
        });
    }
    void note(std::error_code error) {
        EXPECT_TRUE(is_end(error)) << error.message();
        ++ended;
    }
    const std::string much = std::string(40'000, 'x');
    std::unique_ptr<tls::stream<>> client, server;
    std::array<std::array<std::byte, 3000>, 2> place{};
    int begun = 0, ended = 0;
    std::size_t received = 0;
};

TEST(tls_end, a_completion_may_destroy_its_stream_whatever_the_operation) {
    const usual u;
    const std::string text(40'000, 'x');
    std::array<std::byte, 100> bytes;
    for (int kind = 0; kind != 6; ++kind) {
        io::context loop(io::backend::sim);
        joined_streams both(loop, u);
        auto server = std::make_unique<tls::stream<>>(std::move(both.server));
        int ended = 0;
        const auto destroy = [&](std::error_code error) {
            EXPECT_FALSE(error) << kind << ": " << error.message();
            server.reset();
            ++ended;
        };
        const auto destroy_too = [&](std::error_code error, std::size_t) { destroy(error); };
        std::array<std::byte, 5000> place;
        std::function<void(std::error_code, std::size_t)> drain = [&](std::error_code error,
                                                                      std::size_t n) {
            if (!error && n != 0) both.client.receive(place, drain);
        };
        both.client.handshake([&](std::error_code) {
            both.client.receive(place, drain);
            both.client.send_all(bytes_in(text), [&](std::error_code error) {
                if (!error) both.client.shutdown_send([](std::error_code) {});
            });
        });
        server->handshake([&](std::error_code error) {
            switch (kind) {
                case 0:
                    return destroy(error);
                case 1:
                    return server->receive(bytes, destroy_too);
                case 2:
                    return server->send(bytes_in(text), destroy_too);
                case 3:
                    return server->send_all(bytes_in(text), destroy);
                case 4:
                    return server->shutdown_send(destroy);
                default:
                    return server->shutdown(destroy);
            }
        });
        loop.run();
        EXPECT_EQ(ended, 1) << kind;
    }
}

TEST(tls_end, streams_may_be_destroyed_after_any_turn_and_each_operation_ends_once) {
    const usual u;
    int canceled = 0;
    for (int at = 0; at != 60; ++at) {
        io::simulation world(static_cast<unsigned>(at));
        io::context loop(world);
        busy_streams both(loop, u);
        (void)loop.run_for(at * 150us);
        canceled += both.begun - both.ended;
        (at % 2 == 0 ? both.server : both.client).reset();
        if (at % 3 == 0) both.client.reset(), both.server.reset();
        loop.run();
        EXPECT_EQ(both.ended, both.begun) << at;
    }
    EXPECT_GT(canceled, 0);
}

TEST(tls_end, a_loop_may_end_after_any_turn_and_each_operation_ends_once) {
    const usual u;
    for (int at = 0; at != 60; ++at) {
        io::simulation world(static_cast<unsigned>(at));
        std::optional<io::context> loop(std::in_place, world);
        busy_streams both(*loop, u);
        (void)loop->run_for(at * 150us);
        EXPECT_FALSE(loop->drain(0us) && both.ended != both.begun);
        EXPECT_EQ(both.ended, both.begun) << at;
        both.client.reset();
        both.server.reset();
        loop.reset();
    }
}

}  // namespace
