// A toy that encrypts: tests of the seam io/secure_engine.hpp without OpenSSL.
#pragma once
// It protects nothing. A frame has a kind, a length, a sum, and content that is mixed with the
// frame's number, so that a byte which is lost, repeated, or changed is found:
//
//   h  the client's hello: the host that it wants   d  content
//   s  the server's hello: its name, ALPN           k  an answer to every third d, which is dropped
//   f  the client has seen the server's hello       e  the end
//   a  an alert: the sender has failed

#include <coppice/io/secure_engine.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace coppice::test {

// Makes the frames of one direction, or reads them.
class toy_frames {
public:
    static constexpr std::size_t head_bytes = 7;
    static constexpr std::size_t content_max = 4096;

    std::string make(char kind, std::string_view content = {}) {
        std::string frame(1, kind);
        put(frame, content.size(), 2);
        put(frame, sum(kind, content), 4);
        for (std::size_t i = 0; i != content.size(); ++i) frame += mixed(content[i], i);
        ++number_;
        return frame;
    }
    static std::size_t content_bytes(std::string_view head) { return get(head.substr(1, 2)); }
    // Returns false if the frame is not the one that was made.
    bool read(std::string_view frame, std::string& content) {
        content.assign(frame.substr(head_bytes));
        for (std::size_t i = 0; i != content.size(); ++i) content[i] = mixed(content[i], i);
        const bool good = get(frame.substr(3, 4)) == sum(frame[0], content);
        ++number_;
        return good;
    }

private:
    char mixed(char c, std::size_t at) const {
        return static_cast<char>(static_cast<unsigned char>(c) ^ ((number_ * 37 + at + 11) & 255));
    }
    std::size_t sum(char kind, std::string_view content) const {
        std::uint32_t all = 2166136261u;
        const auto add = [&all](char c) {
            all = (all ^ static_cast<unsigned char>(c)) * 16777619u;
        };
        add(kind);
        add(static_cast<char>(number_ & 255));
        for (const char c : content) add(c);
        return all;
    }
    static void put(std::string& to, std::size_t value, int bytes) {
        while (bytes-- != 0) to += static_cast<char>(value >> (8 * bytes) & 255);
    }
    static std::size_t get(std::string_view from) {
        std::size_t value = 0;
        for (const char c : from) value = value << 8 | static_cast<unsigned char>(c);
        return value;
    }
    std::size_t number_ = 0;
};

// One side of a connection.
class toy_engine final : public io::secure_engine {
public:
    static constexpr std::size_t hello_bytes = 100;         // of a client
    static constexpr std::size_t certificate_bytes = 3000;  // of a server

    // A client that wants this host, or a server with this name, which chooses the protocol.
    explicit toy_engine(std::string_view host) : is_client_(true), name_(host) {}
    toy_engine(std::string_view name, std::string_view protocol)
        : is_client_(false), name_(name), protocol_(protocol) {}

    static std::string hello_of_client(std::string_view host) {
        std::string text(host);
        text.resize(hello_bytes);
        return text;
    }
    static std::string hello_of_server(std::string_view name, std::string_view protocol) {
        std::string text(name);
        text.resize(hello_bytes);
        text += protocol;
        text.resize(certificate_bytes);
        return text;
    }

    void input(std::span<const std::byte> bytes) noexcept override {
        input_ = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    }
    std::size_t unread() const noexcept override { return input_.size(); }
    void end_input() noexcept override { input_ended_ = true; }
    void output(std::span<std::byte> room) noexcept override {
        room_ = room;
        written_ = 0;
    }
    std::size_t written() const noexcept override { return written_; }

