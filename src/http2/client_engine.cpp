// The engine of client_engine.hpp: what it tells nghttp2, and what nghttp2 tells it.
#include "client_engine.hpp"

#include <coppice/http/internal/scan.hpp>
#include <coppice/http/url.hpp>

#include <algorithm>
#include <charconv>
#include <exception>
#include <new>
#include <utility>

#include "fields.hpp"

namespace coppice::http2 {

namespace {

// A head whose fields are so many times too large ends its stream.
constexpr std::size_t endured_answer_factor = 4;

}  // namespace

// What nghttp2 calls. The last argument is the engine.
struct client_engine::callbacks {
    static client_engine& of(void* user) noexcept { return *static_cast<client_engine*>(user); }

    static int begin_frame(nghttp2_session*, const nghttp2_frame_hd* head, void* user) noexcept {
        of(user).note_frame(*head);
        return 0;
    }
    static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user) noexcept {
        stream* const s = of(user).find(frame->hd.stream_id);
        if (s == nullptr) return 0;  // it was canceled
        s->status = 0;
        s->fields = s->bytes = 0;
        s->lines.clear();
        return 0;
    }
    static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                      std::size_t name_bytes, const std::uint8_t* value, std::size_t value_bytes,
                      std::uint8_t, void* user) noexcept {
        client_engine& e = of(user);
        stream* const s = e.find(frame->hd.stream_id);
        if (s == nullptr || s->user == nullptr) return 0;
        try {
            if (!e.add(*s, text_of(name, name_bytes), text_of(value, value_bytes))) {
                e.give_up(*s, http::answer_loss::too_large);
            }
        } catch (const std::bad_alloc&) {
            e.cancel(s->number);
        }
        return 0;
    }
    static int invalid_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t*,
                              std::size_t, const std::uint8_t*, std::size_t, std::uint8_t,
                              void* user) noexcept {
        stream* const s = of(user).find(frame->hd.stream_id);
        if (s != nullptr && s->user != nullptr) s->user->lost(http::answer_loss::malformed);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // the stream is malformed
    }
    static int frame(nghttp2_session*, const nghttp2_frame* frame, void* user) noexcept {
        client_engine& e = of(user);
        if (frame->hd.type == NGHTTP2_DATA) e.note_data(*frame);
        stream* const s = e.find(frame->hd.stream_id);
        if (s == nullptr || s->user == nullptr) return 0;
        const bool ended = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
        if (frame->hd.type == NGHTTP2_HEADERS) {
            e.head_ended(*frame, *s);
        } else if (frame->hd.type == NGHTTP2_DATA && ended) {
            if (!s->user->end_input({})) e.cancel(s->number);
        }
        return 0;
    }
    static int data(nghttp2_session* session, std::uint8_t, std::int32_t number,
                    const std::uint8_t* bytes, std::size_t size, void* user) noexcept {
        client_engine& e = of(user);
        (void)nghttp2_session_consume_connection(session, size);
        stream* const s = e.find(number);
        if (s == nullptr || s->user == nullptr) return 0;
        if (!s->user->input(text_of(bytes, size))) e.cancel(number);
        return 0;
    }
    static int stream_closed(nghttp2_session*, std::int32_t number, std::uint32_t code,
                             void* user) noexcept {
        client_engine& e = of(user);
        if (stream* const s = e.find(number)) e.close(*s, code);
        return 0;
    }
    static int sent(nghttp2_session*, const nghttp2_frame* frame, void* user) noexcept {
        of(user).note_sent(*frame);
        return 0;
    }
    // The fields of a request, or its trailers, are more than nghttp2 sends.
    static int not_sent(nghttp2_session*, const nghttp2_frame* frame, int why,
                        void* user) noexcept {
        client_engine& e = of(user);
        stream* const s = e.find(frame->hd.stream_id);
        if (frame->hd.type != NGHTTP2_HEADERS || why != NGHTTP2_ERR_FRAME_SIZE_ERROR ||
            s == nullptr || s->user == nullptr) {
            return 0;
        }
        if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {  // nghttp2 closes the stream by itself
            s->user->lost(http::answer_loss::too_large);
        } else {
            e.give_up(*s, http::answer_loss::too_large);
        }
        return 0;
    }
    static ssize_t read(nghttp2_session*, std::int32_t, std::uint8_t* room, std::size_t size,
                        std::uint32_t* flags, nghttp2_data_source* source, void* user) noexcept {
        stream& s = *static_cast<stream*>(source->ptr);
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

client_engine::client_engine(const client_limits& most, bool secure, const http::limits& limit)
    : most_(most),
      limits_(limit),
      secure_(secure),
      frames_left_(most.idle_frames_max),
      ignored_(0) {
    nghttp2_option* options = nullptr;
    if (nghttp2_option_new(&options) != 0) throw std::bad_alloc();
    nghttp2_option_set_no_auto_window_update(options, 1);
    const int made = nghttp2_session_client_new2(&session_, callbacks::table(), this, options);
    nghttp2_option_del(options);
    if (made != 0) throw std::bad_alloc();
    const auto list_bytes = static_cast<std::uint32_t>(
        std::min<std::size_t>(limits_.header_bytes_max, std::uint32_t{1} << 30));
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, most_.stream_window_bytes},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, list_bytes},
    };
    if (nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, std::size(settings)) != 0 ||
        nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, connection_window) !=
            0) {
        nghttp2_session_del(session_);
        throw std::bad_alloc();
    }
}

