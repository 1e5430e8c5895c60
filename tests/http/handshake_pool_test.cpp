// Handshakes that a server computes on a pool: the loop goes on, and every end finds it in order.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/pool/thread_pool.hpp>

#include "secure_parts.hpp"
#include "toy_security.hpp"

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace std::chrono_literals;
using namespace coppice::test;

// Where computations wait until the test lets them go on.
class gate {
public:
    explicit gate(bool open = false) : is_open_(open) {}
    void pass() {
        std::unique_lock lock(mutex_);
        ++came_;
        changed_.notify_all();
        changed_.wait(lock, [this] { return is_open_; });
    }
    void open() {
        const std::lock_guard lock(mutex_);
        is_open_ = true;
        changed_.notify_all();
    }
    int came() {
        const std::lock_guard lock(mutex_);
        return came_;
    }
    // Returns when so many computations have come.
    void wait_for(int came) {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return came_ >= came; });
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    bool is_open_;
    int came_ = 0;
};

constexpr char filler = '\xee';  // begins no frame of a toy

// A toy whose handshake is slow once bytes have come. It notes a computation on a loop. It takes
// all of the client's hello first, and then writes so many rooms of filler.
class slow_engine final : public io::secure_engine {
public:
    slow_engine(gate& g, atomic<int>& on_loops, int rooms)
        : gate_(g), on_loops_(on_loops), rooms_(rooms) {}
    void input(std::span<const std::byte> bytes) noexcept override {
        hello_.assign(bytes.begin(), bytes.end());
        toy_.input(rooms_ == 0 ? bytes : hello_);
    }
    std::size_t unread() const noexcept override {
        return rooms_ != 0 && is_begun_ ? 0 : toy_.unread();
    }
    void end_input() noexcept override { toy_.end_input(); }
    void output(std::span<std::byte> room) noexcept override {
        room_ = room;
        filled_ = 0;
        toy_.output(room);
    }
    std::size_t written() const noexcept override { return filled_ + toy_.written(); }
    io::secure_progress handshake() noexcept override {
        if (toy_.unread() == 0) return toy_.handshake();
        if (io::context::current() != nullptr) on_loops_.fetch_add(1, relaxed);
        gate_.pass();
        if (rooms_ == 0) return toy_.handshake();
        if (is_begun_) --rooms_;
        is_begun_ = true;
        if (rooms_ == 0) return handshake();
        std::memset(room_.data(), filler, room_.size());
        filled_ = room_.size();
        return {.what = io::secure_step::needs_output};
    }
    io::secure_progress receive(std::span<std::byte> into) noexcept override {
        return toy_.receive(into);
    }
    io::secure_progress send(std::span<const std::byte> bytes) noexcept override {
        return toy_.send(bytes);
    }
    io::secure_progress end() noexcept override { return toy_.end(); }
    std::string_view protocol() const noexcept override { return toy_.protocol(); }

private:
    toy_engine toy_{"127.0.0.1", "http/1.1"};
    gate& gate_;
    atomic<int>& on_loops_;
    int rooms_;
    bool is_begun_ = false;
    std::vector<std::byte> hello_;
    std::span<std::byte> room_;
    std::size_t filled_ = 0;
};

class slow_server final : public io::server_security {
public:
    explicit slow_server(gate& g) : gate_(g) {}
    std::unique_ptr<io::secure_engine> accept() const override {
        return std::make_unique<slow_engine>(gate_, on_loops_, rooms.load(relaxed));
    }
    int on_loops() const { return on_loops_.load(relaxed); }
    atomic<int> rooms{0};

private:
    gate& gate_;
    mutable atomic<int> on_loops_{0};
};

// A server with an encrypted port, and one in the clear.
struct served : testing::TestWithParam<way> {
    void begin(bool open = false, const http::timeouts& times = {},
               std::size_t connections_max = http::server_options().connections_max) {
        server.reset();
        slow.emplace(open);
        security = std::make_shared<slow_server>(*slow);
        http::server_options o = options_of(GetParam());
        o.security = security;
        o.more_listeners.push_back({io::loopback(0), nullptr});
        o.handshake_pool = &pool;
        o.timeouts = times;
        o.connections_max = connections_max;
        server.emplace(std::move(o), routes_of_all_kinds());
    }
    void TearDown() override {
        if (slow) slow->open();
        server.reset();
        if (security) EXPECT_EQ(security->on_loops(), 0);
    }
    bool clear_port_answers() {
        client other((*server)->port(1));
        return other.send("GET /plain HTTP/1.1\r\nHost: a\r\n\r\n") &&
               has_status(other.receive(), 200);
    }
    // Returns when no connection is open.
    void wait_until_empty() {
        while ((*server)->statistics().open != 0) std::this_thread::yield();
    }
    std::string hello() const { return toy_bytes_of_client("127.0.0.1", ask); }

    const std::string ask = "GET /plain HTTP/1.1\r\nHost: a\r\n\r\n";
    thread_pool pool{2};
    std::optional<gate> slow;
    std::shared_ptr<slow_server> security;
    std::optional<running_server> server;
};

using handshakes_on_a_pool = served;
INSTANTIATE_TEST_SUITE_P(ways, handshakes_on_a_pool, testing::ValuesIn(every_way), name_of_way);

