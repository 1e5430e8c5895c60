// io/tcp.hpp and io/authority.hpp: connects and listens by text.
#include <coppice/execution.hpp>
#include <coppice/io/authority.hpp>
#include <coppice/io/simulation.hpp>
#include <coppice/io/tcp.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/task.hpp>
#include <coppice/token/block.hpp>

#include "detached.hpp"
#include "outcome.hpp"
#include "rings.hpp"
#include "slow_names.hpp"

#include <gtest/gtest.h>

#include <netdb.h>
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::test::detached;
using coppice::test::outcome;
using coppice::test::outcome_receiver;
using coppice::test::slow_names;

template <class F>
std::string what_is_thrown(F f) {
    try {
        f();
    } catch (const std::system_error& error) {
        return error.what();
    }
    return "nothing";
}

TEST(authority, a_host_and_a_port_are_separated) {
    const std::pair<std::string_view, io::authority> good[] = {
        {"localhost:80", {"localhost", 80}},
        {"a.b-c.example:65535", {"a.b-c.example", 65535}},
        {"_http._tcp.example.:0", {"_http._tcp.example.", 0}},
        {"1and1.com:1", {"1and1.com", 1}},
        {"3com:1", {"3com", 1}},
        {"1.example:1", {"1.example", 1}},
        {"0xcafe.bar:1", {"0xcafe.bar", 1}},
        {"127.0.0.1:8080", {"127.0.0.1", 8080}},
        {"[::1]:80", {"::1", 80}},
        {"[::]:0", {"::", 0}},
        {"[2001:db8::ffff]:443", {"2001:db8::ffff", 443}},
        {"[::ffff:1.2.3.4]:1", {"::ffff:1.2.3.4", 1}},
        {"[fe80::1%eth0]:80", {"fe80::1%eth0", 80}},
        {"[fe80::1%2]:80", {"fe80::1%2", 80}},
    };
    for (const auto& [text, parts] : good) {
        const result<io::authority> parsed = io::authority::parse(text);
        ASSERT_TRUE(parsed) << text;
        EXPECT_EQ(parsed.value(), parts) << text;
        EXPECT_EQ(parsed.value().to_string(), text);
    }
}

// One text in each line.
constexpr std::string_view bad_authorities =
    "\n:\n80\n:80\nlocalhost\nlocalhost:\na:-1\na:+1\na: 1\na:1 \na:01\na:00\na:65536\n"
    "a:99999999999999999999\na:0x50\na:http\na:1:2\na::1\n::1:80\n::1\n[::1]\n[::1]:\n[::1]80\n"
    "[]:80\n[:80\n]:80\n[::1:80\n::1]:80\n[[::1]]:80\n[1.2.3.4]:80\n[localhost]:80\n[::1%]:80\n"
    "[::1%a%b]:80\n[::1%0123456789abcdef]:80\n[fe80::1%e/0]:80\n[::g]:80\n[%eth0]:80\n"
    "fe80::1%eth0:80\nlocalhost%eth0:80\n a:80\na :80\na b:80\na\t:80\na\r:80\nu@a:80\nu:p@a:80\n"
    "http://a:80\na:80/\na:80?\n.a:80\na..b:80\n.:80\n..:80\n-a:80\na-:80\na.-b:80\n*:80\n"
    "\xc3\xa4:80\na\x7f:80\nunix:/run/x\nunix:@x\n127.1:80\n1:80\n0x7f.1:80\n2130706433:80\n"
    "0x7f000001:80\n1.2.3.4.:80\n1.2.3.4.5:80\n256.1.1.1:80\n01.2.3.4:80\na.0x:80\na.1:80";

TEST(authority, what_is_not_exactly_a_host_and_a_port_is_refused) {
    using namespace std::string_literals;
    std::vector<std::string> bad{"a\n:80", "a\0b:80"s, "\0:80"s, "a:8\0"s,
                                 std::string(64, 'a') + ":80"};
    for (std::string_view left = bad_authorities; !left.empty();) {
        const std::size_t end = std::min(left.find('\n'), left.size());
        bad.emplace_back(left.substr(0, end));
        left.remove_prefix(std::min(end + 1, left.size()));
    }
    EXPECT_GT(bad.size(), 70u);
    for (const std::string& text : bad) {
        const result<io::authority> parsed = io::authority::parse(text);
        EXPECT_EQ(parsed.error(), std::errc::invalid_argument) << text;
    }
    std::string longest;
    while (longest.size() < 250) longest += "abcd.";
    EXPECT_TRUE(io::authority::parse(longest + "abc:1"));
    EXPECT_TRUE(io::authority::parse(longest + "abc.:1"));
    EXPECT_FALSE(io::authority::parse(longest + "abcd:1"));
}

