// Events that come in one turn: a completion ends operations whose results are already there.
#include <coppice/io/context.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/token/bind_env.hpp>

#include "detached.hpp"
#include "rings.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>

namespace {

using namespace coppice;
using test::bytes_of;
using test::detached;
using test::text_of;

// Connections with a receive pending on each. Then every peer sends, in one turn.
class batch_on : public testing::TestWithParam<io::backend> {
protected:
    // More connections than the ring receives from in a row, so that the batch has several such
    // rows.
    static constexpr std::size_t connections = 40;

    struct end {
        explicit end(io::context& loop) : near(loop), far(loop) {}
        io::tcp::socket near, far;
        inplace_stop_source stop;
        int ended = 0;
        std::error_code error;
        std::string text;
    };

    void SetUp() override {
        auto connect = [&](end& e) -> detached { co_await e.near.connect(acceptor.local()); };
        auto accept = [&](end& e) -> detached { e.far = co_await acceptor.accept(); };
        for (std::size_t i = 0; i != connections; ++i) {
            end& e = ends.emplace_back(loop);
            connect(e);
            accept(e);
            loop.run();
        }
    }
    // Calls `first` in the first completion, whichever connection that belongs to.
    template <class First>
    void receive_all(First first) {
        for (end& e : ends) {
            e.far.receive_pooled(bind_env(
                execution::prop(get_stop_token, e.stop.get_token()),
                [&e, &begun = begun, first](std::error_code ec, io::pooled_buffer got) mutable {
                    ++e.ended;
                    e.error = ec;
                    e.text = text_of(got.bytes());
                    if (!std::exchange(begun, true)) first(e);
                }));
        }
        auto send = [](end& e) -> detached { co_await e.near.send_all(bytes_of("x")); };
        for (end& e : ends) send(e);
        loop.run();
    }

    io::context loop{GetParam()};
    io::tcp::acceptor acceptor{loop, io::loopback(0)};
    std::deque<end> ends;
    bool begun = false;
};
INSTANTIATE_TEST_SUITE_P(rings, batch_on, test::all_rings, test::ring_name);

TEST_P(batch_on, every_receive_gets_what_was_sent) {
    receive_all([](end&) {});
    for (const end& e : ends) {
        EXPECT_EQ(e.ended, 1);
        EXPECT_EQ(e.text, "x");
    }
}

// The first completion closes the other sockets. Each of their receives ends once, and none has
// bytes that came after its socket was closed.
TEST_P(batch_on, the_first_completion_may_close_all_other_sockets) {
    const end* first = nullptr;
    receive_all([&](end& self) {
        first = &self;
        for (end& e : ends) {
            if (&e != &self) e.far.close();
        }
    });
    int closed = 0;
    for (const end& e : ends) {
        EXPECT_EQ(e.ended, 1);
        if (&e == first) continue;
        closed += e.error == std::errc::operation_canceled;
        EXPECT_TRUE(e.error == std::errc::operation_canceled || e.text == "x");
    }
    EXPECT_EQ(closed, static_cast<int>(connections) - 1);
}

// The first completion stops the other receives. A receive that had bytes by then keeps them. The
// bytes of the other ones stay in their sockets.
TEST_P(batch_on, the_first_completion_may_stop_all_other_receives) {
    receive_all([&](end& self) {
        for (end& e : ends) {
            if (&e != &self) e.stop.request_stop();
        }
    });
    for (end& e : ends) {
        EXPECT_EQ(e.ended, 1);
        if (e.text == "x") continue;
        EXPECT_EQ(e.error, std::errc::operation_canceled);
        e.far.receive_pooled([&e](std::error_code ec, io::pooled_buffer got) {
            EXPECT_FALSE(ec);
            e.text = text_of(got.bytes());
        });
    }
    loop.run();
    for (const end& e : ends) EXPECT_EQ(e.text, "x");
}

}  // namespace