// The streams that are open are closed first, so that their users hear of it.
client_engine::~client_engine() {
    for (const auto& s : all_) {
        if (s->user == nullptr) continue;
        if (is_wrong_) s->user->lost(http::answer_loss::malformed);
        std::exchange(s->user, nullptr)->closed(true);
    }
    nghttp2_session_del(session_);
}

client_engine::stream* client_engine::find(std::int32_t number) noexcept {
    return static_cast<stream*>(nghttp2_session_get_stream_user_data(session_, number));
}

client_engine::stream& client_engine::spare_stream() {
    if (spare_.empty()) {
        spare_.reserve(all_.size() + 1);
        all_.push_back(std::make_unique<stream>());
        spare_.push_back(all_.back().get());
    }
    return *spare_.back();
}

void client_engine::close(stream& s, std::uint32_t code) noexcept {
    (void)nghttp2_session_set_stream_user_data(session_, s.number, nullptr);
    spare_.push_back(&s);
    if (s.user == nullptr) return;
    // nghttp2 also uses this code for streams that a GOAWAY leaves out, or that begin after it.
    if (code == NGHTTP2_REFUSED_STREAM) s.user->lost(http::answer_loss::unprocessed);
    if (code == NGHTTP2_HTTP_1_1_REQUIRED) s.user->lost(http::answer_loss::needs_http1);
    std::exchange(s.user, nullptr)->closed(code != NGHTTP2_NO_ERROR);
}

// Takes a field of an answer. Returns false if so much has come that the stream must end. nghttp2
// has checked the bytes of the field. What is beyond a limit is not kept, but enough of it for the
// reader of HTTP/1.1's heads to refuse the head.
bool client_engine::add(stream& s, std::string_view name, std::string_view value) {
    constexpr std::size_t overhead = 4;  // of a line: ": " and CRLF
    s.bytes += name.size() + value.size() + overhead;
    if (s.bytes / endured_answer_factor > limits_.header_bytes_max) return false;
    if (name == ":status") {
        (void)std::from_chars(value.data(), value.data() + value.size(), s.status);
        return true;
    }
    if (is_of_connection(name) || !is_one_line(value)) return true;
    if (s.lines.size() > limits_.header_bytes_max || s.fields > limits_.fields_max) return true;
    ++s.fields;
    s.lines.append(name).append(": ").append(value).append("\r\n");
    return true;
}