// As with a long chain of certificates, which is written before the signature is computed.
TEST_P(handshakes_on_a_pool, a_flight_that_does_not_fit_into_the_room_is_computed_there_too) {
    begin(true);
    security->rooms.store(3, relaxed);
    client c((*server)->port(0));
    ASSERT_TRUE(c.send(hello()));
    const std::string all = c.receive_all();
    const std::size_t begin = all.find_first_not_of(filler);
    ASSERT_NE(begin, all.npos);
    EXPECT_GE(begin, 3 * io::secure_engine::room_min);
    bool ended = false;
    EXPECT_TRUE(has_status(toy_text("127.0.0.1", all.substr(begin), ended), 200));
    EXPECT_TRUE(ended);
}

TEST_P(handshakes_on_a_pool, the_loop_answers_others_meanwhile) {
    begin();
    client first((*server)->port(0));
    ASSERT_TRUE(first.send(hello()));
    slow->wait_for(1);
    EXPECT_TRUE(clear_port_answers());
    slow->open();
    bool ended = false;
    EXPECT_TRUE(has_status(toy_text("127.0.0.1", first.receive_all(), ended), 200));
    EXPECT_TRUE(ended);
}

TEST_P(handshakes_on_a_pool, the_bytes_may_come_one_by_one) {
    begin(true);
    client peer((*server)->port(0));
    for (const char c : hello()) ASSERT_TRUE(peer.send({&c, 1}));
    bool ended = false;
    EXPECT_TRUE(has_status(toy_text("127.0.0.1", peer.receive_all(), ended), 200));
}

TEST_P(handshakes_on_a_pool, a_client_may_go_in_the_middle) {
    begin();
    client silent((*server)->port(0)), ending((*server)->port(0));
    ASSERT_TRUE(silent.send(hello().substr(0, 50)));
    slow->wait_for(1);
    ASSERT_TRUE(ending.send(hello()));
    slow->wait_for(2);
    silent.reset();
    ending.finish_sending();
    EXPECT_TRUE(clear_port_answers());
    slow->open();
    bool ended = false;
    EXPECT_TRUE(has_status(toy_text("127.0.0.1", ending.receive_all(), ended), 200));
    wait_until_empty();
    EXPECT_TRUE(clear_port_answers());
}

TEST_P(handshakes_on_a_pool, a_computation_outlasts_the_time_of_its_connection) {
    http::timeouts times;
    std::optional<client> late;
    // The time may pass before the bytes have come.
    for (times.header = 20ms; !slow || slow->came() == 0; times.header *= 2) {
        begin(false, times);
        late.emplace((*server)->port(0));
        (void)late->send(hello());
        while (slow->came() == 0 && (*server)->statistics().timed_out == 0) {
            std::this_thread::yield();
        }
    }
    EXPECT_EQ(late->receive_all(), "");
    EXPECT_EQ((*server)->statistics().timed_out, 1u);
    slow->open();
    wait_until_empty();
    EXPECT_EQ((*server)->statistics().requests, 0u);
}

TEST_P(handshakes_on_a_pool, what_waits_for_a_full_server_is_bounded_and_not_computed) {
    begin(false, {}, 4);
    std::vector<std::unique_ptr<client>> peers;
    for (int i = 0; i != 40; ++i) {
        peers.push_back(std::make_unique<client>((*server)->port(0)));
        (void)peers.back()->send(hello());
    }
    const auto seen = [&] {
        const http::server_statistics s = (*server)->statistics();
        return s.accepted + s.refused;
    };
    while (seen() < peers.size()) std::this_thread::yield();
    EXPECT_LE((*server)->statistics().open, 8u);
    peers.clear();
    slow->open();
    wait_until_empty();
    EXPECT_LE(slow->came(), 8);
}

TEST_P(handshakes_on_a_pool, a_drain_waits_for_the_computation) {
    for (const auto time : {0s, 10s}) {
        begin();
        client peer((*server)->port(0));
        ASSERT_TRUE(peer.send(hello()));
        slow->wait_for(1);
        (*server)->drain(time);
        slow->open();
        (void)peer.receive_all();
        server.reset();
    }
}

TEST_P(handshakes_on_a_pool, what_is_not_a_handshake_is_refused) {
    begin(true);
    for (const std::string_view bad : {"GET / HTTP/1.1\r\n\r\n", "hhhhhhhhhhhhhhhhhhhhhhhhhhh"}) {
        client peer((*server)->port(0));
        ASSERT_TRUE(peer.send(bad));
        peer.finish_sending();
        (void)peer.receive_all();
        wait_until_empty();
    }
    EXPECT_EQ((*server)->statistics().requests, 0u);
}

TEST_P(handshakes_on_a_pool, tls_serves_every_kind_of_handler) {
    http::server_options o = secure(options_of(GetParam()));
    o.handshake_pool = &pool;
    running_server secure_one(std::move(o), routes_of_all_kinds());
    network net(GetParam().backend);
    net.run([](io::context& loop, std::string base) -> task<> {
        for (int i = 0; i != 3; ++i) {
            http::client client(loop, secure_client());
            co_await ask_for_all_kinds(client, base);
        }
        http::client_options o;
        o.security = tls::client_context();  // trusts others
        http::client client(loop, o);
        EXPECT_EQ(co_await error_of(client, asks(base + "/plain")), tls::errc::unknown_issuer);
    }(net.loop, secure_url(*secure_one, "")));
}

TEST(a_handshake_pool, has_no_place_in_a_simulation) {
    io::simulation world(1);
    thread_pool pool(1);
    http::server_options o;
    o.simulation = &world;
    o.model = http::model::single;
    o.handshake_pool = &pool;
    EXPECT_THROW(http::server(o, http::router()), std::invalid_argument);
}

}  // namespace