// Puts each byte at each place of a good text. What parse() accepts is printed unchanged.
TEST(authority, text_with_any_byte_replaced_is_refused_or_printed_as_it_is) {
    for (const std::string_view good : {"host.a:80", "[::1%e]:80", "1.2.3.4:80"}) {
        for (std::size_t at = 0; at != good.size(); ++at) {
            for (int byte = 0; byte != 256; ++byte) {
                std::string text(good);
                text[at] = static_cast<char>(byte);
                const result<io::authority> parsed = io::authority::parse(text);
                if (parsed) {
                    EXPECT_EQ(parsed.value().to_string(), text);
                }
                const std::string begun = text.substr(0, at);
                const result<io::authority> cut = io::authority::parse(begun);
                if (cut) {
                    EXPECT_EQ(cut.value().to_string(), begun);
                }
            }
        }
    }
}

class tcp_on : public testing::TestWithParam<io::backend> {
protected:
    std::string port() const { return std::to_string(acceptor.local().port()); }
    slow_names names;
    io::context loop{GetParam()};
    io::tcp::acceptor acceptor = io::tcp::listen(loop, "127.0.0.1:0");
};
INSTANTIATE_TEST_SUITE_P(rings, tcp_on, test::real_rings, test::ring_name);

TEST_P(tcp_on, text_leads_to_a_connected_socket) {
    names.plant("here.example", {*io::endpoint::parse("127.0.0.1:0")});
    for (const char* host : {"127.0.0.1:", "here.example:", "here.example.:"}) {
        if (host == std::string_view("here.example.:")) {
            names.plant("here.example.", {*io::endpoint::parse("127.0.0.1:0")});
        }
        const io::tcp::socket client = io::tcp::connect(loop, host + port(), block);
        EXPECT_EQ(client.remote(), acceptor.local());
        const io::tcp::socket server = acceptor.accept(block);
        EXPECT_EQ(server.remote(), client.local());
    }
    bool connected = false;
    const std::string to = "127.0.0.1:" + port();
    io::tcp::connect(loop, to, {.attempt_delay = 1ms}, [&](std::error_code ec, io::tcp::socket s) {
        connected = !ec && s.is_open();
    });
    loop.run();
    EXPECT_TRUE(connected);
}