void client_engine::head_ended(const nghttp2_frame& frame, stream& s) {
    const bool ended = (frame.hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    if (s.is_answered) {
        if (ended && !s.user->end_input(s.lines)) cancel(s.number);
        return;
    }
    if (s.status < 200) return;  // an interim head
    s.is_answered = true;
    if (!s.user->head(s.status, s.lines, ended)) cancel(s.number);
}

void client_engine::give_up(stream& s, http::answer_loss why) noexcept {
    s.user->lost(why);
    std::exchange(s.user, nullptr)->closed(true);
    cancel(s.number);
}

// ---- What a server may waste -------------------------------------------------------------------

// A frame of a head is paid for by the request, which earns more than one.
void client_engine::note_frame(const nghttp2_frame_hd& head) noexcept {
    ignored_.begun(head);
    if (head.type == NGHTTP2_CONTINUATION) {
        if (++continuations_ > continuations_most) be_calm();
        return;
    }
    continuations_ = 0;
    if (head.type != NGHTTP2_DATA || head.length == 0) waste_frame();  // see note_data(), too
}

// Called for a frame of an open stream when all of it has come. Padding carries nothing.
void client_engine::note_data(const nghttp2_frame& frame) noexcept {
    if (frame.hd.length != frame.data.padlen) {
        earn(frames_left_, 1, most_.idle_frames_max);
    } else if (frame.hd.length != 0) {
        waste_frame();
    }
}

void client_engine::note_sent(const nghttp2_frame& frame) noexcept {
    if (frame.hd.type == NGHTTP2_DATA || frame.hd.type == NGHTTP2_HEADERS) {
        earn(frames_left_, 4, most_.idle_frames_max);
    } else if (frame.hd.type == NGHTTP2_GOAWAY) {
        is_wrong_ = is_wrong_ || frame.goaway.error_code != NGHTTP2_NO_ERROR;
    } else if (frame.hd.type == NGHTTP2_RST_STREAM &&
               frame.rst_stream.error_code != NGHTTP2_CANCEL) {
        stream* const s = find(frame.hd.stream_id);
        if (s != nullptr && s->user != nullptr) s->user->lost(http::answer_loss::malformed);
    }
}

void client_engine::waste_frame() noexcept {
    if (frames_left_ == 0) {
        be_calm();
    } else {
        --frames_left_;
    }
}

void client_engine::be_calm() noexcept {
    if (std::exchange(calmed_, true)) return;
    is_wrong_ = true;
    (void)nghttp2_session_terminate_session(session_, NGHTTP2_ENHANCE_YOUR_CALM);
}

// ---- The calls of the client -------------------------------------------------------------------

bool client_engine::receive(std::span<const std::byte> bytes) noexcept {
    const bool lives = ignored_.pass(bytes, [this](std::span<const std::byte> piece) {
        const ssize_t taken = nghttp2_session_mem_recv(
            session_, reinterpret_cast<const std::uint8_t*>(piece.data()), piece.size());
        if (taken < 0) is_broken_ = true;
        if (taken < 0 && taken != NGHTTP2_ERR_NOMEM) is_wrong_ = true;
        return taken >= 0;
    });
    for (std::size_t n = ignored_.take(); n != 0; --n) waste_frame();
    return lives && !calmed_;
}

bool client_engine::write(std::string& out) noexcept {
    if (is_broken_) return false;
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size < 0) is_broken_ = true;
    if (size <= 0) return false;
    try {
        out.append(text_of(bytes, static_cast<std::size_t>(size)));
    } catch (const std::bad_alloc&) {
        is_broken_ = true;
        return false;
    }
    return true;
}

bool client_engine::is_finished() const noexcept {
    return is_broken_ ||
           (nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0);
}

std::size_t client_engine::streams_max() const noexcept {
    const std::uint32_t theirs =
        nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    return std::min(most_.streams_max, theirs);
}

bool client_engine::is_accepting() const noexcept {
    return !is_broken_ && !calmed_ && nghttp2_session_check_request_allowed(session_) != 0;
}

