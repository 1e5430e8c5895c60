// The compression of WebSocket's messages (RFC 7692), with zlib.
#include <coppice/http/internal/websocket_codec.hpp>

#include <zlib.h>

#include <algorithm>
#include <new>

namespace coppice::http::internal {

namespace {

// The end of a flushed block, which senders leave out (RFC 7692 section 7.2.1).
constexpr std::string_view flushed_end("\0\0\xff\xff", 4);
constexpr std::size_t inflate_step = 4096;

}  // namespace

struct message_inflater::stream : z_stream {
    stream() noexcept : z_stream{} {}
};

message_inflater::message_inflater(int window_bits, bool takes_over)
    : stream_(std::make_unique<stream>()), takes_over_(takes_over) {
    // A larger window than the sender's is always right.
    if (::inflateInit2(stream_.get(), -window_bits) != Z_OK) throw std::bad_alloc();
}

message_inflater::~message_inflater() {
    ::inflateEnd(stream_.get());
}

// Inflates in small steps, so that a short input never makes a large buffer at once.
message_inflater::outcome message_inflater::add(std::string_view bytes, std::string& out,
                                                std::size_t most) {
    z_stream& z = *stream_;
    z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    z.avail_in = static_cast<uInt>(bytes.size());
    for (;;) {
        if (ended_ && z.avail_in != 0) {
            // A block may say that it is the last one; another may follow all the same.
            ::inflateReset(&z);
            ended_ = false;
        }
        const std::size_t before = out.size();
        // One byte beyond the limit tells whether there is more.
        const std::size_t room = std::min(inflate_step, most - before + 1);
        out.resize(before + room);
        z.next_out = reinterpret_cast<Bytef*>(out.data() + before);
        z.avail_out = static_cast<uInt>(room);
        const int result = ::inflate(&z, Z_SYNC_FLUSH);
        out.resize(before + room - z.avail_out);
        if (out.size() > most) return outcome::too_large;
        if (result == Z_STREAM_END) {
            ended_ = true;
            if (z.avail_in == 0) return outcome::good;
        } else if (result == Z_MEM_ERROR) {
            throw std::bad_alloc();
        } else if (result != Z_OK && result != Z_BUF_ERROR) {
            return outcome::malformed;
        } else if (z.avail_out != 0) {
            return z.avail_in == 0 ? outcome::good : outcome::malformed;
        }
    }
}

message_inflater::outcome message_inflater::finish(std::string& out, std::size_t most) {
    outcome result = outcome::good;
    if (!ended_) result = add(flushed_end, out, most);
    if (result == outcome::good && (!takes_over_ || ended_)) {
        ::inflateReset(stream_.get());
        ended_ = false;
    }
    return result;
}

struct message_deflater::stream : z_stream {
    stream() noexcept : z_stream{} {}
};

message_deflater::message_deflater(int window_bits, bool takes_over, int level)
    : stream_(std::make_unique<stream>()), takes_over_(takes_over) {
    const int memory = std::clamp(window_bits - 7, 1, 8);
    if (::deflateInit2(stream_.get(), level, Z_DEFLATED, -window_bits, memory,
                       Z_DEFAULT_STRATEGY) != Z_OK) {
        throw std::bad_alloc();
    }
}

message_deflater::~message_deflater() {
    ::deflateEnd(stream_.get());
}

void message_deflater::deflate(std::string_view message, std::string& out) {
    z_stream& z = *stream_;
    constexpr std::size_t most = std::size_t{1} << 30;  // zlib counts in 32 bits
    const std::size_t begin = out.size();
    do {
        const std::string_view piece = message.substr(0, most);
        message.remove_prefix(piece.size());
        z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
        z.avail_in = static_cast<uInt>(piece.size());
        do {
            const std::size_t before = out.size();
            const std::size_t room = std::clamp<std::size_t>(z.avail_in, 64, 16 * 1024);
            out.resize(before + room);
            z.next_out = reinterpret_cast<Bytef*>(out.data() + before);
            z.avail_out = static_cast<uInt>(room);
            ::deflate(&z, message.empty() ? Z_SYNC_FLUSH : Z_NO_FLUSH);
            out.resize(before + room - z.avail_out);
        } while (z.avail_out == 0);
    } while (!message.empty());
    if (std::string_view(out).substr(begin).ends_with(flushed_end)) {
        out.resize(out.size() - flushed_end.size());
    }
    // An empty message is one empty block (RFC 7692 section 7.2.3.6).
    if (out.size() == begin) out.push_back('\0');
    if (!takes_over_) ::deflateReset(&z);
}

}  // namespace coppice::http::internal
