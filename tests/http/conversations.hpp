// Whole conversations with a server, each named after its section, and how they are delivered.
#pragma once

#include <coppice/http/body.hpp>
#include <coppice/http/pause.hpp>
#include <coppice/http/server.hpp>

#include <chrono>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace coppice::test {

namespace conformance {

using http::request;
using http::response;

struct conversation {
    const char* section;  // of RFC 9112 unless another is named
    std::string sent;     // afterwards the client ends its sending side
    // Each answer's status, and its body if the status is 200; "close" if the answer ends the
    // connection; HEAD as its own word.
    std::string answered;
};

inline std::string get(std::string_view target, std::string_view fields = "") {
    return "GET " + std::string(target) + " HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n";
}
inline std::string post(std::string_view fields, std::string_view body) {
    return "POST /echo HTTP/1.1\r\nHost: a\r\n" + std::string(fields) + "\r\n" + std::string(body);
}

inline const conversation conversations[] = {
    {"2.2 an empty line in front is passed over", "\r\n" + get("/a"), "200 a"},
    {"2.2 two empty lines are refused", "\r\n\r\n" + get("/a"), "400 close"},
    {"2.2 a bare LF is refused", "GET /a HTTP/1.1\nHost: a\n\n", "400 close"},
    {"2.2 a bare CR in a value is refused", get("/a", "X: b\rc\r\n"), "400 close"},
    {"2.2 whitespace before the first field is refused",
     "GET /a HTTP/1.1\r\n Host: a\r\n\r\n" + get("/a"), "400 close"},
    {"2.3 a version that is none is refused", "GET /a HTTP/1,1\r\nHost: a\r\n\r\n", "400 close"},
    {"2.3 another major version gets 505", "GET /a HTTP/2.0\r\nHost: a\r\n\r\n", "505 close"},
    {"3 two spaces in the request line are refused", "GET  /a HTTP/1.1\r\nHost: a\r\n\r\n",
     "400 close"},
    {"3 an unknown method is answered and the connection lives",
     "BREW /a HTTP/1.1\r\nHost: a\r\n\r\n" + get("/a"), "405; 200 a"},
    {"3.2 no Host is refused", "GET /a HTTP/1.1\r\n\r\n" + get("/a"), "400 close"},
    {"3.2 two Hosts are refused", get("/a", "Host: b\r\n"), "400 close"},
    {"3.2 an empty Host is refused", "GET /a HTTP/1.1\r\nHost: \r\n\r\n", "400 close"},
    {"3.2.2 the absolute form is understood", "GET http://a/a HTTP/1.1\r\nHost: a\r\n\r\n",
     "200 a"},
    {"3.2.4 the asterisk is for OPTIONS alone", get("*"), "400 close"},
    {"5.1 a space before the colon is refused", get("/a", "X : b\r\n"), "400 close"},
    {"5.2 a folded line is refused", get("/a", "X: b\r\n c\r\n"), "400 close"},
    {"6.1 Content-Length beside Transfer-Encoding is refused",
     post("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n" + get("/a")),
     "400 close"},
    {"6.1 the same in the other order",
     post("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", "0\r\n\r\n" + get("/a")),
     "400 close"},
    {"6.1 Transfer-Encoding in HTTP/1.0 is refused",
     "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400 close"},
    {"6.1 an unknown coding before chunked gets 501",
     post("Transfer-Encoding: odd, chunked\r\n", "0\r\n\r\n"), "501 close"},
    {"6.3 a last coding that is not chunked is refused",
     post("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"), "400 close"},
    {"6.3 two lengths are refused", post("Content-Length: 3\r\nContent-Length: 3\r\n", "abc"),
     "400 close"},
    {"6.3 a list of lengths is refused", post("Content-Length: 3, 3\r\n", "abc"), "400 close"},
    {"6.3 a signed length is refused", post("Content-Length: +3\r\n", "abc"), "400 close"},
    {"6.3 a length ends the body and the next request follows",
     post("Content-Length: 3\r\n", "abc" + get("/a")), "200 abc; 200 a"},
    {"6.3 without a length there is no body", "POST /echo HTTP/1.1\r\nHost: a\r\n\r\n" + get("/a"),
     "200 ; 200 a"},
    {"7.1 chunks are put together and the next request follows",
     post("Transfer-Encoding: chunked\r\n",
          "3\r\nabc\r\n00A;x=\"y\"\r\n0123456789\r\n0\r\nX: y\r\n\r\n" + get("/a")),
     "200 abc0123456789; 200 a"},
    {"7.1 a chunk shorter than its size is refused",
     post("Transfer-Encoding: chunked\r\n", "4\r\nabc\r\n0\r\n\r\n"), "400 close"},
    {"7.1 a size with a prefix is refused",
     post("Transfer-Encoding: chunked\r\n", "0x3\r\nabc\r\n0\r\n\r\n"), "400 close"},
    {"7.1 bare LF in the framing is refused",
     post("Transfer-Encoding: chunked\r\n", "3\nabc\r\n0\r\n\r\n"), "400 close"},
    {"7.1.2 framing in a trailer does not end the body",
     post("Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\nContent-Length: 9\r\n\r\n" + get("/a")),
     "200 a; 200 a"},
    {"8 an incomplete head gets no answer", "GET /a HTTP/1.1\r\nHost: a\r\n", ""},
    {"8 an incomplete body gets no answer", get("/a") + post("Content-Length: 4\r\n", "abc"),
     "200 a"},
    {"9.3 HTTP/1.0 closes", "GET /a HTTP/1.0\r\n\r\n", "200 a close"},
    {"9.3 HTTP/1.0 with keep-alive goes on",
     "GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /a HTTP/1.0\r\n\r\n",
     "200 a; 200 a close"},
    {"9.6 a client's close is obeyed", get("/a", "Connection: close\r\n"), "200 a close"},
    {"9.6 behind a server's close nothing is read, and the answer is not lost",
     get("/close") + get("/a") + get("/a"), "200 bye close"},
    {"9.3.2 pipelined answers keep their order",
     get("/a") + get("/wait") + get("/stream") + get("/none") + get("/a"),
     "200 a; 200 waited; 200 one two; 404; 200 a"},
    {"RFC 9110 9.3.2 HEAD is answered as GET without a body",
     "HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n" + get("/a"), "HEAD 200; 200 a"},
    {"RFC 9110 10.1.1 an expectation is met or passed over",
     post("Content-Length: 2\r\nExpect: 100-continue\r\n", "ab" + get("/a")), "200 ab; 200 a"},
    {"RFC 9110 15.5.14 a declared body beyond the limit is refused at once",
     post("Content-Length: 99999999999\r\n", "ab"), "413 close"},
    {"RFC 6585 5 too many fields are refused",
     get("/a",
         [] {
             std::string many;
             for (int i = 0; i != 101; ++i) many += "X: y\r\n";
             return many;
         }()),
     "431 close"},
    {"7.1 a handler that reads its body in pieces sees all of it",
     "POST /count HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
     "3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n" +
         get("/a"),
     "200 7; 200 a"},
};

// A target in absolute form says how the request is made.
inline std::vector<conversation> secure_conversations() {
    std::vector<conversation> all(std::begin(conversations), std::end(conversations));
    for (conversation& c : all) {
        if (const std::size_t at = c.sent.find(" http://"); at != c.sent.npos) {
            c.sent.replace(at, 8, " https://");
        }
    }
    return all;
}

inline http::router routes() {
    http::router r;
    r.get("/a", [](request&) { return response::text("a"); })
        .get("/close", [](request&) { return response::text("bye").close(); })
        .get("/wait",
             [](request& q) -> task<response> {
                 co_await http::pause(q, std::chrono::milliseconds(1));
                 co_return response::text("waited");
             })
        .get("/stream",
             [](request&) {
                 const auto produce = [](http::body_writer& out) -> task<> {
                     co_await out.write("one ");
                     co_await out.flush();
                     co_await out.write("two");
                 };
                 return response(200).body(http::stream(produce));
             })
        .post("/echo", [](request& q) { return response::text(std::string(q.body())); })
        .post("/count", http::read_body([](request& q) -> task<response> {
                  std::size_t bytes = 0;
                  for (;;) {
                      const std::string_view piece = co_await q.incoming().read();
                      if (piece.empty()) break;
                      bytes += piece.size();
                  }
                  co_return response::text(std::to_string(bytes));
              }));
    return r;
}

// What was received, in the form of the conversations.
inline std::string transcript(std::string_view received, std::string_view sent) {
    std::string text;
    bool is_head = sent.starts_with("HEAD");
    while (!received.empty()) {
        const std::size_t end = received.find("\r\n\r\n");
        if (end == received.npos || !received.starts_with("HTTP/1.1 ")) {
            return text + "; garbage: " + std::string(received);
        }
        const std::string head(received.substr(0, end + 4));
        received.remove_prefix(head.size());
        const std::string status = head.substr(9, 3);
        if (status == "100") continue;
        std::string body;
        if (head.find("Transfer-Encoding: chunked\r\n") != head.npos) {
            body = received;
            http::chunk_decoder decoder(http::limits{});
            const auto decoded = decoder.decode(body);
            if (decoded.status != http::parse_status::complete) return text + "; bad chunks";
            body.resize(decoded.produced);
            received.remove_prefix(decoded.consumed);
        } else if (const std::size_t at = head.find("Content-Length: "); at != head.npos) {
            const auto length = static_cast<std::size_t>(std::atoi(head.c_str() + at + 16));
            if (!is_head && received.size() < length) return text + "; a part of a body";
            if (!is_head) body = received.substr(0, length);
            received.remove_prefix(body.size());
        }
        if (!text.empty()) text += "; ";
        if (is_head) text += "HEAD ";
        text += status;
        if (!is_head && status == "200") text += " " + body;
        if (head.find("Connection: close\r\n") != head.npos) text += " close";
        is_head = false;
    }
    return text;
}

// The sizes of the pieces: every way to cut `bytes` in two, then single bytes, then the whole.
template <class Deliver>
void every_delivery(std::size_t bytes, std::size_t step, Deliver deliver) {
    for (std::size_t first = 1; first < bytes; first += step) deliver(first, bytes - first);
    deliver(1, 1);
    deliver(bytes, bytes);
}

}  // namespace conformance

}  // namespace coppice::test
