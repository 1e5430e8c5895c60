// Stops of a tls::stream at every await: what was stopped has moved nothing, and the stream goes
// on.
#include "streams.hpp"

#include <coppice/io/simulation.hpp>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <random>
#include <string>

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;

// Everything that both sides do is stopped again and again, at times that the seed decides.
class stopped_again {
public:
    stopped_again(io::context& loop, unsigned seed) : loop_(loop), random_(seed) {}

    int stops = 0;

    // Repeats the operation until it has not been stopped. Makes it again each time.
    task<std::size_t> persist(const std::function<task<std::size_t>()>& make) {
        for (;;) {
            inplace_stop_source source;
            const auto stop = [&source]() noexcept { source.request_stop(); };
            const std::optional<std::size_t> value = co_await ex::when_all(
                ex::stop_when(make(), source.get_token()) | ex::stopped_as_optional(),
                loop_.get_scheduler().schedule_after(pause()) | ex::then(stop));
            if (value) co_return *value;
            ++stops;
        }
    }

    task<> shake(tls::stream<>& s) {
        co_await persist([&s]() -> task<std::size_t> {
            co_await s.handshake();
            co_return 1;
        });
    }
    task<> send(tls::stream<>& to, std::string_view text) {
        while (!text.empty()) {
            const std::string_view some = text.substr(0, 1 + random_() % 20'000);
            text.remove_prefix(co_await persist([&to, some]() -> task<std::size_t> {
                co_return co_await to.send(bytes_in(some));
            }));
        }
        co_await persist([&to]() -> task<std::size_t> {
            co_await to.shutdown_send();
            co_return 1;
        });
    }
    task<> receive(tls::stream<>& from, std::string& text) {
        for (;;) {
            std::array<char, 3000> some;
            const std::span<std::byte> into =
                std::as_writable_bytes(std::span(some).first(1 + random_() % some.size()));
            const std::size_t n = co_await persist(
                [&from, into]() -> task<std::size_t> { co_return co_await from.receive(into); });
            if (n == 0) co_return;
            text.append(some.data(), n);
        }
    }

private:
    std::chrono::nanoseconds pause() { return std::chrono::microseconds(random_() % 3000); }
    io::context& loop_;
    std::mt19937 random_;
};

TEST(tls_stop, no_stop_at_any_time_loses_or_repeats_a_byte) {
    const usual u;
    std::string there(60'000, 'a'), back(50'000, 'b');
    for (std::size_t i = 0; i != there.size(); ++i) there[i] = static_cast<char>(i * 7 / 3);
    for (std::size_t i = 0; i != back.size(); ++i) back[i] = static_cast<char>(i * 5 / 3);
    int stops = 0;
    for (unsigned seed = 1; seed != 40; ++seed) {
        io::simulation world(seed);
        io::context loop(world);
        joined_streams both(loop, u);
        stopped_again again(loop, seed);
        ASSERT_TRUE(run_on(loop, ex::when_all(again.shake(both.client), again.shake(both.server))));
        std::string at_server, at_client;
        ASSERT_TRUE(
            run_on(loop, ex::when_all(again.send(both.client, there), again.send(both.server, back),
                                      again.receive(both.server, at_server),
                                      again.receive(both.client, at_client))));
        ASSERT_TRUE(at_server == there) << seed;
        ASSERT_TRUE(at_client == back) << seed;
        stops += again.stops;
    }
    EXPECT_GT(stops, 100);
}

TEST(tls_stop, a_deadline_ends_each_operation_as_stopped_and_the_stream_goes_on) {
    const usual u;
    io::simulation world(7);
    io::context loop(world);
    joined_streams both(loop, u);
    const auto limited = [&loop](auto operation) {
        const ex::instant soon(loop.now() + 1ms);
        return ex::write_env(std::move(operation), ex::prop(ex::get_deadline, soon)) |
               ex::then([](auto&&...) noexcept { return 1; }) | ex::stopped_as_optional();
    };
    std::array<std::byte, 10> bytes;
    const auto stop_all = [&](tls::stream<>& client) -> task<> {
        EXPECT_FALSE(co_await limited(client.handshake()));  // the server does not answer
        co_await both.shake();
        EXPECT_FALSE(co_await limited(client.receive(bytes)));
        EXPECT_FALSE(co_await limited(client.shutdown()));
    };
    ASSERT_TRUE(run_on(loop, stop_all(both.client)));
    ASSERT_TRUE(run_on(loop, ex::when_all(both.client.shutdown(), both.server.shutdown())));
}

TEST(tls_stop, a_send_to_a_peer_that_does_not_read_is_stopped_and_its_record_goes_out_later) {
    const usual u;
    io::simulation world(3);
    io::context loop(world);
    joined_streams both(loop, u);
    ASSERT_TRUE(run_on(loop, both.shake()));
    stopped_again again(loop, 5);
    std::size_t taken = 0;
    const std::string record(16'000, 'x');
    const auto fill = [&]() -> task<> {  // until a send is stopped before it has taken anything
        for (;;) {
            const auto n = co_await ex::when_all(
                ex::write_env(both.client.send(bytes_in(record)),
                              ex::prop(ex::get_deadline, ex::instant(loop.now() + 20ms))) |
                ex::stopped_as_optional());
            if (!n) co_return;
            taken += *n;
        }
    };
    ASSERT_TRUE(run_on(loop, fill()));
    EXPECT_GT(taken, 0u);
    std::string got;
    const auto rest = [&]() -> task<> {
        co_await both.client.send({});  // what is left of the last record
        co_await both.client.shutdown_send();
    };
    ASSERT_TRUE(run_on(loop, ex::when_all(rest(), again.receive(both.server, got))));
    EXPECT_EQ(got.size(), taken);
}

}  // namespace
