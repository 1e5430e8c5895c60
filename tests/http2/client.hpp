// A blocking client of HTTP/2 for tests, by nghttp2's client session; and raw frames.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../http/client.hpp"

namespace coppice::test {

// A frame as bytes.
inline std::string frame(int type, int flags, std::uint32_t stream, std::string_view payload) {
    std::string made;
    for (const int shift : {16, 8, 0}) made.push_back(static_cast<char>(payload.size() >> shift));
    made.push_back(static_cast<char>(type));
    made.push_back(static_cast<char>(flags));
    for (const int shift : {24, 16, 8, 0}) made.push_back(static_cast<char>(stream >> shift));
    return made.append(payload);
}
inline std::string preface() {
    return std::string(NGHTTP2_CLIENT_MAGIC) + frame(NGHTTP2_SETTINGS, 0, 0, "");
}
// A field of HPACK that is not indexed: names and values are shorter than 127 bytes.
inline std::string literal(std::string_view name, std::string_view value) {
    std::string made(1, '\0');
    made.push_back(static_cast<char>(name.size()));
    made.append(name).push_back(static_cast<char>(value.size()));
    return made.append(value);
}
inline std::string get_block(std::string_view path = "/") {
    return literal(":method", "GET") + literal(":scheme", "http") + literal(":path", path) +
           literal(":authority", "a");
}
inline std::string get_frame(std::uint32_t stream, std::string_view path = "/") {
    return frame(NGHTTP2_HEADERS, NGHTTP2_FLAG_END_STREAM | NGHTTP2_FLAG_END_HEADERS, stream,
                 get_block(path));
}

class h2_client {
public:
    struct answer {
        int status = 0;
        std::string body;
        std::map<std::string, std::string> fields;
        bool ended = false;
        bool closed = false;
        std::uint32_t error = 0;
    };
    using fields = std::vector<std::pair<std::string, std::string>>;

    explicit h2_client(std::uint16_t port, bool opens_windows = true) : socket_(port) {
        nghttp2_session_callbacks* c = nullptr;
        nghttp2_session_callbacks_new(&c);
        nghttp2_session_callbacks_set_on_header_callback(
            c, [](nghttp2_session*, const nghttp2_frame* f, const std::uint8_t* n, std::size_t nb,
                  const std::uint8_t* v, std::size_t vb, std::uint8_t, void* user) {
                const std::string name(reinterpret_cast<const char*>(n), nb);
                const std::string value(reinterpret_cast<const char*>(v), vb);
                answer& a = static_cast<h2_client*>(user)->answers_[f->hd.stream_id];
                if (name == ":status") a.status = std::atoi(value.c_str());
                a.fields[name] = value;
                return 0;
            });
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
            c, [](nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                  std::size_t size, void* user) {
                static_cast<h2_client*>(user)->answers_[id].body.append(
                    reinterpret_cast<const char*>(bytes), size);
                return 0;
            });
        nghttp2_session_callbacks_set_on_frame_recv_callback(
            c, [](nghttp2_session*, const nghttp2_frame* f, void* user) {
                h2_client& self = *static_cast<h2_client*>(user);
                if (f->hd.type == NGHTTP2_GOAWAY) {
                    self.goaways_.push_back(f->goaway.error_code);
                    self.last_stream_ = f->goaway.last_stream_id;
                }
                const bool ends = f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS;
                if (ends && (f->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
                    self.answers_[f->hd.stream_id].ended = true;
                }
                return 0;
            });
        nghttp2_session_callbacks_set_on_stream_close_callback(
            c, [](nghttp2_session*, std::int32_t id, std::uint32_t error, void* user) {
                answer& a = static_cast<h2_client*>(user)->answers_[id];
                a.closed = true;
                a.error = error;
                return 0;
            });
        nghttp2_option* options = nullptr;
        nghttp2_option_new(&options);
        nghttp2_option_set_no_auto_window_update(options, opens_windows ? 0 : 1);
        nghttp2_session_client_new2(&session_, c, this, options);
        nghttp2_option_del(options);
        nghttp2_session_callbacks_del(c);
        nghttp2_submit_settings(session_, 0, nullptr, 0);
    }
    h2_client(const h2_client&) = delete;
    ~h2_client() { nghttp2_session_del(session_); }

