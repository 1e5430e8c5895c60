// io/datagram.hpp on every ring.
#include <coppice/io/datagram.hpp>
#include <coppice/io/timer.hpp>

#include "detached.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace {

using namespace coppice;
using coppice::test::bytes_of;
using coppice::test::detached;
using coppice::test::text_of;

class datagram_on : public testing::TestWithParam<io::backend> {
protected:
    io::context loop{GetParam()};
    io::udp::socket near{loop, io::loopback(0)};
    io::udp::socket far{loop, io::loopback(0)};
};
INSTANTIATE_TEST_SUITE_P(rings, datagram_on, test::all_rings, test::ring_name);

TEST_P(datagram_on, datagrams_arrive_whole_and_name_their_sender) {
    int received = 0;
    auto echo = [&]() -> detached {
        std::array<std::byte, 2048> into;
        for (int i = 0; i != 50; ++i) {
            const auto [size, from] = co_await far.receive_from(into);
            EXPECT_EQ(from, near.local());
            EXPECT_EQ(co_await far.send_to(std::span(into).first(size), from), size);
        }
    };
    auto ask = [&]() -> detached {
        std::array<std::byte, 2048> into;
        for (int i = 0; i != 50; ++i) {
            const std::string text(static_cast<std::size_t>(i * 29), 'd');  // includes an empty one
            EXPECT_EQ(co_await near.send_to(bytes_of(text), far.local()), text.size());
            const io::received_datagram answer = co_await near.receive_from(into);
            EXPECT_EQ(answer.from, far.local());
            EXPECT_EQ(text_of(std::span(into).first(answer.size)), text);
            ++received;
        }
    };
    echo();
    ask();
    loop.run();
    EXPECT_EQ(received, 50);
}

TEST_P(datagram_on, a_datagram_that_does_not_fit_is_an_error_and_the_next_arrives) {
    std::error_code first, second, long_one;
    std::string got;
    auto ask = [&]() -> detached {
        co_await near.send_to(bytes_of("too long"), far.local());
        std::array<std::byte, 4> into;
        co_await far.receive_from(into, use_await[first]);
        co_await near.send_to(bytes_of("four"), far.local());
        const io::received_datagram d = co_await far.receive_from(into, use_await[second]);
        got = text_of(std::span(into).first(d.size));
        const std::vector<std::byte> huge(100'000);
        co_await near.send_to(huge, far.local(), use_await[long_one]);
    };
    ask();
    loop.run();
    EXPECT_EQ(first, std::errc::message_size);
    EXPECT_FALSE(second);
    EXPECT_EQ(got, "four");
    EXPECT_EQ(long_one, std::errc::message_size);
}

TEST_P(datagram_on, an_address_in_use_is_an_error) {
    EXPECT_THROW(io::udp::socket(loop, near.local()), std::system_error);
}

}  // namespace
