// The requests of stream.hpp: handshake, receive, send, send_all, shutdown_send, and shutdown.
#pragma once

#include <coppice/tls/error.hpp>
#include <coppice/tls/internal/connection_request.hpp>
#include <coppice/tls/internal/namespaces.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <system_error>

namespace coppice::tls::internal {

template <class Next>
connection<Next>* checked(connection<Next>* on) noexcept {
    COPPICE_CHECK(on != nullptr,
                  "an operation of a tls::stream that was moved from: use the stream that it was "
                  "moved to");
    return on;
}

// What an operation without bytes is given; byte_arguments is for the others.
template <class Next>
struct connection_arguments {
    explicit connection_arguments(connection<Next>* on) noexcept : target(checked(on)) {}
    connection<Next>* target;
};
template <class Next, class Byte>
struct byte_arguments {
    byte_arguments(connection<Next>* on, std::span<Byte> b) noexcept
        : target(checked(on)), bytes(b) {}
    connection<Next>* target;
    std::span<Byte> bytes;
};

template <class Next>
class handshake_request : public connection_request<Next> {
    using base = connection_request<Next>;

public:
    using value_type = void;
    using arguments = connection_arguments<Next>;
    static constexpr const char* name = "handshake";
    explicit handshake_request(const arguments& a) noexcept : base(a.target, uses::both) {}

protected:
    ~handshake_request() = default;
    bool compute() noexcept override {
        if (this->give_room()) this->last_ = this->engine().handshake();
        return true;
    }

private:
    bool judge() noexcept final {
        if (this->last_.what == step::failed) this->fail(this->last_.error);
        return true;
    }
};

template <class Next>
class receive_request : public connection_request<Next> {
    using base = connection_request<Next>;

public:
    using value_type = std::size_t;
    using arguments = byte_arguments<Next, std::byte>;
    static constexpr const char* name = "receive";
    explicit receive_request(const arguments& a) noexcept
        : base(a.target, uses::reading), into_(a.bytes) {}
    std::size_t take() const noexcept { return received_; }

protected:
    ~receive_request() = default;

private:
    bool compute() noexcept final {
        if (!this->give_room()) return true;
        this->last_ = this->engine().receive(into_);
        received_ = this->last_.bytes;
        // What the engine has also written goes out with the next bytes that are sent.
        if (received_ != 0) this->last_.what = step::done;
        return true;
    }
    bool sends_first() const noexcept final {
        return this->last_.what == step::failed && this->on().outgoing.is_free();
    }
    bool judge() noexcept final {
        if (this->last_.what == step::failed) this->fail(this->last_.error);
        return true;
    }
    // A receive that has taken bytes succeeds, even if a stop was requested.
    bool is_past_stopping() const noexcept final { return received_ != 0; }

    std::span<std::byte> into_;
    std::size_t received_ = 0;
};

// Sends some bytes, as one record, or all.
template <class Next, bool All>
class sending_request : public connection_request<Next> {
    using base = connection_request<Next>;

public:
    using arguments = byte_arguments<Next, const std::byte>;
    explicit sending_request(const arguments& a) noexcept
        : base(a.target, uses::writing), left_(a.bytes) {}

protected:
    ~sending_request() = default;
    std::size_t taken() const noexcept { return taken_; }

private:
    bool compute() noexcept final {
        if (this->on().has_output()) {  // of an operation that was stopped
            this->last_ = {step::needs_output, 0, {}};
            return true;
        }
        if (!this->give_room()) return true;
        this->last_ = this->engine().send(left_);
        taken_ += this->last_.bytes;
        left_ = left_.subspan(this->last_.bytes);
        return true;
    }
    bool judge() noexcept final {
        if (this->last_.what == step::failed) this->fail(this->last_.error);
        return !All || left_.empty() || this->has_failed();
    }
    // The record of a single send is the stream's: what is left of it goes out later.
    bool is_past_stopping() const noexcept final { return !All && taken_ != 0; }

    std::span<const std::byte> left_;
    std::size_t taken_ = 0;
};

template <class Next>
class send_request : public sending_request<Next, false> {
public:
    using value_type = std::size_t;
    static constexpr const char* name = "send";
    using sending_request<Next, false>::sending_request;
    std::size_t take() const noexcept { return this->taken(); }

protected:
    ~send_request() = default;
};

template <class Next>
class send_all_request : public sending_request<Next, true> {
public:
    using value_type = void;
    static constexpr const char* name = "send_all";
    using sending_request<Next, true>::sending_request;

protected:
    ~send_all_request() = default;
};

// Sends close_notify, and, if `Both`, waits for that of the peer.
template <class Next, bool Both>
class shutdown_request : public connection_request<Next> {
    using base = connection_request<Next>;

public:
    using value_type = void;
    using arguments = connection_arguments<Next>;
    static constexpr const char* name = Both ? "shutdown" : "shutdown_send";
    explicit shutdown_request(const arguments& a) noexcept
        : base(a.target, Both ? uses::both : uses::writing) {}

protected:
    ~shutdown_request() = default;

private:
    bool compute() noexcept final {
        if (has_told_) {
            std::array<std::byte, 2048> dropped;
            if (this->give_room()) this->last_ = this->engine().receive(dropped);
        } else if (this->on().has_output()) {
            this->last_ = {step::needs_output, 0, {}};
        } else if (this->give_room()) {
            this->last_ = this->engine().end();
            has_told_ = this->last_.what == step::done;
        }
        return true;
    }
    bool judge() noexcept final {
        if (this->last_.what == step::failed) this->fail(this->last_.error);
        return !Both || this->has_failed() || this->last_.what == step::ended;
    }

    bool has_told_ = false;
};

}  // namespace coppice::tls::internal
