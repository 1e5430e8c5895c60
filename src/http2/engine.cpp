// The engine of engine.hpp: what it tells nghttp2, and what nghttp2 tells it.
#include "engine.hpp"

#include <coppice/http/internal/scan.hpp>

#include <algorithm>
#include <charconv>
#include <new>
#include <utility>

#include "fields.hpp"

namespace coppice::http2 {

namespace {

constexpr auto no_limit = std::uint32_t(-1);  // of streams: what HTTP/2 begins with

std::uint32_t code_of(http::stream_reset why) noexcept {
    switch (why) {
        case http::stream_reset::no_error:
            return NGHTTP2_NO_ERROR;
        case http::stream_reset::refused:
            return NGHTTP2_REFUSED_STREAM;
        case http::stream_reset::cancel:
            return NGHTTP2_CANCEL;
        case http::stream_reset::internal_error:
            break;
    }
    return NGHTTP2_INTERNAL_ERROR;
}

}  // namespace

// What nghttp2 calls. The last argument is the engine.
struct engine::callbacks {
    static engine& of(void* user) noexcept { return *static_cast<engine*>(user); }

    static int begin_frame(nghttp2_session*, const nghttp2_frame_hd* head, void* user) noexcept {
        of(user).note_frame(*head);
        return 0;
    }
    static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) noexcept {
        engine& e = of(user);
        stream* s = frame->headers.cat == NGHTTP2_HCAT_REQUEST ? e.open(frame->hd.stream_id)
                                                               : e.find(frame->hd.stream_id);
        if (s != nullptr) s->head.clear();
        return 0;
    }
    static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_bytes, const std::uint8_t* value, std::size_t value_bytes,
                      std::uint8_t, void* user) noexcept {
        engine& e = of(user);
        stream* const s = e.find(frame->hd.stream_id);
        if (s == nullptr || s->refused) return 0;
        try {
            if (s->head.add(text_of(name, name_bytes), text_of(value, value_bytes), e.limits_)) {
                return 0;
            }
        } catch (const std::bad_alloc&) {
        }
        s->refused = true;
        (void)nghttp2_submit_rst_stream(e.session_, NGHTTP2_FLAG_NONE, s->number,
                                        NGHTTP2_PROTOCOL_ERROR);
        return 0;
    }
    static int invalid_header(nghttp2_session*, const nghttp2_frame*, const std::uint8_t*,
                              std::size_t, const std::uint8_t*, std::size_t, std::uint8_t,
                              void*) noexcept {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // the stream is malformed
    }
    static int frame(nghttp2_session*, const nghttp2_frame* frame, void* user) noexcept {
        engine& e = of(user);
        const bool ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
        if (frame->hd.type == NGHTTP2_DATA) e.note_data(*frame, ended);
        if (frame->hd.type != NGHTTP2_HEADERS && !(frame->hd.type == NGHTTP2_DATA && ended)) {
            return 0;
        }
        stream* const s = e.find(frame->hd.stream_id);
        if (s == nullptr || s->refused) return 0;
        try {
            if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
                return e.head_ended(*frame, *s);
            }
            const bool trailers = frame->hd.type == NGHTTP2_HEADERS;
            if (trailers && s->is_tunnel) {  // RFC 9113 section 8.5
                return nghttp2_submit_rst_stream(e.session_, NGHTTP2_FLAG_NONE, s->number,
                                                 NGHTTP2_PROTOCOL_ERROR);
            }
            if (!ended || s->user == nullptr) return 0;
            if (!s->user->end_input(trailers ? s->head.lines() : std::string_view())) e.give_up(*s);
        } catch (const std::bad_alloc&) {
            e.give_up(*s);
        }
        return 0;
    }
    static int data(nghttp2_session* session, std::uint8_t, std::int32_t number,
                    const std::uint8_t* bytes, std::size_t size, void* user) noexcept {
        engine& e = of(user);
        (void)nghttp2_session_consume_connection(session, size);
        stream* const s = e.find(number);
        if (s == nullptr || s->user == nullptr) return 0;
        if (!s->user->input(text_of(bytes, size))) e.give_up(*s);
        return 0;
    }
    static int stream_closed(nghttp2_session*, std::int32_t number, std::uint32_t code,
                             void* user) noexcept {
        engine& e = of(user);
        if (stream* const s = e.find(number)) e.close(*s, code != NGHTTP2_NO_ERROR);
        return 0;
    }
    static int sent(nghttp2_session*, const nghttp2_frame* frame, void* user) noexcept {
        of(user).note_sent(*frame);
        return 0;
    }
    // The fields of an answer, or its trailers, are more than nghttp2 sends; or the stream was
    // reset before them.
    static int not_sent(nghttp2_session*, const nghttp2_frame* frame, int, void* user) noexcept {
        engine& e = of(user);
        if (frame->hd.type == NGHTTP2_HEADERS && e.find(frame->hd.stream_id) != nullptr) {
            e.reset(frame->hd.stream_id, http::stream_reset::internal_error);
        }
        return 0;
    }
    static ssize_t read(nghttp2_session*, std::int32_t, std::uint8_t* room, std::size_t size,
                        std::uint32_t* flags, nghttp2_data_source* source, void* user) noexcept {
        const stream& s = *static_cast<const stream*>(source->ptr);
        if (s.user == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        const http::multiplexed_stream::taken t =
            s.user->take({reinterpret_cast<std::byte*>(room), size});
        if (t.bytes == 0 && !t.ended) return NGHTTP2_ERR_DEFERRED;
        if (t.ended) *flags |= NGHTTP2_DATA_FLAG_EOF;
        if (t.ended && !s.user->trailers().empty()) {
            if (!of(user).submit_trailers(s)) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        }
        return static_cast<ssize_t>(t.bytes);
    }

    static nghttp2_session_callbacks* table() {
        static nghttp2_session_callbacks* const made = [] {
            nghttp2_session_callbacks* t = nullptr;
            if (nghttp2_session_callbacks_new(&t) != 0) throw std::bad_alloc();
            nghttp2_session_callbacks_set_on_begin_frame_callback(t, &begin_frame);
            nghttp2_session_callbacks_set_on_begin_headers_callback(t, &begin_headers);
            nghttp2_session_callbacks_set_on_header_callback(t, &header);
            nghttp2_session_callbacks_set_on_invalid_header_callback(t, &invalid_header);
            nghttp2_session_callbacks_set_on_frame_recv_callback(t, &frame);
            nghttp2_session_callbacks_set_on_data_chunk_recv_callback(t, &data);
            nghttp2_session_callbacks_set_on_stream_close_callback(t, &stream_closed);
            nghttp2_session_callbacks_set_on_frame_send_callback(t, &sent);
            nghttp2_session_callbacks_set_on_frame_not_send_callback(t, &not_sent);
            return t;
        }();
        return made;
    }
};