// Adds the fields of `text` from a position on to the pairs, which view it.
bool client_engine::collect_fields(std::string& text, std::size_t from) {
    using http::internal::trim;
    std::string_view rest = std::string_view(text).substr(from);
    for (std::size_t end = 0; !rest.empty() && !rest.starts_with("\r\n");
         rest.remove_prefix(end + 2)) {
        end = rest.find("\r\n");
        const std::size_t colon = rest.find(':');
        if (end == rest.npos || colon > end) return false;
        char* const begin = text.data() + (rest.data() - text.data());
        std::transform(begin, begin + colon, begin, http::internal::lower);
        const std::string_view name = rest.substr(0, colon);
        const std::string_view value = trim(rest.substr(colon + 1, end - colon - 1));
        // "te" may only say that trailers are welcome (RFC 9113 section 8.2.2).
        if (is_of_connection(name) || name == "host" || (name == "te" && value != "trailers")) {
            continue;
        }
        pairs_.push_back(pair_of(name, value));
    }
    return true;
}

// Splits a request's head into pairs. The texts lie in names_ and target_. The first field is Host.
bool client_engine::collect_request(std::string_view head) {
    using http::internal::trim;
    constexpr std::string_view version = " HTTP/1.1";
    constexpr std::string_view host = "host:";
    names_.assign(head);
    pairs_.clear();
    const std::string_view text = names_;
    const std::size_t line_end = text.find("\r\n");
    const std::size_t space = text.find(' ');
    const std::size_t fields = line_end + 2;
    const std::size_t host_end = text.find("\r\n", fields);
    if (line_end == text.npos || space + version.size() >= line_end || host_end == text.npos) {
        return false;
    }
    std::string_view target = text.substr(space + 1, line_end - version.size() - space - 1);
    std::string_view scheme = secure_ ? "https" : "http";
    std::string_view authority = trim(text.substr(fields, host_end - fields).substr(host.size()));
    if (!target.starts_with('/') && target != "*") {
        const http::url absolute(target);
        target_ = std::string(absolute.scheme()) + "\n" + std::string(absolute.authority()) + "\n" +
                  std::string(absolute.target());
        const std::string_view parts = target_;
        const std::size_t first = parts.find('\n');
        const std::size_t second = parts.find('\n', first + 1);
        scheme = parts.substr(0, first);
        authority = parts.substr(first + 1, second - first - 1);
        target = parts.substr(second + 1);
    }
    pairs_.push_back(pair_of(":method", text.substr(0, space)));
    pairs_.push_back(pair_of(":scheme", scheme));
    pairs_.push_back(pair_of(":authority", authority));
    pairs_.push_back(pair_of(":path", target));
    return collect_fields(names_, host_end + 2);
}

std::int32_t client_engine::request(http::requesting_stream& user, std::string_view head,
                                    bool ended) noexcept {
    try {
        stream& s = spare_stream();
        if (!collect_request(head)) return -1;
        nghttp2_data_provider provider{};
        provider.source.ptr = &s;
        provider.read_callback = &callbacks::read;
        const std::int32_t number = nghttp2_submit_request(
            session_, nullptr, pairs_.data(), pairs_.size(), ended ? nullptr : &provider, &s);
        if (number <= 0) return 0;
        s.number = number;
        s.user = &user;
        s.is_answered = false;
        spare_.pop_back();
        return number;
    } catch (const std::bad_alloc&) {
        return 0;
    } catch (const std::exception&) {  // the target is no URL
        return -1;
    }
}

bool client_engine::submit_trailers(stream& s) {
    try {
        pairs_.clear();
        names_.assign(s.user->trailers());
        return collect_fields(names_, 0) &&
               nghttp2_submit_trailer(session_, s.number, pairs_.data(), pairs_.size()) == 0;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

void client_engine::wake(std::int32_t number) noexcept {
    (void)nghttp2_session_resume_data(session_, number);
}

void client_engine::consumed(std::int32_t number, std::size_t bytes) noexcept {
    (void)nghttp2_session_consume_stream(session_, number, bytes);
}

void client_engine::cancel(std::int32_t number) noexcept {
    (void)nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, number, NGHTTP2_CANCEL);
}

void client_engine::shut_down() noexcept {
    if (calmed_) return;  // that says it
    (void)nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, nullptr, 0);
}

}  // namespace coppice::http2