    io::secure_progress handshake() noexcept override {
        if (failure_) return failed(failure_);
        if (is_client_ && phase_ == 0) {
            if (!write('h', hello_of_client(name_))) return {io::secure_step::needs_output};
            phase_ = 1;
        }
        while (phase_ != 2) {
            if (!has_room(certificate_bytes)) return {io::secure_step::needs_output};
            const io::secure_progress p = next_frame();
            if (p.what != io::secure_step::done) return p;
            if (!take_hello()) return failed(std::make_error_code(std::errc::permission_denied));
        }
        return {};
    }
    io::secure_progress receive(std::span<std::byte> into) noexcept override {
        for (;;) {
            if (const std::size_t n = std::min(into.size(), content_.size()); n != 0) {
                std::memcpy(into.data(), content_.data(), n);
                content_.erase(0, n);
                return {io::secure_step::done, n};
            }
            if (owes_answer_ && !answer()) return {io::secure_step::needs_output};
            if (failure_) return failed(failure_);
            if (peer_ended_) return {io::secure_step::ended};
            const io::secure_progress p = next_frame();
            if (p.what != io::secure_step::done) return p;
            if (kind_ == 'd') {
                content_ = std::exchange(frame_content_, {});
                owes_answer_ = ++received_ % 3 == 0;
                if (owes_answer_) (void)answer();
            } else if (kind_ == 'e') {
                peer_ended_ = true;
            } else if (kind_ != 'k') {
                return failed(std::make_error_code(std::errc::bad_message));
            }
        }
    }
    io::secure_progress send(std::span<const std::byte> bytes) noexcept override {
        if (failure_) return failed(failure_);
        const std::size_t n = std::min(bytes.size(), toy_frames::content_max);
        const std::string_view some(reinterpret_cast<const char*>(bytes.data()), n);
        if (!write('d', some)) return {io::secure_step::needs_output};
        return {io::secure_step::done, n};
    }
    io::secure_progress end() noexcept override {
        if (failure_) return failed(failure_);
        if (!write('e')) return {io::secure_step::needs_output};
        return {};
    }
    std::string_view protocol() const noexcept override { return protocol_; }

private:
    bool has_room(std::size_t content) const {
        return room_.size() - written_ >= toy_frames::head_bytes + content;
    }
    bool write(char kind, std::string_view content = {}) {
        if (!has_room(content.size())) return false;
        const std::string frame = out_.make(kind, content);
        std::memcpy(room_.data() + written_, frame.data(), frame.size());
        written_ += frame.size();
        return true;
    }
    bool answer() {
        if (!write('k')) return false;
        owes_answer_ = false;
        return true;
    }
    // Takes what has come, until a frame is whole.
    io::secure_progress next_frame() {
        if (pull(toy_frames::head_bytes)) {
            const std::size_t content = toy_frames::content_bytes(frame_);
            if (content > toy_frames::content_max) {
                return failed(std::make_error_code(std::errc::protocol_error));
            }
            if (pull(toy_frames::head_bytes + content)) {
                kind_ = frame_[0];
                if (in_.read(std::exchange(frame_, {}), frame_content_) && kind_ != 'a') return {};
                return failed(std::make_error_code(std::errc::protocol_error));
            }
        }
        if (input_ended_) return failed(std::make_error_code(std::errc::connection_aborted));
        return {io::secure_step::needs_input};
    }
    // Returns true if this many bytes of the frame are there.
    bool pull(std::size_t bytes) {
        const std::size_t missing = bytes - std::min(bytes, frame_.size());
        const std::string_view some = input_.substr(0, missing);
        frame_ += some;
        input_.remove_prefix(some.size());
        return some.size() == missing;
    }
    bool take_hello() {
        if (is_client_) {
            if (kind_ != 's' || !frame_content_.starts_with(name_ + '\0')) return false;
            protocol_ = frame_content_.c_str() + hello_bytes;
            phase_ = 2;
            return write('f');
        }
        if (kind_ != (phase_ == 0 ? 'h' : 'f')) return false;
        return ++phase_ == 2 || write('s', hello_of_server(name_, protocol_));
    }
    io::secure_progress failed(std::error_code why) {
        if (!failure_) (void)write('a');
        failure_ = why;
        return {io::secure_step::failed, 0, why};
    }

    const bool is_client_;
    const std::string name_;
    std::string protocol_;
    toy_frames in_, out_;
    int phase_ = 0;  // 2: ready
    std::string_view input_;
    std::span<std::byte> room_;
    std::size_t written_ = 0;
    std::string frame_;  // what has come of it
    char kind_ = 0;
    std::string frame_content_;
    std::string content_;
    int received_ = 0;
    bool owes_answer_ = false;
    bool input_ended_ = false;
    bool peer_ended_ = false;
    std::error_code failure_;
};

// Makes servers' engines. The first `failing` calls find no memory.
class toy_server final : public io::server_security {
public:
    explicit toy_server(std::string name = "127.0.0.1", std::string protocol = "http/1.1",
                        int failing = 0)
        : name_(std::move(name)), protocol_(std::move(protocol)), failing_(failing) {}
    std::unique_ptr<io::secure_engine> accept() const override {
        if (failing_ != 0) {
            --failing_;
            throw std::bad_alloc();
        }
        return std::make_unique<toy_engine>(name_, protocol_);
    }

private:
    const std::string name_, protocol_;
    mutable int failing_;  // one loop calls accept()
};

class toy_client final : public io::client_security {
public:
    std::unique_ptr<io::secure_engine> connect(std::string_view host) const override {
        return std::make_unique<toy_engine>(host);
    }
};

// All bytes that a client sends to say this, and then the end; those of a server likewise.
inline std::string toy_bytes_of_client(std::string_view host, std::string_view text) {
    toy_frames frames;
    std::string all = frames.make('h', toy_engine::hello_of_client(host));
    all += frames.make('f');
    all += frames.make('d', text);
    return all + frames.make('e');
}
inline std::string toy_bytes_of_server(std::string_view name, std::string_view text) {
    toy_frames frames;
    std::string all = frames.make('s', toy_engine::hello_of_server(name, "http/1.1"));
    all += frames.make('d', text);
    return all + frames.make('e');
}
// The bytes of a client's handshake.
inline std::size_t toy_handshake_bytes() {
    return 2 * toy_frames::head_bytes + toy_engine::hello_bytes;
}

// Returns what the bytes of a server say to a client; `ended`: with an end.
inline std::string toy_text(std::string_view host, std::string_view bytes, bool& ended) {
    toy_engine engine(host);
    std::string room(io::secure_engine::room_min, '\0');
    engine.output(std::as_writable_bytes(std::span(room)));
    (void)engine.handshake();
    engine.input(std::as_bytes(std::span(bytes)));
    engine.end_input();
    std::string text;
    io::secure_progress p = engine.handshake();
    while (p.what == io::secure_step::done) {
        char some[1000];
        engine.output(std::as_writable_bytes(std::span(room)));
        p = engine.receive(std::as_writable_bytes(std::span(some)));
        text.append(some, p.bytes);
    }
    ended = p.what == io::secure_step::ended;
    return text;
}

}  // namespace coppice::test