engine::engine(const server_limits& most, http::multiplexed_streams& streams, bool secure,
               const http::limits& limit)
    : most_(most),
      limits_(limit),
      streams_(streams),
      secure_(secure),
      resets_left_(most.resets_max),
      frames_left_(most.idle_frames_max),
      ignored_(NGHTTP2_CLIENT_MAGIC_LEN) {
    nghttp2_option* options = nullptr;
    if (nghttp2_option_new(&options) != 0) throw std::bad_alloc();
    nghttp2_option_set_no_auto_window_update(options, 1);
    nghttp2_option_set_no_closed_streams(options, 1);  // it would keep as many as its limit says
    const int made = nghttp2_session_server_new2(&session_, callbacks::table(), this, options);
    nghttp2_option_del(options);
    if (made != 0) throw std::bad_alloc();
    const auto list_bytes = static_cast<std::uint32_t>(
        std::min<std::size_t>(limits_.header_bytes_max, std::uint32_t{1} << 30));
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, no_limit},  // write() says ours
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, most_.stream_window_bytes},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, list_bytes},
        {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, most_.websockets ? 1u : 0u},
    };
    if (nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings)) != 0 ||
        nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, connection_window) !=
            0) {
        nghttp2_session_del(session_);
        throw std::bad_alloc();
    }
}

