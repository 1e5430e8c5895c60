// The proxy of examples/38_proxy.cpp with many clients: either side may end, reset, or never read,
// and a SIGTERM may come at any time. What should arrive arrives, and nothing is left over.
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/let_async_scope.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/exec/spawn.hpp>
#include <coppice/exec/timeout.hpp>
#include <coppice/io/copy.hpp>
#include <coppice/io/run.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/tcp.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task/task.hpp>

#include "detached.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::test::bytes_of;
using coppice::test::detached;
using coppice::test::text_of;

constexpr int clients_count = 200;

// What a client and its server do. The client's first byte says which.
enum class habit : char {
    echo = 'a',      // the server sends back what it receives; then both end
    answer,          // the server answers when the client has ended its side
    server_resets,   // the server resets when it has received something
    client_resets,   // the client resets when it has sent something
    server_is_deaf,  // the server never reads, and the client sends forever
    client_is_deaf   // the client never reads, and the server sends forever
};
habit habit_of(int client) {
    if (client % 40 == 4) return habit::server_is_deaf;
    if (client % 40 == 24) return habit::client_is_deaf;
    constexpr std::array all{habit::echo, habit::answer, habit::server_resets,
                             habit::client_resets};
    return all.at(static_cast<std::size_t>(client) % all.size());
}

