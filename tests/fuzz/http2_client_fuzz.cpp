// HTTP/2 of the client: whatever a server sends, and in whatever pieces, the engine tells the same,
// and every request of http::client ends, with a whole answer or an error.
#include <coppice/execution.hpp>
#include <coppice/http.hpp>
#include <coppice/http2.hpp>
#include <coppice/io.hpp>
#include <coppice/io/simulation.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "../http2/frames.hpp"
#include "frame_mutator.hpp"
#include "hostile_server.hpp"
#include "verify.hpp"

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;

// ---- The engine alone --------------------------------------------------------------------------

// A request that notes what it is told.
class noted_request final : public http::requesting_stream {
public:
    bool input(std::string_view bytes) noexcept override {
        verify(is_open_ && is_answered_ && !has_ended_, "a body in the wrong place");
        text_ += bytes;
        come_ += bytes.size();
        return come_ < 1'000;
    }
    bool end_input(std::string_view trailers) noexcept override {
        verify(is_open_ && is_answered_ && !std::exchange(has_ended_, true), "a second end");
        text_.append("|end ").append(trailers);
        return true;
    }
    bool head(int status, std::string_view lines, bool ended) noexcept override {
        verify(is_open_ && !std::exchange(is_answered_, true), "a second head");
        has_ended_ = ended;
        text_.append(std::to_string(status)).append(ended ? " ended " : " ").append(lines);
        return true;
    }
    void lost(http::answer_loss why) noexcept override {
        verify(is_open_, "lost after its end");
        loss_ = std::to_string(static_cast<int>(why));
    }
    void closed(bool reset) noexcept override {
        verify(std::exchange(is_open_, false), "closed twice");
        text_ += reset ? "|reset" : "|closed";
    }
    taken take(std::span<std::byte> room) noexcept override {
        const std::size_t n = std::min(room.size(), left_.size());
        std::copy_n(left_.data(), n, reinterpret_cast<char*>(room.data()));
        left_.remove_prefix(n);
        return {n, left_.empty()};
    }
    std::string_view trailers() noexcept override { return "x-sum: 1\r\n"; }

    void begin(http::client_multiplexer& engine, std::string_view head, bool ended) {
        number_ = engine.request(*this, head, ended);
        verify(number_ > 0, "a request begins");
    }
    void use(http::client_multiplexer& engine) {
        if (is_open_) engine.consumed(number_, come_);
    }
    bool is_open() const noexcept { return is_open_; }
    std::string told() const { return text_ + " " + loss_ + "\n"; }

private:
    std::int32_t number_ = 0;
    bool is_open_ = true;
    bool is_answered_ = false;
    bool has_ended_ = false;
    std::size_t come_ = 0;
    std::string_view left_ = "a body";
    std::string text_;
    std::string loss_;
};

// Returns what the engine has told, and sent, for bytes in pieces.
std::string tell(std::string_view bytes, bool small, std::size_t first, std::size_t others) {
    std::array<noted_request, 3> requests;
    http::limits limit;
    if (small) limit.header_bytes_max = 100;
    std::unique_ptr<http::client_multiplexer> engine = http2::for_client()->connect(false, limit);
    requests[0].begin(*engine, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", true);
    requests[1].begin(*engine, "HEAD /h HTTP/1.1\r\nHost: a\r\nX-A: b\r\n\r\n", true);
    requests[2].begin(*engine, "POST /p HTTP/1.1\r\nHost: a\r\n\r\n", false);
    std::string sent;
    while (engine->write(sent)) {
    }
    bool lives = true;
    for (std::size_t size = first; !bytes.empty() && lives; size = others) {
        const std::string_view piece = bytes.substr(0, size);
        bytes.remove_prefix(piece.size());
        lives = engine->receive(std::as_bytes(std::span(piece)));
    }
    if (lives) {
        for (noted_request& r : requests) r.use(*engine);
        while (engine->write(sent)) verify(sent.size() < 200'000, "too much is sent");
    }
    std::string told = std::string(lives ? "lives " : "dies ") +
                       (lives && engine->is_finished() ? "finished " : "") +
                       std::to_string(engine->streams_max()) + "\n";
    engine.reset();
    for (const noted_request& r : requests) {
        verify(!r.is_open(), "every request is closed");
        told += r.told();
    }
    for (const std::string& f : split_frames(sent)) told.append(in_hexadecimal(f)).append("\n");
    return told;
}

// ---- A client in a simulated world -------------------------------------------------------------

struct answers {
    std::array<std::string, 4> said;  // "": no answer
    int ended = 0;
};

std::string text_of(const http::client_head& head, std::string_view body) {
    return std::to_string(head.status()) + " " + std::string(head.find("x").value_or("-")) + " " +
           std::string(head.trailer("x").value_or("-")) + " " + std::string(body);
}
task<> ask(http::client& client, io::endpoint to, std::string_view method, std::string_view body,
           std::string& said, int& ended) {
    http::client_request r;
    r.to = to;
    r.method = method;
    r.body = body;
    try {
        const http::client_response answer = co_await client.send(r);
        said = text_of(answer, answer.body());
    } catch (const std::system_error&) {
    }
    ++ended;
}
// Reads an answer in pieces.
task<> open(http::client& client, io::endpoint to, std::string& said, int& ended) {
    http::client_request r;
    r.to = to;
    try {
        http::client_answer answer = co_await client.open(r);
        std::string body;
        for (;;) {
            const std::string_view piece = co_await answer.read();
            if (piece.empty()) break;
            body += piece;
        }
        said = text_of(answer, body);
    } catch (const std::system_error&) {
    }
    ++ended;
}
task<> ask_all(io::context& loop, io::endpoint to, bool small, answers& got) {
    http::client_options o;
    o.http2 = small ? http2::for_client({2, 30, 20}) : http2::for_client();
    o.http2_in_the_clear = true;
    o.idle_connections_max = 0;
    o.answer = 5s;
    o.body = 5s;
    if (small) o.limits.header_bytes_max = 100;
    if (small) o.limits.body_bytes_max = 20;
    http::client client(loop, o);
    co_await execution::when_all(ask(client, to, "GET", "", got.said[0], got.ended),
                                 ask(client, to, "HEAD", "", got.said[1], got.ended),
                                 ask(client, to, "POST", "a body", got.said[2], got.ended),
                                 open(client, to, got.said[3], got.ended));
}

answers talk(std::string_view bytes, bool small, std::size_t first, std::size_t others) {
    io::simulation world(1, io::simulated_faults::none());
    answers got;
    {
        io::context loop(world);
        io::tcp::acceptor acceptor(loop, io::loopback(0));
        serve(acceptor, loop, bytes, first, others);
        run(ask_all(loop, acceptor.local(), small, got));
        loop.run();
    }
    verify(got.ended == 4, "every request ends");
    verify(world.open_descriptors() == 0, "no descriptor is left open");
    return got;
}

// Compares what requests get that have an answer in both ways; all of them, from a server that
// keeps to the protocol. The answer to HEAD is whole before the body that breaks the protocol.
void compare(const answers& got, const answers& wanted, bool is_peaceful) {
    for (std::size_t i = 0; i != got.said.size(); ++i) {
        if (got.said[i].empty() || wanted.said[i].empty()) {
            if (!is_peaceful || i == 1) continue;
        }
        verify_equal(got.said[i], wanted.said[i], "answer " + std::to_string(i));
    }
}

std::string head_of(std::uint32_t stream, int flags, std::string_view more = {}) {
    return frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | flags, stream,
                 literal(":status", "200").append(more));
}

}  // namespace