// The streams that are open are closed first, so that their users hear of it.
engine::~engine() {
    for (const auto& s : all_) {
        if (s->user != nullptr) std::exchange(s->user, nullptr)->closed(true);
    }
    nghttp2_session_del(session_);
}

engine::stream* engine::find(std::int32_t number) noexcept {
    return static_cast<stream*>(nghttp2_session_get_stream_user_data(session_, number));
}

// Takes a stream that the client opens. Returns nullptr if it is not served: then it is reset.
engine::stream* engine::open(std::int32_t number) noexcept {
    if (number > newest_ + 2) {
        skipped_ = newest_ + 1;
        skipped_to_ = number;
    }
    newest_ = number;
    stream* const s = take_spare(number);
    if (s == nullptr) reset(number, http::stream_reset::refused);
    return s;
}

engine::stream* engine::take_spare(std::int32_t number) noexcept {
    if (all_.size() - spare_.size() == most_.streams_max) {
        waste(resets_left_);
        return nullptr;
    }
    try {
        if (spare_.empty()) {
            spare_.reserve(all_.size() + 1);
            all_.push_back(std::make_unique<stream>());
            spare_.push_back(all_.back().get());
        }
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
    stream* const s = spare_.back();
    s->number = number;
    s->user = nullptr;
    s->refused = s->is_tunnel = false;
    if (nghttp2_session_set_stream_user_data(session_, number, s) != 0) return nullptr;
    spare_.pop_back();
    return s;
}

void engine::close(stream& s, bool reset) noexcept {
    (void)nghttp2_session_set_stream_user_data(session_, s.number, nullptr);
    if (s.user != nullptr) std::exchange(s.user, nullptr)->closed(reset);
    spare_.push_back(&s);
}

int engine::head_ended(const nghttp2_frame& frame, stream& s) {
    const bool ended = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    const std::string_view text = s.head.finish(!ended, secure_);
    if (text.empty()) {
        s.refused = true;
        return nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, s.number,
                                         NGHTTP2_PROTOCOL_ERROR);
    }
    s.is_tunnel = s.head.is_tunnel();
    earn(frames_left_, 2, most_.idle_frames_max);
    if (!is_shut_down_) s.user = streams_.begin(s.number, text, ended);
    if (s.user != nullptr) {
        begun_ = s.number;
    } else {
        reset(s.number, http::stream_reset::refused);
    }
    return 0;
}

// ---- The calls of the server -------------------------------------------------------------------

bool engine::receive(std::span<const std::byte> bytes) noexcept {
    const bool lives = ignored_.pass(bytes, [this](std::span<const std::byte> piece) {
        return nghttp2_session_mem_recv(session_,
                                        reinterpret_cast<const std::uint8_t*>(piece.data()),
                                        piece.size()) >= 0;
    });
    for (std::size_t n = ignored_.take(); n != 0; --n) waste(frames_left_);
    return lives;
}

bool engine::write(std::string& out) noexcept {
    if (unwritten_.empty()) {
        const std::uint8_t* bytes = nullptr;
        const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
        if (size <= 0) return receipts_.write(out);
        unwritten_ = text_of(bytes, static_cast<std::size_t>(size));  // valid until the next call
    }
    try {
        out.append(unwritten_);
    } catch (const std::bad_alloc&) {
        return false;
    }
    announce_streams(out.data() + out.size() - unwritten_.size());
    unwritten_ = {};
    return true;
}

