// Many WebSockets at once: each message is checked at both ends, however it is cut and read.
#include <coppice/base/internal/atomic.hpp>
#include <coppice/exec/env.hpp>
#include <coppice/exec/stopped_as.hpp>
#include <coppice/exec/write_env.hpp>
#include <coppice/http/websocket.hpp>

#include "running_server.hpp"
#include "websocket_frames.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <poll.h>
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using namespace std::chrono_literals;
using http::request;
using http::websocket;

constexpr unsigned connections = 64;
constexpr unsigned lives = 2;  // of each connection: it ends, and another one comes

std::uint64_t mixed(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

std::size_t size_of_message(std::uint64_t which) {
    constexpr std::size_t edges[] = {125, 126, 4075, 4080, 4096, 8191, 8193, 16384, 65535, 65536};
    const std::uint64_t r = mixed(which);
    const std::uint64_t more = r >> 8;
    switch (r % 8) {
        case 0:
            return more % 70'001;
        case 1:
            return edges[more % std::size(edges)];
        case 2:
        case 3:
            return 3000 + more % 7000;
        default:
            return more % 200;
    }
}

// Returns the message `number` of a connection. Different messages differ in every 8 bytes.
std::string message_of(unsigned connection, unsigned number) {
    const std::uint64_t which = std::uint64_t{connection} << 32 | number;
    std::string out(size_of_message(which), '\0');
    for (std::size_t at = 0; at < out.size(); at += 8) {
        const std::uint64_t word = mixed(which + (std::uint64_t{at} << 20));
        std::memcpy(out.data() + at, &word, std::min<std::size_t>(8, out.size() - at));
    }
    return out;
}

// Receives until the message is there. Deadlines pass while parts of it come, and lose nothing;
// timeout() would drop a message that comes with its end.
task<std::optional<http::websocket_message>> receive_in_turns(websocket& socket) {
    while (!socket.stop_token().stop_requested()) {
        const execution::instant soon(socket.loop().now() + 300us);
        auto got = co_await execution::stopped_as_optional(
            execution::write_env(socket.receive(), execution::prop(execution::get_deadline, soon)));
        if (got) co_return *got;
    }
    co_return std::nullopt;
}

// Echoes in one of four ways, and counts what is not what its client has sent.
task<> check_and_echo(websocket& socket, unsigned connection, atomic<int>& wrong) {
    for (unsigned number = 0;; ++number) {
        std::optional<http::websocket_message> message;
        if (connection % 4 == 0) {
            message = co_await receive_in_turns(socket);
        } else {
            message = co_await socket.receive();
        }
        if (!message) co_return;
        // The view stays valid while more is read ahead.
        if (connection % 4 == 1) co_await socket.loop().get_scheduler().schedule();
        if (message->data != message_of(connection, number)) wrong.fetch_add(1, relaxed);
        const std::string copy(connection % 4 == 2 ? message->data : "");
        if (connection % 4 == 2) message->data = copy;
        if (co_await socket.send(*message)) co_return;
    }
}

class storm_client {
public:
    storm_client(std::uint16_t port, unsigned connection)
        : connection_(connection), random_(connection), socket_(port) {
        slow_ = random_() % 3 == 0;
        EXPECT_TRUE(socket_.send(upgrade_request("/" + std::to_string(connection))));
        EXPECT_TRUE(has_status(socket_.receive(true), 101));
        ::fcntl(socket_.fd(), F_SETFL, O_NONBLOCK);
        total_ = 1 + random_() % 24;
        breaks_off_ = random_() % 4 == 0;
        break_at_ = random_() % total_;
    }
    int fd() const { return socket_.fd(); }
    bool wants_to_send() const { return is_sending() || may_prepare(); }

    // Does what is possible without waiting. Returns false when this life is over.
    bool step() {
        if (!is_sending() && may_prepare()) prepare();
        if (is_sending() && !send_piece()) return false;
        if (slow_ && random_() % 4 != 0) return true;
        if (!receive_pieces()) return false;
        if (breaks_off_ && answered_ >= break_at_) {
            if (random_() % 2 == 0) socket_.reset();
            return false;
        }
        return answered_ != total_ || !is_closed_;
    }

private:
    unsigned in_flight() const { return next_ - answered_; }
    bool is_sending() const { return sent_ != out_.size(); }
    bool may_prepare() const { return next_ != total_ && in_flight() < 16; }

    // Makes the frames of some messages, and of pings between them.
    void prepare() {
        out_.clear();
        sent_ = 0;
        const auto room = std::min<std::uint64_t>(16 - in_flight(), total_ - next_);
        for (std::uint64_t count = 1 + random_() % room; count != 0; --count) {
            append(message_of(connection_, next_++));
        }
        if (next_ == total_ && !breaks_off_) out_ += close_frame(1000);
        // A long output in short pieces would take too long.
        constexpr std::size_t pieces[] = {1, 3, 17, 1000, 5000, 200'000};
        piece_ = std::max(pieces[random_() % std::size(pieces)], out_.size() / 100);
    }
    void append(std::string_view message) {
        const bool is_cut = random_() % 4 == 0;
        const std::size_t first = is_cut ? random_() % (message.size() + 1) : message.size();
        if (random_() % 8 == 0) {
            out_ += frame_of({0x89, std::to_string(++pings_)});
        }
        out_ += masked(is_cut ? 0x02 : 0x82, message.substr(0, first));
        if (!is_cut) return;
        if (random_() % 2 == 0) out_ += frame_of({0x89, std::to_string(++pings_)});
        out_ += masked(0x80, message.substr(first));
    }
    // As frame_of() does, with a key of its own.
    std::string masked(unsigned first, std::string_view payload) {
        std::string frame = frame_of({first, payload});
        char key[4];
        const auto word = static_cast<std::uint32_t>(random_());
        std::memcpy(key, &word, 4);
        char* const begin = frame.data() + frame.size() - payload.size();
        for (std::size_t i = 0; i != payload.size(); ++i) {
            begin[i] = static_cast<char>(payload[i] ^ key[i % 4]);
        }
        std::memcpy(begin - 4, key, 4);
        return frame;
    }

    bool send_piece() {
        const std::size_t size = std::min(out_.size() - sent_, 1 + random_() % piece_);
        const ssize_t n = ::send(fd(), out_.data() + sent_, size, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        EXPECT_GT(n, 0) << std::strerror(errno);
        if (n > 0) sent_ += static_cast<std::size_t>(n);
        return n > 0;
    }
    bool receive_pieces() {
        std::vector<char> buffer(slow_ ? 1 + random_() % 2000 : 65536);
        const ssize_t n = ::recv(fd(), buffer.data(), buffer.size(), 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return true;
        if (n <= 0) {
            EXPECT_TRUE(is_closed_) << connection_ << ": " << (n < 0 ? std::strerror(errno) : "");
            return false;
        }
        in_.append(buffer.data(), static_cast<std::size_t>(n));
        while (take_frame()) {
        }
        return !testing::Test::HasFailure();
    }
    // Checks the next frame. Returns false if it is not whole.
    bool take_frame() {
        const auto byte = [this](std::size_t i) {
            return static_cast<std::uint64_t>(static_cast<unsigned char>(in_[i]));
        };
        if (in_.size() < 2) return false;
        const std::size_t bytes = byte(1) < 126 ? 0 : byte(1) == 126 ? 2 : 8;
        if (in_.size() < 2 + bytes) return false;
        std::uint64_t size = byte(1);
        if (bytes != 0) size = 0;
        for (std::size_t i = 0; i != bytes; ++i) size = size << 8 | byte(2 + i);
        if (in_.size() - 2 - bytes < size) return false;
        check(byte(0), std::string_view(in_).substr(2 + bytes, size));
        in_.erase(0, 2 + bytes + size);
        return !testing::Test::HasFailure();
    }
    void check(std::uint64_t first, std::string_view payload) {
        EXPECT_FALSE(is_closed_);
        if (first == 0x8a) {  // a client that reads slowly gets only the last pongs
            const unsigned number = static_cast<unsigned>(std::stoul(std::string(payload)));
            EXPECT_GT(number, ponged_);
            EXPECT_LE(number, pings_);
            ponged_ = number;
        } else if (first == 0x88) {
            EXPECT_EQ(payload, close_payload(1000));
            EXPECT_EQ(answered_, total_);
            is_closed_ = true;
        } else {
            EXPECT_EQ(first, 0x82u);
            EXPECT_TRUE(payload == message_of(connection_, answered_))
                << connection_ << ", message " << answered_ << ", " << payload.size() << " bytes";
            ++answered_;
        }
    }

    const unsigned connection_;
    std::mt19937_64 random_;
    client socket_;
    bool slow_ = false;
    bool breaks_off_ = false;  // ends in the middle of a conversation
    unsigned total_ = 0;
    unsigned break_at_ = 0;
    unsigned next_ = 0;      // the message to prepare
    unsigned answered_ = 0;  // messages that have come back
    unsigned pings_ = 0;
    unsigned ponged_ = 0;  // the last ping that was answered
    bool is_closed_ = false;
    std::string out_;
    std::size_t sent_ = 0;
    std::size_t piece_ = 1;
    std::string in_;
};

class websocket_storm : public testing::TestWithParam<way> {};
INSTANTIATE_TEST_SUITE_P(ways, websocket_storm, testing::ValuesIn(every_way), name_of_way);

TEST_P(websocket_storm, every_message_comes_back_on_its_connection_in_order) {
    atomic<int> wrong{0};
    http::websocket_options options;
    options.ping_interval = duration::max();
    const auto wide = std::make_shared<const http::websocket_options>(options);
    options.unsent_bytes_max = 1000;
    const auto narrow = std::make_shared<const http::websocket_options>(options);
    http::router r;
    r.get("/{connection:int}", [&](request& q) {
        const auto connection = *q.parameter<unsigned>("connection");
        return http::accept_websocket(
            q,
            [&wrong, connection](websocket& socket) {
                return check_and_echo(socket, connection, wrong);
            },
            connection % 3 == 0 ? narrow : wide);
    });
    running_server server(options_of(GetParam()), std::move(r));
    std::vector<std::unique_ptr<storm_client>> all(connections);
    std::vector<pollfd> files(connections);
    unsigned begun = 0;
    for (auto& c : all) c = std::make_unique<storm_client>(server.port(), begun++);
    for (unsigned left = connections; left != 0 && !HasFailure();) {
        for (unsigned i = 0; i != connections; ++i) {
            files[i] = {all[i] == nullptr ? -1 : all[i]->fd(), POLLIN, 0};
            if (all[i] != nullptr && all[i]->wants_to_send()) files[i].events |= POLLOUT;
        }
        ASSERT_GT(::poll(files.data(), files.size(), 20'000), 0) << "the server is silent";
        for (unsigned i = 0; i != connections && !HasFailure(); ++i) {
            if (files[i].revents == 0 || all[i]->step()) continue;
            all[i].reset();
            if (begun == connections * lives) {
                --left;
            } else {
                all[i] = std::make_unique<storm_client>(server.port(), begun++);
            }
        }
    }
    EXPECT_EQ(wrong.load(relaxed), 0);
    EXPECT_EQ(server->statistics().exceptions, 0u);
}

}  // namespace