const std::vector<std::string>& coppice::test::common_frames() {
    constexpr int ends = NGHTTP2_FLAG_END_STREAM;
    static const std::vector<std::string> all = {
        frame(NGHTTP2_SETTINGS, 0, 0, ""),
        frame(NGHTTP2_SETTINGS, 0, 0, std::string("\0\4", 2) + number(3)),
        frame(NGHTTP2_SETTINGS, 0, 0, std::string("\0\3", 2) + number(1)),
        frame(NGHTTP2_SETTINGS, 0, 0, std::string("\0\1", 2) + number(0)),
        frame(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, ""),
        head_of(1, 0),
        head_of(1, ends, literal("x", "b")),
        head_of(3, ends, literal("content-length", "5")),
        head_of(5, 0, literal("content-length", "5")),
        frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, literal(":status", "103")),
        frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | ends, 1, literal("x", "trailer")),
        frame(NGHTTP2_HEADERS, 0, 1, literal(":status", "200")),
        frame(NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, literal("x", "b")),
        frame(NGHTTP2_DATA, 0, 1, "hel"),
        frame(NGHTTP2_DATA, ends, 1, "lo"),
        frame(NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1, std::string("\3abc\0\0\0", 7)),
        frame(NGHTTP2_PUSH_PROMISE, NGHTTP2_FLAG_END_HEADERS, 1, number(2) + get_block()),
        frame(NGHTTP2_PING, 0, 0, "12345678"),
        frame(NGHTTP2_WINDOW_UPDATE, 0, 0, number(100)),
        frame(NGHTTP2_WINDOW_UPDATE, 0, 5, number(10)),
        frame(NGHTTP2_PRIORITY, 0, 3, number(1) + "x"),
        frame(0x0a, 0, 0, std::string("\0\1a", 3) + "h2=\":1\""),
        reset_frame(1, NGHTTP2_REFUSED_STREAM),
        reset_frame(5, NGHTTP2_NO_ERROR),
        goaway(3),
    };
    return all;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const unsigned char choice = data[0];
    const bool small = (choice & 1) != 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
    const std::size_t cut = 1 + (bytes.size() * 31 + choice) % bytes.size();
    const std::vector<std::string> all = split_frames(bytes);

    const std::string whole = tell(bytes, small, bytes.size(), 1);
    const std::string bytewise = tell(bytes, small, 1, 1);
    const std::string split = tell(bytes, small, cut, bytes.size());
    // After a GOAWAY, nghttp2 reads nothing from the next call on for which no stream is open.
    const bool goes_away = has_type(all, NGHTTP2_GOAWAY);
    if (!goes_away) {
        verify_equal(bytewise, whole, "bytewise");
        verify_equal(split, whole, "split");
    }

    if ((choice & 4) != 0) return 0;
    const bool is_peaceful = !small && !goes_away && !has_type(all, NGHTTP2_RST_STREAM);
    const answers once = talk(bytes, small, bytes.size(), 1);
    compare(talk(bytes, small, cut, bytes.size()), once, is_peaceful);
    if (bytes.size() < 300) compare(talk(bytes, small, 1, 1), once, is_peaceful);
    return 0;
}
