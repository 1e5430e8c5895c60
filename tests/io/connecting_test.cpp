// io/internal/connecting.hpp: connects to a name with several addresses, some of which do not
// answer.
#include <coppice/io/simulation.hpp>
#include <coppice/io/socket.hpp>
#include <coppice/io/timer.hpp>
#include <coppice/token/block.hpp>

#include "detached.hpp"
#include "outcome.hpp"
#include "rings.hpp"
#include "slow_names.hpp"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netdb.h>
#include <algorithm>
#include <optional>
#include <string>
#include <thread>
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

io::endpoint at(const char* text) {
    return *io::endpoint::parse(text);
}

TEST(in_turns, the_families_alternate_beginning_with_the_first) {
    const std::vector<io::endpoint> found{at("[::1]:1"),   at("[::2]:1"),   at("[::3]:1"),
                                          at("1.1.1.1:1"), at("2.2.2.2:1"), at("[::4]:1")};
    std::string order;
    for (const io::endpoint& e : io::internal::in_turns(found)) order += e.to_string() + ' ';
    EXPECT_EQ(order, "[::1]:1 1.1.1.1:1 [::2]:1 2.2.2.2:1 [::3]:1 [::4]:1 ");
    const std::vector<io::endpoint> one_family{at("1.1.1.1:1"), at("2.2.2.2:1")};
    EXPECT_EQ(io::internal::in_turns(one_family).back().to_string(), "2.2.2.2:1");
    EXPECT_TRUE(io::internal::in_turns({}).empty());
}

TEST(in_turns, at_most_sixteen_addresses_are_tried_and_both_families_are_among_them) {
    std::vector<io::endpoint> many(100, at("[::1]:1"));
    many.push_back(at("1.1.1.1:1"));
    const std::vector<io::endpoint> tried = io::internal::in_turns(many);
    EXPECT_EQ(tried.size(), 16u);
    EXPECT_TRUE(tried[1].is_v4());
}

// A socket that belongs to the test, not to a loop.
class plain_socket : immovable {
public:
    explicit plain_socket(bool v6 = false)
        : fd_(::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), v6_(v6) {}
    ~plain_socket() {
        if (fd_ >= 0) ::close(fd_);
    }
    // Returns an address whose port is this socket's. It refuses connections unless the socket
    // listens. Without IPv6 on this machine, an IPv6 address fails as well.
    io::endpoint bound() const {
        const io::endpoint any = at(v6_ ? "[::1]:0" : "127.0.0.1:0");
        if (::bind(fd_, any.data(), any.size()) != 0) return at("[::1]:1");
        return local();
    }
    io::endpoint local() const {
        sockaddr_storage address{};
        socklen_t size = sizeof address;
        ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
        return io::endpoint::from(reinterpret_cast<const sockaddr*>(&address), size);
    }
    int fd() const { return fd_; }

private:
    int fd_;
    bool v6_;
};

// A listener whose queue of connections is full: further connections get no answer.
class black_hole : immovable {
public:
    black_hole() : to_(listener_.bound()) {
        ::listen(listener_.fd(), 0);
        ::connect(only_.fd(), to_.data(), to_.size());
        pollfd queued{listener_.fd(), POLLIN, 0};
        ::poll(&queued, 1, -1);
    }
    const io::endpoint& address() const { return to_; }

private:
    plain_socket listener_, only_;
    io::endpoint to_;
};

class connecting_on : public testing::TestWithParam<io::backend> {
protected:
    io::endpoint listening() { return acceptor.local(); }
    // Connects by the name "host", and runs the loop until nothing is pending.
    std::error_code connect(duration delay) {
        std::error_code ec;
        auto go = [&]() -> detached {
            co_await client.connect("host", 1, {.attempt_delay = delay}, use_await[ec]);
        };
        go();
        loop.run();
        return ec;
    }
    slow_names names;
    io::context loop{GetParam()};
    io::tcp::acceptor acceptor{loop, io::loopback(0)};
    io::tcp::socket client{loop};
};
INSTANTIATE_TEST_SUITE_P(rings, connecting_on, test::real_rings, test::ring_name);