    // Begins a request; returns its stream.
    std::int32_t ask(std::string_view verb, std::string_view path, const fields& more = {},
                     std::string body = {}) {
        fields all = {{":method", std::string(verb)},
                      {":scheme", "http"},
                      {":authority", "a"},
                      {":path", std::string(path)}};
        all.insert(all.end(), more.begin(), more.end());
        std::vector<nghttp2_nv> pairs;
        for (auto& [name, value] : all) {
            pairs.push_back({reinterpret_cast<std::uint8_t*>(name.data()),
                             reinterpret_cast<std::uint8_t*>(value.data()), name.size(),
                             value.size(), NGHTTP2_NV_FLAG_NONE});
        }
        bodies_.push_back(std::make_unique<std::string>(std::move(body)));
        nghttp2_data_provider provider{};
        provider.source.ptr = bodies_.back().get();
        provider.read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* room,
                                    std::size_t size, std::uint32_t* flags,
                                    nghttp2_data_source* source, void*) -> ssize_t {
            std::string& left = *static_cast<std::string*>(source->ptr);
            const std::size_t n = std::min(size, left.size());
            std::copy_n(left.data(), n, reinterpret_cast<char*>(room));
            left.erase(0, n);
            if (left.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
            return static_cast<ssize_t>(n);
        };
        const bool has_body = !bodies_.back()->empty();
        return nghttp2_submit_request(session_, nullptr, pairs.data(), pairs.size(),
                                      has_body ? &provider : nullptr, nullptr);
    }
    // Sends what is due, and receives until `until` holds, or the connection ends. Returns which.
    template <class Until>
    bool go_on(Until until) {
        for (;;) {
            flush();
            if (until()) return true;
            const std::string bytes = receive_bytes();
            if (bytes.empty()) return until();
            if (nghttp2_session_mem_recv(session_,
                                         reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                         bytes.size()) < 0) {
                return false;
            }
        }
    }
    void flush() {
        const std::uint8_t* bytes = nullptr;
        for (ssize_t n; (n = nghttp2_session_mem_send(session_, &bytes)) > 0;) {
            const auto size = static_cast<std::size_t>(n);
            (void)socket_.send({reinterpret_cast<const char*>(bytes), size});
        }
    }
    // Returns the whole answer, or what there is of it when the stream is closed.
    answer& finish(std::int32_t stream) {
        go_on([&] { return answers_[stream].closed; });
        return answers_[stream];
    }
    answer get(std::string_view path) { return finish(ask("GET", path)); }
    void reset(std::int32_t stream) {
        nghttp2_submit_rst_stream(session_, 0, stream, NGHTTP2_CANCEL);
        flush();
    }
    void open_window(std::int32_t stream, std::size_t bytes) {
        nghttp2_session_consume(session_, stream, bytes);
    }
    answer& at(std::int32_t stream) { return answers_[stream]; }
    bool has_goaway() const { return !goaways_.empty(); }
    std::uint32_t goaway() const { return goaways_.empty() ? ~0u : goaways_.front(); }
    std::int32_t last_stream() const { return last_stream_; }
    client& socket() { return socket_; }

private:
    std::string receive_bytes() {
        std::string bytes(65536, '\0');
        ssize_t n;
        do {
            n = ::recv(socket_.fd(), bytes.data(), bytes.size(), 0);
        } while (n < 0 && errno == EINTR);
        bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
        return bytes;
    }

    client socket_;
    nghttp2_session* session_ = nullptr;
    std::map<std::int32_t, answer> answers_;
    std::vector<std::unique_ptr<std::string>> bodies_;
    std::vector<std::uint32_t> goaways_;
    std::int32_t last_stream_ = 0;
};

}  // namespace coppice::test
