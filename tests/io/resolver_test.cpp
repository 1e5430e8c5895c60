// io/resolver.hpp: literal addresses, names of this machine, failures, and stopping.
#include <coppice/io/resolver.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>

#include "detached.hpp"
#include "outcome.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>

#include <netdb.h>
#include <algorithm>
#include <string_view>

namespace {

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
using coppice::test::detached;
using coppice::test::outcome;
using coppice::test::outcome_receiver;

class resolver_on : public testing::TestWithParam<io::backend> {
protected:
    io::context loop{GetParam()};
    io::resolver resolver{loop};
};
INSTANTIATE_TEST_SUITE_P(rings, resolver_on, test::all_rings, test::ring_name);

TEST_P(resolver_on, a_literal_is_its_own_answer) {
    std::vector<io::endpoint> found;
    auto ask = [&]() -> detached { found = co_await resolver.resolve("::1", 80); };
    ask();
    loop.run();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].to_string(), "[::1]:80");
}

TEST_P(resolver_on, localhost_is_a_loopback_address) {
    std::vector<io::endpoint> found;
    auto ask = [&]() -> detached { found = co_await resolver.resolve("localhost", 81); };
    ask();
    loop.run();
    ASSERT_FALSE(found.empty());
    for (const io::endpoint& e : found) {
        EXPECT_TRUE(e.to_string() == "127.0.0.1:81" || e.to_string() == "[::1]:81");
    }
}

TEST_P(resolver_on, concurrent_look_ups_are_all_answered) {
    int answered = 0;
    auto ask = [&](std::uint16_t port) -> detached {
        for (const io::endpoint& e : co_await resolver.resolve("localhost", port)) {
            EXPECT_EQ(e.port(), port);
        }
        ++answered;
    };
    for (std::uint16_t port = 1; port != 21; ++port) ask(port);
    loop.run();
    EXPECT_EQ(answered, 20);
}

TEST_P(resolver_on, an_impossible_name_is_an_error_of_the_resolver) {
    std::error_code ec;
    auto ask = [&]() -> detached { co_await resolver.resolve("no such name", 80, use_await[ec]); };
    ask();
    loop.run();
    EXPECT_EQ(ec.category(), io::resolver_category());
    EXPECT_FALSE(ec.message().empty());
}

TEST_P(resolver_on, a_part_of_a_name_is_not_taken_for_the_name) {
    using namespace std::string_view_literals;
    io::tcp::socket socket(loop);
    for (const std::string_view name :
         {"127.0.0.1\0.example.com"sv, "localhost\0x"sv, "\0"sv, "localhost\0"sv}) {
        std::error_code resolved, connected;
        auto ask = [&]() -> detached {
            co_await resolver.resolve(name, 80, use_await[resolved]);
            co_await socket.connect(name, 80, use_await[connected]);
        };
        ask();
        loop.run();
        const std::error_code unknown(EAI_NONAME, io::resolver_category());
        EXPECT_EQ(resolved, unknown) << name;
        EXPECT_EQ(connected, unknown) << name;
    }
}

TEST_P(resolver_on, a_stop_a_deadline_and_the_end_do_not_wait_for_the_answer) {
    inplace_stop_source source;
    outcome stopped, late, ended;
    auto a = ex::connect(resolver.resolve("localhost", 1),
                         outcome_receiver(stopped, source.get_token()));
    auto b = ex::connect(resolver.resolve("localhost", 2),
                         outcome_receiver(late, {}, ex::instant(loop.now() - 1ms)));
    ex::start(a);
    ex::start(b);
    auto stop = [&]() -> detached {
        co_await loop.get_scheduler().schedule();
        source.request_stop();
    };
    stop();
    loop.run();
    EXPECT_EQ(stopped.ends(), 1);
    EXPECT_EQ(late.stops, 1);
    {
        io::context ending(GetParam());
        auto c = ex::connect(io::resolver(ending).resolve("localhost", 3), outcome_receiver(ended));
        ex::start(c);
        EXPECT_FALSE(ending.drain(-1ms) && ended.ends() == 0);
        EXPECT_EQ(ended.ends(), 1);
    }
}

}  // namespace