TEST_P(connecting_on, after_a_refusal_the_next_address_is_tried_at_once) {
    const plain_socket v6(true), v4;
    names.plant("host", {v6.bound(), v4.bound(), listening()});
    EXPECT_FALSE(connect(duration::max()));
    EXPECT_EQ(client.remote(), listening());
}

TEST_P(connecting_on, an_address_that_does_not_answer_is_skipped) {
    const black_hole silent, silent_too;
    names.plant("host", {silent.address(), silent_too.address(), listening()});
    const int files = test::open_files();
    EXPECT_FALSE(connect(1ms));
    EXPECT_EQ(client.remote(), listening());
    EXPECT_EQ(test::open_files(), files + 1);  // the other attempts were closed
    io::tcp::socket server = acceptor.accept(block);
    EXPECT_EQ(server.remote(), client.local());
}

TEST_P(connecting_on, without_a_delay_all_are_tried_at_once) {
    const black_hole silent;
    names.plant("host", {silent.address(), silent.address(), listening()});
    EXPECT_FALSE(connect(0ms));
    EXPECT_EQ(client.remote(), listening());
    EXPECT_FALSE(connect(duration::min()));
    EXPECT_EQ(client.remote(), listening());
}

TEST_P(connecting_on, if_all_attempts_fail_the_first_telling_error_is_reported) {
    const plain_socket a, b;
    names.plant("host", {a.bound(), b.bound()});
    const int files = test::open_files();
    EXPECT_EQ(connect(250ms), std::errc::connection_refused);
    EXPECT_EQ(test::open_files(), files);
    EXPECT_FALSE(client.is_open());
    names.plant("host", {});
    EXPECT_EQ(connect(250ms), std::error_code(EAI_NONAME, io::resolver_category()));
}

// The kernel refuses a TCP connection to a broadcast address, and sends nothing.
TEST_P(connecting_on, an_error_of_this_machine_is_reported_only_if_there_is_no_other) {
    const plain_socket refusing;
    names.plant("host", {at("255.255.255.255:1"), refusing.bound(), at("255.255.255.255:2")});
    EXPECT_EQ(connect(250ms), std::errc::connection_refused);
    names.plant("host", {at("255.255.255.255:1")});
    EXPECT_EQ(connect(250ms), std::errc::network_unreachable);
}

TEST_P(connecting_on, addresses_as_text_and_lists_of_addresses_are_connected_too) {
    const plain_socket refusing;
    std::error_code ec;
    client.connect("127.0.0.1", listening().port(), [&](std::error_code e) { ec = e; });
    loop.run();
    EXPECT_FALSE(ec);
    EXPECT_EQ(client.remote(), listening());
    const std::vector<io::endpoint> list{refusing.bound(), listening()};
    client.connect(list, {}, block);
    EXPECT_EQ(client.remote(), listening());
    client.connect(std::vector<io::endpoint>(), {}, block[ec]);
    EXPECT_EQ(ec.category(), io::resolver_category());
    EXPECT_FALSE(client.is_open());
}

TEST_P(connecting_on, a_stop_and_a_deadline_end_the_look_up_and_all_attempts) {
    const black_hole silent;
    names.plant("host", {silent.address(), silent.address()});
    const int files = test::open_files();
    for (const char* name : {"host", "slow"}) {
        inplace_stop_source source;
        outcome stopped, late;
        io::tcp::socket other(loop);
        auto a = ex::connect(client.connect(name, 1, {.attempt_delay = 1ms}),
                             outcome_receiver(stopped, source.get_token()));
        auto b = ex::connect(other.connect(name, 1, {.attempt_delay = 1ms}),
                             outcome_receiver(late, {}, ex::instant(loop.now() + 5ms)));
        ex::start(a);
        ex::start(b);
        (void)loop.run_for(2ms);
        std::thread stopper([&] { source.request_stop(); });
        loop.run();
        stopper.join();
        EXPECT_EQ(stopped.stops, 1) << name;
        EXPECT_EQ(late.stops, 1) << name;
        EXPECT_FALSE(client.is_open());
    }
    EXPECT_EQ(test::open_files(), files);
}