const std::string words = [] {
    std::string text(10'000, ' ');
    for (std::size_t i = 0; i != text.size(); ++i) text[i] = static_cast<char>(i * 7 % 251);
    return text;
}();
const std::string for_ever(16u << 20, 'x');

struct trial {
    io::simulation* world = nullptr;  // nullptr: the kernel's sockets
    int stop_after = 0;               // stop when this many clients have ended
    bool over = false;                // the proxy has ended
    int ended = 0;
    int right = 0;  // clients that received what they should
    int answerable = 0;

    void terminate() const {
        if (world != nullptr) {
            world->raise(SIGTERM);
        } else {
            ::kill(::getpid(), SIGTERM);
        }
    }
    void count_off() {
        if (++ended == stop_after) terminate();
    }
};

task<std::string> receive_rest(io::tcp::socket& socket) {
    std::string all;
    for (;;) {
        std::array<std::byte, 3000> memory;
        std::error_code ec;
        const std::size_t n = co_await socket.receive(memory, use_await[ec]);
        if (ec || n == 0) co_return all;
        all += text_of(std::span(memory).first(n));
    }
}
task<> wait_for_the_end(io::context& loop, const trial& t) {
    io::timer timer(loop);
    while (!t.over) co_await timer.wait_for(1ms);
}
task<bool> has_sent(io::tcp::socket& socket, std::string_view text) {
    std::error_code ec;
    co_await socket.send_all(bytes_of(text), use_await[ec]);
    co_return !ec;
}
void reset(io::tcp::socket& socket) {
    EXPECT_FALSE(socket.set(io::linger(0s)));
    socket.close();
}

task<> talk(io::context& loop, io::tcp::socket& socket, habit how, trial& t) {
    const bool told = co_await has_sent(socket, std::string(1, static_cast<char>(how)));
    if (!told) co_return;
    std::string got;
    switch (how) {
        case habit::echo:
        case habit::answer:
            (void)co_await has_sent(socket, words);
            socket.shutdown_send();
            got = co_await receive_rest(socket);
            t.right += got == (how == habit::echo ? words : std::to_string(words.size()));
            break;
        case habit::server_resets:
            (void)co_await receive_rest(socket);
            break;
        case habit::client_resets:
            (void)co_await has_sent(socket, words);
            reset(socket);
            break;
        case habit::server_is_deaf:
            (void)co_await has_sent(socket, for_ever);
            break;
        case habit::client_is_deaf:
            co_await wait_for_the_end(loop, t);
            break;
    }
}
detached client(io::context& loop, io::endpoint proxy, habit how, trial& t) {
    io::tcp::socket socket(loop);
    std::error_code ec;
    co_await socket.connect(proxy, use_await[ec]);
    if (!ec) co_await talk(loop, socket, how, t);
    t.count_off();
}

detached server(io::context& loop, io::tcp::socket socket, trial& t) {
    std::array<std::byte, 1> first{};
    std::error_code ec;
    const std::size_t n = co_await socket.receive(first, use_await[ec]);
    if (ec || n == 0) co_return;
    std::string heard;
    switch (static_cast<habit>(first[0])) {
        case habit::echo:
            co_await io::copy(socket, socket, use_await[ec]);
            socket.shutdown_send();
            break;
        case habit::answer:
            heard = co_await receive_rest(socket);
            (void)co_await has_sent(socket, std::to_string(heard.size()));
            break;
        case habit::server_resets:
            reset(socket);
            break;
        case habit::client_resets:
            (void)co_await receive_rest(socket);
            break;
        case habit::server_is_deaf:
            co_await wait_for_the_end(loop, t);
            break;
        case habit::client_is_deaf:
            (void)co_await has_sent(socket, for_ever);
            break;
    }
}
detached serve(io::context& loop, io::tcp::acceptor& acceptor, trial& t) {
    for (;;) {
        std::error_code ec;
        io::tcp::socket socket = co_await acceptor.accept(use_await[ec]);
        if (ec) co_return;
        server(loop, std::move(socket), t);
    }
}

// The two coroutines of the example.
task<> relay(io::context& loop, io::tcp::socket from, const std::string& target) {
    io::tcp::socket to = co_await ex::timeout(io::tcp::connect(loop, target), 1min);
    co_await io::copy_both(from, to, {.idle_max = 10min});
}
task<> proxy(io::context& loop, io::tcp::acceptor& acceptor, const std::string& target) {
    co_await ex::scoped([&](auto scope) -> task<> {
        for (;;) {
            ex::spawn(relay(loop, co_await acceptor.accept(), target), scope,
                      [](auto&&) noexcept {});
        }
    });
}

task<> try_proxy(io::context& loop, trial& t) {
    io::tcp::acceptor target(loop, io::loopback(0));
    io::tcp::acceptor front(loop, io::loopback(0));
    const std::string where = target.local().to_string();
    const scope_exit end([&]() noexcept {
        t.over = true;
        target.close();
    });
    serve(loop, target, t);
    for (int i = 0; i != clients_count; ++i) {
        t.answerable += habit_of(i) == habit::echo || habit_of(i) == habit::answer;
        client(loop, front.local(), habit_of(i), t);
    }
    if (t.stop_after == 0) t.terminate();
    co_await proxy(loop, front, where);
}

constexpr int clients_that_end = clients_count - clients_count / 20;

// Runs until the proxy was stopped and every client has left.
trial run_trial(io::run_options options, int stop_after) {
    trial t;
    t.world = options.simulation;
    t.stop_after = stop_after;
    options.stop_on = {SIGTERM};
    EXPECT_FALSE(io::run([&t](io::context& loop) { return try_proxy(loop, t); }, options));
    EXPECT_TRUE(t.over);
    EXPECT_EQ(t.ended, clients_count);
    return t;
}

class proxy_on : public testing::TestWithParam<io::backend> {};
INSTANTIATE_TEST_SUITE_P(rings, proxy_on, test::real_rings, test::ring_name);

TEST_P(proxy_on, loses_nothing_of_200_clients_and_leaves_nothing_when_it_is_stopped) {
    // what the process keeps forever is allocated here
    (void)run_trial({.backend = GetParam()}, 1);
    const int before = test::open_files();
    const trial whole = run_trial({.backend = GetParam()}, clients_that_end);
    EXPECT_EQ(whole.right, whole.answerable);
    EXPECT_GT(whole.right, 0);
    EXPECT_EQ(test::open_files(), before);
}

TEST_P(proxy_on, stopped_in_the_middle_leaves_nothing) {
    (void)run_trial({.backend = GetParam()}, 1);
    const int before = test::open_files();
    for (const int after : {0, 7, 50, 120}) (void)run_trial({.backend = GetParam()}, after);
    EXPECT_EQ(test::open_files(), before);
}

TEST(proxy_simulated, loses_nothing_and_leaves_nothing_whenever_it_is_stopped) {
    for (std::uint64_t seed = 1; seed != 7; ++seed) {
        io::simulation world(seed);
        const bool whole = seed % 2 == 0;
        const int after = static_cast<int>(seed * 29 % clients_that_end);
        const trial t = run_trial({.simulation = &world}, whole ? clients_that_end : after);
        if (whole) {
            EXPECT_EQ(t.right, t.answerable) << seed;
        }
        EXPECT_EQ(world.open_descriptors(), 0u) << seed;
    }
}

}  // namespace