// Puts streams_max into the server's SETTINGS, whose first entry it is. nghttp2 ends the connection
// of a client that exceeds a limit of nghttp2's own. RFC 9113 section 5.1.2 ends the stream alone,
// as open() does.
void engine::announce_streams(char* frame) const noexcept {
    constexpr std::size_t type_at = 3, flags_at = 4, value_at = 11;
    if (frame[type_at] != NGHTTP2_SETTINGS || frame[flags_at] != NGHTTP2_FLAG_NONE) return;
    std::uint32_t value = most_.streams_max;
    for (std::size_t i = 4; i-- != 0; value >>= 8) frame[value_at + i] = static_cast<char>(value);
}

bool engine::is_finished() const noexcept {
    return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

// Splits a head into pairs. The names, and the status, lie in names_.
bool engine::collect(std::string_view head, int& status) {
    names_.assign(head);
    pairs_.clear();
    const std::string_view all = names_;
    const std::size_t end = all.find("\r\n");
    const std::string_view code = all.substr(0, end).substr(std::string_view("HTTP/1.1 ").size());
    (void)std::from_chars(code.data(), code.data() + 3, status);
    pairs_.push_back(pair_of(":status", code.substr(0, 3)));
    return collect_fields(end + 2);
}

// Splits the field lines of names_ from there on, up to an empty line or the end.
bool engine::collect_fields(std::size_t from) {
    using http::internal::trim;
    std::size_t end = 0;
    for (std::string_view rest = std::string_view(names_).substr(from);
         !rest.empty() && !rest.starts_with("\r\n"); rest.remove_prefix(end + 2)) {
        end = rest.find("\r\n");
        const std::size_t colon = rest.find(':');
        if (end == rest.npos || colon > end) return false;
        char* const begin = names_.data() + (rest.data() - names_.data());
        std::transform(begin, begin + colon, begin, http::internal::lower);
        const std::string_view name = rest.substr(0, colon);
        if (is_of_connection(name)) continue;
        pairs_.push_back(pair_of(name, trim(rest.substr(colon + 1, end - colon - 1))));
    }
    return true;
}

// Makes the 101 that was collected the answer to an extended CONNECT (RFC 8441 section 5).
void engine::open_tunnel(int& status) noexcept {
    status = 200;
    pairs_.front() = pair_of(":status", "200");
    std::erase_if(pairs_, [](const nghttp2_nv& p) {
        return text_of(p.name, p.namelen) == "sec-websocket-accept";
    });
}

bool engine::answer(std::int32_t number, std::string_view head, bool ended) noexcept {
    stream* const s = find(number);
    if (s == nullptr) return true;
    try {
        int status = 0;
        if (!collect(head, status)) return false;
        if (status == 101) open_tunnel(status);
        if (status < 200) {
            return nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, number, nullptr,
                                          pairs_.data(), pairs_.size(), nullptr) == 0;
        }
        nghttp2_data_provider provider{};
        provider.source.ptr = s;
        provider.read_callback = &callbacks::read;
        return nghttp2_submit_response(session_, number, pairs_.data(), pairs_.size(),
                                       ended ? nullptr : &provider) == 0;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

bool engine::submit_trailers(const stream& s) {
    try {
        pairs_.clear();
        names_.assign(s.user->trailers());
        return collect_fields(0) &&
               nghttp2_submit_trailer(session_, s.number, pairs_.data(), pairs_.size()) == 0;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// Resets a stream for lack of memory. "Refused" lets the client repeat its request, so a handler
// must not have it.
void engine::give_up(const stream& s) noexcept {
    reset(s.number,
          s.user == nullptr ? http::stream_reset::refused : http::stream_reset::internal_error);
}

void engine::reset(std::int32_t number, http::stream_reset why) noexcept {
    (void)nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, number, code_of(why));
}

// What arrives before the GOAWAY is sent is beyond its last stream: the client may repeat it.
void engine::shut_down() noexcept {
    is_shut_down_ = true;
    (void)nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, begun_, NGHTTP2_NO_ERROR, nullptr, 0);
}

}  // namespace coppice::http2