TEST_P(connecting_on, the_end_of_the_context_cancels_it) {
    const black_hole silent;
    names.plant("host", {silent.address(), silent.address(), silent.address()});
    const int files = test::open_files();
    for (const char* name : {"host", "slow"}) {
        for (const duration run : {0ms, 3ms}) {
            outcome ended;
            std::optional<io::context> ending(std::in_place, GetParam());
            io::tcp::socket socket(*ending);
            auto a = ex::connect(socket.connect(name, 1, {.attempt_delay = 1ms}),
                                 outcome_receiver(ended));
            ex::start(a);
            (void)ending->run_for(run);
            EXPECT_FALSE(ending->drain(0ms));
            EXPECT_EQ(ended.error, std::errc::operation_canceled);
        }
    }
    EXPECT_EQ(test::open_files(), files);
}

TEST_P(connecting_on, many_names_race_at_once) {
    const black_hole silent;
    const plain_socket refusing;
    names.plant("host", {silent.address(), refusing.bound(), listening()});
    constexpr int count = 30;
    int connected = 0;
    auto go = [&]() -> detached {
        io::tcp::socket socket(loop);
        co_await socket.connect("host", 1, {.attempt_delay = 1ms});
        EXPECT_EQ(socket.remote(), listening());
        ++connected;
    };
    for (int i = 0; i != count; ++i) go();
    loop.run();
    EXPECT_EQ(connected, count);
}

// Connects to a name with four addresses, two of which answer. Returns the winner.
std::string race(std::uint64_t seed, duration delay, bool stop) {
    io::simulation world(seed);
    io::context loop(world);
    io::tcp::acceptor first(loop, at("127.0.0.1:80")), second(loop, at("[::1]:80"));
    world.plant_host("far", {at("10.0.0.1:0"), at("[::1]:0"), at("10.0.0.2:0"), at("127.0.0.1:0")},
                     3ms);
    io::tcp::socket client(loop);
    inplace_stop_source source;
    outcome ended;
    auto op = ex::connect(client.connect("far", 80, {.attempt_delay = delay}),
                          outcome_receiver(ended, source.get_token()));
    ex::start(op);
    io::timer timer(loop);
    if (stop) {
        timer.wait_for(duration(1ms) + duration(std::chrono::microseconds(seed * 37 % 5000)),
                       [&](std::error_code) { source.request_stop(); });
    }
    loop.run();
    EXPECT_EQ(ended.ends(), 1);
    EXPECT_EQ(client.is_open(), ended.values == 1);
    if (!stop) {
        EXPECT_EQ(ended.values, 1);
    }
    return client.is_open() ? client.remote().to_string() : std::string();
}

TEST(connecting_simulated, each_seed_has_one_winner_and_always_the_same_one) {
    int firsts = 0, seconds = 0;
    for (std::uint64_t seed = 1; seed != 200; ++seed) {
        const duration delay = std::chrono::microseconds(seed % 4 * 20);
        const std::string seen = race(seed, delay, false);
        EXPECT_TRUE(seen == "127.0.0.1:80" || seen == "[::1]:80") << seed;
        EXPECT_EQ(race(seed, delay, false), seen) << seed;
        (seen == "[::1]:80" ? seconds : firsts) += 1;
        (void)race(seed, delay, true);
    }
    EXPECT_GT(firsts, 0);
    EXPECT_GT(seconds, 0);
}

}  // namespace
