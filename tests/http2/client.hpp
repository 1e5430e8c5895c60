// A blocking client of HTTP/2 for tests, by nghttp2's client session.
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

#include "../http/websocket_client.hpp"
#include "frames.hpp"

namespace coppice::test {

// Sends the bytes, and returns the code of the GOAWAY that comes back.
inline std::uint32_t code_after(std::uint16_t port, std::string_view bytes) {
    client c(port);
    c.send(bytes);
    c.finish_sending();
    return code_in(c.receive_all());
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
        return submit(all, {std::move(body), true});
    }
    // Begins a WebSocket (RFC 8441); returns its stream, for say() and end(). `more` may replace
    // pseudo-fields, and removes those to which it gives "".
    std::int32_t open(std::string_view path = "/", const fields& more = {}) {
        fields all = {{":method", "CONNECT"},       {":protocol", "websocket"},
                      {":scheme", "http"},          {":authority", "a"},
                      {":path", std::string(path)}, {"sec-websocket-version", "13"}};
        for (const auto& f : more) {
            const auto at = std::ranges::find(all, f.first, &fields::value_type::first);
            if (at == all.end()) {
                all.push_back(f);
            } else {
                *at = f;
            }
        }
        std::erase_if(all, [](const auto& f) { return f.second.empty(); });
        return submit(all, {{}, false});
    }
    void say(std::int32_t stream, std::string_view bytes) {
        bodies_[stream]->left += bytes;
        nghttp2_session_resume_data(session_, stream);
        flush();
    }
    void end(std::int32_t stream) {
        bodies_[stream]->is_whole = true;
        say(stream, "");
    }
    std::size_t unsent(std::int32_t stream) { return bodies_[stream]->left.size(); }
    // Returns the next frame of a WebSocket, as websocket_client::next() does.
    std::string next(std::int32_t stream) {
        return next_frame([&](std::size_t size) -> std::string {
            answer& a = answers_[stream];
            go_on([&] { return a.body.size() >= size || a.ended || a.closed; });
            if (a.body.size() < size) return "";
            std::string out = a.body.substr(0, size);
            a.body.erase(0, size);
            return out;
        });
    }
    std::string say_and_hear(std::int32_t stream, std::string_view bytes) {
        say(stream, bytes);
        return next(stream);
    }
    // Returns true once the server has said that it accepts the extended CONNECT.
    bool may_open() {
        return go_on([&] {
            return nghttp2_session_get_remote_settings(
                       session_, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1;
        });
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
    // What a stream sends.
    struct outgoing {
        std::string left;
        bool is_whole = false;
    };

    std::int32_t submit(fields& all, outgoing body) {
        std::vector<nghttp2_nv> pairs;
        for (auto& [name, value] : all) {
            pairs.push_back({reinterpret_cast<std::uint8_t*>(name.data()),
                             reinterpret_cast<std::uint8_t*>(value.data()), name.size(),
                             value.size(), NGHTTP2_NV_FLAG_NONE});
        }
        auto kept = std::make_unique<outgoing>(std::move(body));
        nghttp2_data_provider provider{};
        provider.source.ptr = kept.get();
        provider.read_callback = [](nghttp2_session*, std::int32_t, std::uint8_t* room,
                                    std::size_t size, std::uint32_t* flags,
                                    nghttp2_data_source* source, void*) -> ssize_t {
            outgoing& from = *static_cast<outgoing*>(source->ptr);
            const std::size_t n = std::min(size, from.left.size());
            if (n == 0 && !from.is_whole) return NGHTTP2_ERR_DEFERRED;
            std::copy_n(from.left.data(), n, reinterpret_cast<char*>(room));
            from.left.erase(0, n);
            if (from.left.empty() && from.is_whole) *flags |= NGHTTP2_DATA_FLAG_EOF;
            return static_cast<ssize_t>(n);
        };
        const bool has_body = !kept->is_whole || !kept->left.empty();
        const std::int32_t stream = nghttp2_submit_request(
            session_, nullptr, pairs.data(), pairs.size(), has_body ? &provider : nullptr, nullptr);
        bodies_[stream] = std::move(kept);
        return stream;
    }
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
    std::map<std::int32_t, std::unique_ptr<outgoing>> bodies_;
    std::vector<std::uint32_t> goaways_;
    std::int32_t last_stream_ = 0;
};

// Sends what is good cut at each byte, and with each byte wrong, which the server has to survive.
inline void send_cut_and_wrong(std::uint16_t port, const std::string& good) {
    for (std::size_t cut = 0; cut != good.size(); ++cut) {
        client c(port);
        c.send(good.substr(0, cut));
        if (cut % 2 == 0) c.reset();
    }
    for (std::size_t at = NGHTTP2_CLIENT_MAGIC_LEN; at != good.size(); ++at) {
        std::string wrong = good;
        wrong[at] = static_cast<char>(wrong[at] ^ (1 << at % 8));
        client c(port);
        c.send(wrong);
        c.finish_sending();
        (void)c.receive_all();
    }
}

}  // namespace coppice::test
