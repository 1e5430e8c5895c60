// HTTP/2 of the server: whatever a client sends, and in whatever pieces, the engine tells the same,
// every handler ends, and what is sent is well-formed and in proportion to what has come.
#include <coppice/base/lifetime.hpp>
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
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "../http2/answers.hpp"
#include "../http2/frames.hpp"
#include "detached.hpp"
#include "frame_mutator.hpp"
#include "verify.hpp"
#include "websocket_frames.hpp"

namespace {

using namespace coppice;
using namespace coppice::test;
using namespace std::chrono_literals;

// ---- The engine alone --------------------------------------------------------------------------

// A stream that notes what it is told, and answers at the end.
class noted_stream final : public http::multiplexed_stream {
public:
    noted_stream(std::int32_t n, std::string_view head, bool ended)
        : number_(n), text_(std::to_string(n) + (ended ? " ended " : " ") + std::string(head)) {}

    bool input(std::string_view bytes) noexcept override {
        verify(is_open_ && !has_ended_, "a body after its end");
        text_ += bytes;
        come_ += bytes.size();
        return true;
    }
    bool end_input(std::string_view trailers) noexcept override {
        verify(is_open_ && !has_ended_, "a second end");
        has_ended_ = true;
        text_.append("|end ").append(trailers);
        return true;
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
    std::string_view trailers() noexcept override { return number_ % 4 == 1 ? "x-sum: 1\r\n" : ""; }

    void answer(http::multiplexer& engine) {
        if (!is_open_) return;
        engine.consumed(number_, come_);
        left_ = "a body";
        verify(engine.answer(number_, "HTTP/1.1 200 OK\r\nX-A: b\r\n\r\n", number_ % 8 == 3),
               "there is memory");
    }
    const std::string& text() const noexcept { return text_; }

private:
    const std::int32_t number_;
    bool is_open_ = true;
    bool has_ended_ = false;
    std::size_t come_ = 0;
    std::string_view left_;
    std::string text_;
};

class noted_streams final : public http::multiplexed_streams {
public:
    http::multiplexed_stream* begin(std::int32_t number, std::string_view head,
                                    bool ended) noexcept override {
        verify(head.ends_with("\r\n\r\n"), "a head that does not end");
        if (all.size() == 50) return nullptr;
        all.push_back(std::make_unique<noted_stream>(number, head, ended));
        return all.back().get();
    }
    std::vector<std::unique_ptr<noted_stream>> all;
};

// Returns what the engine has told, and sent, for bytes in pieces.
std::string tell(std::string_view bytes, bool small, std::size_t first, std::size_t others) {
    noted_streams streams;
    http2::server_limits most;
    http::limits limit;
    if (small) limit.header_bytes_max = 100;
    std::unique_ptr<http::multiplexer> engine =
        http2::for_server(most)->accept(streams, false, limit);
    std::string sent;
    bool lives = true;
    std::size_t size = first;
    for (; !bytes.empty() && lives; size = others) {
        const std::string_view piece = bytes.substr(0, size);
        bytes.remove_prefix(piece.size());
        lives = engine->receive(std::as_bytes(std::span(piece)));
    }
    if (lives) {
        for (const auto& s : streams.all) s->answer(*engine);
        while (engine->write(sent)) verify(sent.size() < 200'000, "too much is sent");
    }
    const bool finished = lives && engine->is_finished();
    engine.reset();
    std::string told = std::string(lives ? "lives " : "dies ") + (finished ? "finished\n" : "\n");
    for (const auto& s : streams.all) told.append(s->text()).append("\n");
    for (const std::string& f : split_frames(sent)) told.append(in_hexadecimal(f)).append("\n");
    return told;
}

// ---- A server in a simulated world -------------------------------------------------------------

struct handlers {
    int begun = 0;
    int ended = 0;
};

http::router routes_for(handlers& count) {
    const auto counted = [&count] {
        ++count.begun;
        return scope_exit([&count] { ++count.ended; });
    };
    http::router r;
    r.get("/", [](http::request&) { return http::response::text("plain"); });
    r.post("/", [](http::request& q) { return http::response::text(std::string(q.body())); });
    r.post("/b", http::read_body([counted](http::request& q) -> task<http::response> {
               const auto ends = counted();
               std::string all;
               for (;;) {
                   const std::string_view piece = co_await q.incoming().read();
                   if (piece.empty()) break;
                   all += piece;
               }
               all += q.trailer("x").value_or("");
               co_return http::response::text(all);
           }));
    r.get("/s", [counted](http::request&) {
        return http::response(200).body(http::stream([counted](http::body_writer& out) -> task<> {
            const auto ends = counted();
            for (int i = 0; i != 4; ++i) {
                co_await out.write(std::string(30, 's'));
                co_await out.flush();
            }
            out.trailer("X-Sum", "1");
        }));
    });
    r.get("/w", http::websocket_handler([counted](http::websocket& socket) -> task<> {
              const auto ends = counted();
              while (const auto message = co_await socket.receive()) {
                  if (co_await socket.send(*message)) co_return;
              }
          }));
    return r;
}

task<> send_all(io::context& loop, io::tcp::socket& socket, std::string_view bytes,
                std::size_t first, std::size_t others) {
    std::error_code ec;
    for (std::size_t size = first; !bytes.empty() && !ec; size = others) {
        const std::string_view piece = bytes.substr(0, size);
        bytes.remove_prefix(piece.size());
        co_await socket.send_all(std::as_bytes(std::span(piece)), use_await[ec]);
        io::timer pause(loop);
        co_await pause.wait_for(1ms);
    }
    io::timer rest(loop);
    co_await rest.wait_for(100ms);
    socket.shutdown_send();
}
task<> receive_all(io::tcp::socket& socket, std::string& received) {
    std::array<char, 4096> some;
    for (std::error_code ec; !ec;) {
        const std::size_t n =
            co_await socket.receive(std::as_writable_bytes(std::span(some)), use_await[ec]);
        if (n == 0) break;
        received.append(some.data(), n);
    }
}
task<> converse(io::context& loop, io::endpoint to, std::string_view bytes, std::size_t first,
                std::size_t others, std::string& received) {
    io::tcp::socket socket(loop);
    co_await socket.connect(to);
    co_await execution::when_all(send_all(loop, socket, bytes, first, others),
                                 receive_all(socket, received));
}
detached drain_after(task<> talk, http::server& server) {
    co_await std::move(talk);
    server.drain(10s);
}

// Returns what a client that sends the bytes in pieces receives.
std::string serve(std::string_view bytes, bool small, std::size_t first, std::size_t others) {
    io::simulation world(1, io::simulated_faults::none());
    handlers count;
    std::string received;
    {
        std::optional<http::server> server;
        http::server_options o;
        o.endpoint = io::loopback(0);
        o.model = http::model::single;
        o.simulation = &world;
        http2::server_limits most;
        if (small) most = {3, 50, 5, 20};
        o.http2 = http2::for_server(most);
        o.timeouts.idle = 2s;
        o.timeouts.body = 2s;
        o.timeouts.write = 2s;
        o.buffered_bytes_max = 1'000'000;
        o.on_exception = [](std::exception_ptr) {};
        o.on_loop = [&](io::context& loop) {
            drain_after(converse(loop, server->local(), bytes, first, others, received), *server);
        };
        server.emplace(std::move(o), routes_for(count));
        server->run();
        verify(server->statistics().open == 0, "no connection is left open");
    }
    verify(count.begun == count.ended, "every handler ends");
    verify(world.open_descriptors() == 0, "no descriptor is left open");
    verify(received.size() < 5'000 + 100 * bytes.size(), "the answers are in proportion");
    return received;
}

// Compares what a client that keeps to the protocol gets in two ways; of others, only the whole
// answers that it gets in both.
void compare(const connection_answer& got, const connection_answer& wanted, bool is_peaceful) {
    verify_equal(got.wrong, "", "bytewise");
    verify_equal(wanted.wrong, "", "whole");
    const auto has_reset = [](const auto& s) { return s.second.reset.has_value(); };
    is_peaceful = is_peaceful && !got.goaway.value_or(0) && !wanted.goaway.value_or(0) &&
                  std::ranges::none_of(got.streams, has_reset) &&
                  std::ranges::none_of(wanted.streams, has_reset);
    for (const auto& [number, answer] : wanted.streams) {
        if (is_peaceful) verify(got.has_ended(number) == answer.ended, "an answer is missing");
        if (!answer.ended || !got.has_ended(number)) continue;
        verify_equal(got.streams.at(number).text(), answer.text(), "an answer");
    }
}

std::string request(std::string_view verb, std::string_view path, std::uint32_t stream, int flags) {
    return frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | flags, stream,
                 literal(":method", verb) + literal(":scheme", "http") + literal(":path", path) +
                     literal(":authority", "a"));
}

}  // namespace

const std::vector<std::string>& coppice::test::common_frames() {
    constexpr int ends = NGHTTP2_FLAG_END_STREAM;
    static const std::vector<std::string> all = {
        request("GET", "/", 1, ends),
        request("GET", "/s", 3, ends),
        request("POST", "/", 5, 0),
        request("POST", "/b", 7, 0),
        frame(NGHTTP2_HEADERS, 0, 1, literal(":method", "GET")),
        frame(NGHTTP2_CONTINUATION, 0, 1, literal(":scheme", "http") + literal(":path", "/")),
        frame(NGHTTP2_CONTINUATION, NGHTTP2_FLAG_END_HEADERS, 1, literal(":authority", "a")),
        frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS | ends, 5, literal("x", "trailer")),
        frame(NGHTTP2_DATA, 0, 5, "some bytes"),
        frame(NGHTTP2_DATA, ends, 5, "the last"),
        frame(NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 5, std::string("\3abc\0\0\0", 7)),
        frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
              literal(":method", "CONNECT") + literal(":protocol", "websocket") +
                  literal(":scheme", "http") + literal(":path", "/w") + literal(":authority", "a") +
                  literal("sec-websocket-version", "13")),
        frame(NGHTTP2_DATA, 0, 1, text_frame("hello")),
        frame(NGHTTP2_DATA, 0, 1, frame_of({0x89, "ping"})),
        frame(NGHTTP2_DATA, ends, 1, close_frame(1000)),
        frame(NGHTTP2_SETTINGS, 0, 0, std::string("\0\4", 2) + number(10)),
        frame(NGHTTP2_SETTINGS, 0, 0, std::string("\0\1", 2) + number(0)),
        frame(NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, ""),
        frame(NGHTTP2_PING, 0, 0, "12345678"),
        frame(NGHTTP2_WINDOW_UPDATE, 0, 0, number(100)),
        frame(NGHTTP2_WINDOW_UPDATE, 0, 3, number(10)),
        frame(NGHTTP2_PRIORITY, 0, 3, number(1) + "x"),
        frame(0x10, 0, 0, number(1) + "u=1"),
        reset_frame(3, NGHTTP2_CANCEL),
        goaway(0),
    };
    return all;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const unsigned char choice = data[0];
    const bool small = (choice & 1) != 0;
    std::string bytes = (choice & 2) != 0 ? std::string(NGHTTP2_CLIENT_MAGIC) : preface();
    bytes.append(reinterpret_cast<const char*>(data + 1), size - 1);

    const std::vector<std::string> all = split_frames(bytes.substr(NGHTTP2_CLIENT_MAGIC_LEN));
    const std::string whole = tell(bytes, small, bytes.size(), 1);
    const std::size_t cut = 1 + (bytes.size() * 31 + choice) % bytes.size();
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
    const connection_answer once = read_answers(serve(bytes, small, bytes.size(), 1));
    compare(read_answers(serve(bytes, small, cut, bytes.size())), once, is_peaceful);
    if (bytes.size() < 500) compare(read_answers(serve(bytes, small, 1, 1)), once, is_peaceful);
    return 0;
}
