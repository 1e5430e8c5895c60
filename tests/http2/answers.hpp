// Reads what a server of HTTP/2 has sent, whole or cut anywhere; for tests and fuzzers.
#pragma once

#include <nghttp2/nghttp2.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace coppice::test {

// What a server has sent on one stream.
struct stream_answer {
    int heads = 0;         // interim ones, the final one, and trailers
    std::string status;    // of the final head
    std::string fields;    // of the final head, as lines, without Date
    std::string body;      // as far as it has come
    std::string trailers;  // as lines
    bool ended = false;    // properly
    std::optional<std::uint32_t> reset;

    // An answer that a client takes for the whole, as one text.
    std::string text() const { return status + "\n" + fields + "\n" + body + "\n" + trailers; }
};

// What a server has sent on a connection.
struct connection_answer {
    std::map<std::uint32_t, stream_answer> streams;
    std::optional<std::uint32_t> goaway;  // its last code
    std::string wrong;                    // "", or what no server may send

    bool has_ended(std::uint32_t stream) const {
        const auto at = streams.find(stream);
        return at != streams.end() && at->second.ended;
    }
};

// Reads frames up to the last whole one. Cost: that of a test.
class answer_reader {
public:
    explicit answer_reader(std::string_view sent) {
        if (nghttp2_hd_inflate_new(&inflater_) != 0) std::abort();
        while (found_.wrong.empty() && sent.size() >= head_bytes) {
            const std::size_t size = number_at(sent, 0, 3);
            if (size > 16'384) found_.wrong = "a frame that is too long";
            if (sent.size() < head_bytes + size) break;
            take(static_cast<unsigned char>(sent[3]), static_cast<unsigned char>(sent[4]),
                 number_at(sent, 5, 4), sent.substr(head_bytes, size));
            sent.remove_prefix(head_bytes + size);
        }
    }
    answer_reader(const answer_reader&) = delete;
    ~answer_reader() { nghttp2_hd_inflate_del(inflater_); }
    connection_answer& found() noexcept { return found_; }

private:
    static constexpr std::size_t head_bytes = 9;

    static std::uint32_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
        std::uint32_t made = 0;
        for (const char c : bytes.substr(at, size))
            made = made << 8 | static_cast<unsigned char>(c);
        return made;
    }

    void take(int type, int flags, std::uint32_t stream, std::string_view payload) {
        if (in_head_ != 0 && (type != NGHTTP2_CONTINUATION || stream != in_head_)) {
            found_.wrong = "a frame inside a head";
        } else if (type == NGHTTP2_GOAWAY) {
            found_.goaway = number_at(payload, 4, 4);
        } else if (type == NGHTTP2_RST_STREAM) {
            found_.streams[stream].reset = number_at(payload, 0, 4);
        } else if (type == NGHTTP2_DATA || type == NGHTTP2_HEADERS ||
                   type == NGHTTP2_CONTINUATION) {
            take_part(type, flags, stream, payload);
        } else if (type == NGHTTP2_PUSH_PROMISE) {
            found_.wrong = "a push";
        }
    }
    void take_part(int type, int flags, std::uint32_t stream, std::string_view payload) {
        stream_answer& a = found_.streams[stream];
        if (a.ended || a.reset) found_.wrong = "a frame on a stream that has ended";
        if ((flags & (NGHTTP2_FLAG_PADDED | NGHTTP2_FLAG_PRIORITY)) != 0 &&
            type != NGHTTP2_CONTINUATION) {
            found_.wrong = "padding or a priority";
        }
        if (type == NGHTTP2_DATA) {
            if (a.status.empty()) found_.wrong = "a body without a head";
            a.body += payload;
        } else {
            block_ += payload;
            in_head_ = stream;
        }
        if (type != NGHTTP2_CONTINUATION) ends_ = (flags & NGHTTP2_FLAG_END_STREAM) != 0;
        if (type != NGHTTP2_DATA) {
            if ((flags & NGHTTP2_FLAG_END_HEADERS) == 0) return;
            end_head(a);
        }
        a.ended = ends_;
    }
    void end_head(stream_answer& a) {
        ++a.heads;
        in_head_ = 0;
        const bool trailing = !a.status.empty();
        std::string status;
        std::string lines;
        auto* at = reinterpret_cast<const std::uint8_t*>(block_.data());
        for (std::size_t left = block_.size();;) {
            nghttp2_nv field;
            int flags = 0;
            const ssize_t n = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, at, left, 1);
            if (n < 0) {
                found_.wrong = "a head that is no HPACK";
                break;
            }
            at += n;
            left -= static_cast<std::size_t>(n);
            if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0) add(field, status, lines);
            if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) {
                nghttp2_hd_inflate_end_headers(inflater_);
                break;
            }
        }
        block_.clear();
        if (trailing != status.empty()) found_.wrong = "a status in the wrong place";
        if (trailing) {
            if (!ends_) found_.wrong = "trailers that do not end the stream";
            a.trailers = lines;
        } else if (!status.starts_with('1')) {
            a.status = status;
            a.fields = lines;
        } else if (ends_) {
            found_.wrong = "an interim head that ends the stream";
        }
    }
    static void add(const nghttp2_nv& field, std::string& status, std::string& lines) {
        const std::string_view name(reinterpret_cast<const char*>(field.name), field.namelen);
        const std::string_view value(reinterpret_cast<const char*>(field.value), field.valuelen);
        if (name == ":status") {
            status = value;
        } else if (name != "date") {
            lines.append(name).append(": ").append(value).append("\n");
        }
    }

    nghttp2_hd_inflater* inflater_ = nullptr;
    connection_answer found_;
    std::string block_;
    std::uint32_t in_head_ = 0;  // the stream of a head under way
    bool ends_ = false;          // the frame under way ends its stream
};

inline connection_answer read_answers(std::string_view sent) {
    return std::move(answer_reader(sent).found());
}

}  // namespace coppice::test
