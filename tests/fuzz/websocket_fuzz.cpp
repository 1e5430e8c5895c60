// The frames of WebSocket: whole, split, and bytewise input agree; limits hold; and a message that
// was accepted, framed again in another way, decodes to the same.
#include <coppice/http/internal/websocket_codec.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "verify.hpp"

namespace {

using namespace coppice;
using namespace coppice::http::internal;
using test::verify;
using test::verify_equal;
using found = websocket_decoder::found;

struct choices {
    websocket_decoder::sender from;
    bool deflated;
    websocket_limits limits;
    bool directly = false;  // long payloads are written into the decoder's room
};

// Returns what a decoder finds in bytes that come in pieces: `first` bytes, then `step` at a time.
std::string decoded(std::string_view bytes, const choices& how, std::size_t first,
                    std::size_t step) {
    websocket_decoder d(how.from, how.limits,
                        how.deflated ? std::make_unique<message_inflater>(15, true) : nullptr);
    std::string out;
    std::string behind;
    for (std::size_t size = first; !bytes.empty(); size = step) {
        std::string_view piece = bytes.substr(0, size);
        const std::span<char> room = how.directly ? d.room() : std::span<char>();
        bool into_room = !room.empty();
        if (into_room) piece = piece.substr(0, room.size());
        bytes.remove_prefix(piece.size());
        while (!piece.empty()) {
            websocket_decoder::result r;
            if (std::exchange(into_room, false)) {
                piece.copy(room.data(), piece.size());
                r.what = d.filled(piece.size(), behind);
                r.consumed = piece.size() - behind.size();
                verify_equal(behind, std::string(piece.substr(r.consumed)), "behind");
            } else {
                r = d.decode(piece);
                verify(r.consumed <= piece.size(), "consumed more than there is");
                verify(r.what != found::nothing || r.consumed == piece.size(), "left some bytes");
            }
            piece.remove_prefix(r.consumed);
            out += std::to_string(static_cast<int>(r.what)) + ":";
            if (r.what == found::nothing) out.resize(out.size() - 2);
            if (r.what == found::message) {
                verify(d.message().size() <= how.limits.message_bytes_max, "a long message");
                verify(!d.is_text() || is_utf8(d.message()), "a text is not UTF-8");
                out.append(d.is_text() ? "t" : "b").append(d.message());
            } else if (r.what == found::ping || r.what == found::pong) {
                out.append(d.control());
            } else if (r.what == found::close || r.what == found::error) {
                verify(d.decode("more").consumed == 0, "decodes on after the end");
                return out + std::to_string(d.code());
            }
        }
    }
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0 || size > 60'000) return 0;
    const unsigned choice = data[0];
    choices how{
        (choice & 1) != 0 ? websocket_decoder::sender::client : websocket_decoder::sender::server,
        (choice & 2) != 0,
        {}};
    how.limits.message_bytes_max = (choice & 4) != 0 ? 200 : 100'000;
    if ((choice & 8) != 0) how.limits.fragments_max = 3;
    const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);

    const std::string whole = decoded(bytes, how, bytes.npos, bytes.npos);
    verify_equal(decoded(bytes, how, 1, 1), whole, "bytewise");
    verify_equal(decoded(bytes, how, 3, 3), whole, "in threes");
    const std::size_t at = bytes.empty() ? 1 : 1 + (bytes.size() * 31 + choice) % bytes.size();
    verify_equal(decoded(bytes, how, at, bytes.npos), whole, "split");
    how.directly = true;
    verify_equal(decoded(bytes, how, at, 4096), whole, "directly");

    // Any bytes are a message.
    const choices again{websocket_decoder::sender::server, true, {}};
    std::string frame;
    append_frame(frame, websocket_opcode::binary, bytes);
    verify_equal(decoded(frame, again, at, bytes.npos), "1:b" + std::string(bytes), "again");
    message_deflater deflater(9 + static_cast<int>(choice % 7), false, 1);
    std::string packed;
    deflater.deflate(bytes, packed);
    frame.clear();
    append_frame(frame, websocket_opcode::binary, packed, true);
    verify_equal(decoded(frame, again, at, bytes.npos), "1:b" + std::string(bytes), "deflated");
    return 0;
}