TEST_P(tcp_on, bad_text_is_an_error_that_shows_the_text) {
    const std::string why = ": Invalid argument";
    const auto connect = [&](std::string_view to) {
        return what_is_thrown([&] { (void)io::tcp::connect(loop, to, block); });
    };
    EXPECT_EQ(connect("localhost"), "connect localhost" + why);
    EXPECT_EQ(connect("a:65536"), "connect a:65536" + why);
    EXPECT_EQ(connect("a\r\nb\x1b[0m:1"), "connect a??b?[0m:1" + why);
    EXPECT_EQ(connect(std::string(100'000, 'a')), "connect " + std::string(300, 'a') + "..." + why);
    const auto listen = [&](std::string_view at) {
        return what_is_thrown([&] { (void)io::tcp::listen(loop, at); });
    };
    EXPECT_EQ(listen("localhost:80"), "listen localhost:80" + why);
    EXPECT_EQ(listen("unix:/run/x"), "listen unix:/run/x" + why);
    EXPECT_EQ(listen(":80"), "listen :80" + why);
    EXPECT_EQ(listen(""), what_is_thrown([&] { (void)io::tcp::listen(loop, ""); }));
    EXPECT_EQ(names.asked(), 0u);
}

TEST_P(tcp_on, errors_name_the_target) {
    const std::string taken = acceptor.local().to_string();
    EXPECT_EQ(what_is_thrown([&] { (void)io::tcp::listen(loop, taken); }),
              "bind " + taken + ": Address already in use");
    acceptor.close();
    const std::string why = ": Connection refused";
    const auto connect = [&] { (void)io::tcp::connect(loop, taken, block); };
    EXPECT_EQ(what_is_thrown(connect), "connect " + taken + why);
    const io::endpoint to = *io::endpoint::parse(taken);
    io::tcp::socket socket(loop);
    EXPECT_EQ(what_is_thrown([&] { socket.connect(to, block); }), "connect " + taken + why);
    EXPECT_EQ(what_is_thrown([&] { socket.connect("127.0.0.1", to.port(), block); }),
              "connect " + taken + why);
    const std::vector<io::endpoint> list(5, to);
    EXPECT_EQ(what_is_thrown([&] { socket.connect(list, {}, block); }),
              "connect " + taken + ", " + taken + ", " + taken + ", " + taken + ", ..." + why);
    EXPECT_EQ(what_is_thrown([&] { (void)io::tcp::connect(loop, "none.example:1", block); }),
              "connect none.example:1: " + std::string(::gai_strerror(EAI_NONAME)));
    EXPECT_EQ(what_is_thrown([&] { (void)io::resolver(loop).resolve("none.example", 1, block); }),
              "resolve none.example: " + std::string(::gai_strerror(EAI_NONAME)));
    std::string awaited, in_a_task;
    auto future = io::tcp::connect(loop, taken, use_future);
    auto wait = [&]() -> detached {
        try {
            (void)co_await io::tcp::connect(loop, taken);
        } catch (const std::system_error& error) {
            awaited = error.what();
        }
    };
    wait();
    ex::counting_scope scope;
    const auto work = [](io::context& l, const std::string& to_text, std::string& what) -> task<> {
        try {
            (void)co_await io::tcp::connect(l, to_text);
        } catch (const std::system_error& error) {
            what = error.what();
        }
        EXPECT_TRUE(l.is_current());
    };
    ex::spawn(ex::starts_on(loop.get_scheduler(), work(loop, taken, in_a_task)), scope.get_token(),
              [](auto&&) noexcept {});
    loop.run();
    this_thread::sync_wait(scope.join());
    EXPECT_EQ(in_a_task, "connect " + taken + why);
    EXPECT_EQ(what_is_thrown([&] { (void)future.get(); }), "connect " + taken + why);
    EXPECT_EQ(awaited, "connect " + taken + why);
}

TEST_P(tcp_on, a_stop_and_a_deadline_end_it_and_leave_nothing_open) {
    const int files = test::open_files();
    inplace_stop_source source;
    outcome stopped, late;
    auto a = ex::connect(io::tcp::connect(loop, "slow.example:1"),
                         outcome_receiver(stopped, source.get_token()));
    auto b = ex::connect(io::tcp::connect(loop, "slow.example:1"),
                         outcome_receiver(late, {}, ex::instant(loop.now() + 2ms)));
    ex::start(a);
    ex::start(b);
    (void)loop.run_for(1ms);
    source.request_stop();
    loop.run();
    EXPECT_EQ(stopped.stops, 1);
    EXPECT_EQ(late.stops, 1);
    EXPECT_EQ(test::open_files(), files);
}

TEST(tcp_simulated, names_of_the_world_are_connected_or_stopped_at_any_time) {
    int connected = 0, stopped = 0;
    for (std::uint64_t seed = 1; seed != 200; ++seed) {
        io::simulation world(seed);
        io::context loop(world);
        const io::tcp::acceptor acceptor = io::tcp::listen(loop, "[::1]:80");
        world.plant_host(
            "far", {*io::endpoint::parse("10.0.0.1:0"), *io::endpoint::parse("[::1]:0")}, 1ms);
        const std::size_t open = world.open_descriptors();
        inplace_stop_source source;
        outcome ended;
        auto op = ex::connect(io::tcp::connect(loop, "far:80"),
                              outcome_receiver(ended, source.get_token()));
        ex::start(op);
        io::timer timer(loop);
        timer.wait_for(std::chrono::microseconds(seed * 37 % 9'000),
                       [&](std::error_code) { source.request_stop(); });
        loop.run();
        EXPECT_EQ(ended.ends(), 1);
        EXPECT_EQ(ended.errors, 0);
        connected += ended.values;
        stopped += ended.stops;
        EXPECT_EQ(world.open_descriptors(), open);
    }
    EXPECT_GT(connected, 0);
    EXPECT_GT(stopped, 0);
}

}  // namespace
