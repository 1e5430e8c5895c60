// copy: forwards what one stream receives to another, one way or both ways, until the end.
#pragma once
// This is what a proxy does; copy(s, s) is an echo. The copy receives the next bytes only after it
// has sent the previous ones, so a slow receiver slows its sender down. Each way uses at most one
// buffer of the context (4 KiB), and none while it waits for bytes.
// Cost: no allocation.
//
//   each way:  receiving -> sending -> receiving ...   until the end of the stream that it reads
//              \-> failed, or idle for too long        both ways end; the copy reports the error
//
// A stop, the deadline, or an error loses the bytes that were received and not yet sent, up to one
// buffer for each way. Afterwards the only use of the streams is to close them.

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/io/buffer.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/request.hpp>
#include <coppice/io/stream.hpp>
#include <coppice/stop/inplace.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

namespace coppice::io {

// When a copy gives up.
struct copy_options {
    // Ends the copy with timed_out if no byte was received or sent, either way, for this long. 0 or
    // less: at once. duration::max(): never.
    internal::duration idle_max = internal::duration::max();
};

// How many bytes copy_both() has sent each way.
struct copied {
    std::uint64_t there = 0;  // to the second stream
    std::uint64_t back = 0;   // to the first
    friend bool operator==(const copied&, const copied&) noexcept = default;
};

namespace internal {

// Copies one way or both. Threads: everything runs on the loop of the streams.
class copying : public basic_request<operation> {
    using base = basic_request<operation>;

public:
    struct arguments {
        arguments(stream& f, stream& t, const copy_options& o) noexcept
            : target(&f), to(&t), options(o) {}
        stream* target;
        stream* to;
        copy_options options;
    };
    std::error_code error() const noexcept { return failure_ ? failure_ : base::error(); }

protected:
    // Both streams belong to one context. `both`: also copies the way back, and passes the end of
    // each way on.
    copying(const arguments& a, bool both) noexcept;
    ~copying();
    copied sent() const noexcept { return {there_.sent, back_.sent}; }

private:
    struct way : immovable {
        way(copying& c, stream& f, stream& t) noexcept;
        // Receives and sends until an operation is pending or this way is over.
        void run() noexcept;
        bool idle() const noexcept { return !pending_; }

        std::uint64_t sent = 0;
        bool over = false;

    private:
        void receive() noexcept;
        void send() noexcept;
        void received() noexcept;
        void went_out() noexcept;

        class receiving final : public pooled_receive_request {
        public:
            receiving(way& w, const descriptor_reference& from) noexcept
                : pooled_receive_request(pooled_receive_request::arguments(from)), way_(w) {}

        private:
            void completed() noexcept override;
            way& way_;
        };
        class sending final : public send_request {
        public:
            sending(way& w, const descriptor_reference& to, std::span<const std::byte> b) noexcept
                : send_request({to, b}), way_(w) {}

        private:
            void completed() noexcept override;
            way& way_;
        };

        copying& of_;
        const descriptor_reference from_;
        const descriptor_reference to_;
        stream* const target_;
        bool pending_ = false;
        pooled_buffer buffer_;
        std::span<std::byte> left_;  // the part of the buffer still to be sent
        manual_lifetime<receiving> receive_;
        manual_lifetime<sending> send_;
    };

    bool submit() noexcept final;
    void interrupt() noexcept final;
    void go_on(way& w) noexcept;
    bool is_over() const noexcept { return there_.over && back_.over; }
    void conclude() noexcept;
    void note_activity() noexcept;
    time_point limit() const noexcept;
    bool fail(std::error_code error, bool stopped) noexcept;
    void halt() noexcept;

    const duration idle_max_;
    const bool both_;
    bool halted_ = false;  // once set, nothing further is started
    bool late_ = false;    // the deadline has passed
    bool cut_ = false;     // a way was over before the end of its stream
    time_point active_at_{};
    std::error_code failure_;
    inplace_stop_source halt_;
    way there_;
    way back_;
};

}  // namespace internal

// Copies one way. Its value is the number of bytes sent, also after an error.
class copy_request : public internal::copying {
public:
    using value_type = std::uint64_t;
    static constexpr const char* name = "copy";
    explicit copy_request(const arguments& a) noexcept : internal::copying(a, false) {}
    std::uint64_t take() const noexcept { return sent().there; }

protected:
    ~copy_request() = default;
};

// Copies both ways. Its value is the number of bytes sent each way, also after an error.
class copy_both_request : public internal::copying {
public:
    using value_type = copied;
    static constexpr const char* name = "copy_both";
    explicit copy_both_request(const arguments& a) noexcept : internal::copying(a, true) {}
    copied take() const noexcept { return sent(); }

protected:
    ~copy_both_request() = default;
};

// Sends to one stream what the other receives, until the end of that stream. Does not pass the end
// on, so the caller may send more. The value is the number of bytes sent. Both arguments may be the
// same stream.
// Threads: any. Errors: those of receiving and sending; timed_out. Lifetime: both streams belong to
// one context, and stay where they are until the operation has ended. Meanwhile no other operation
// may receive from `from` or send to `to`.
template <class Token = use_await_t>
auto copy(stream& from, stream& to, const copy_options& options,
          Token&& token = {}) noexcept(nothrow_token<Token>) {
    return initiate<copy_request>({from, to, options}, static_cast<Token&&>(token));
}
template <class Token = use_await_t>
    requires(!std::convertible_to<Token, const copy_options&>)
auto copy(stream& from, stream& to, Token&& token = {}) noexcept(nothrow_token<Token>) {
    return copy(from, to, copy_options(), static_cast<Token&&>(token));
}

// Copies both ways between two streams. When one way ends, its end is passed on with
// shutdown_send() while the other way continues. Completes when both ways have ended; the value is
// a `copied`.
// Threads, errors, lifetime: as copy(), for both ways. The streams must be two different ones.
template <class Token = use_await_t>
auto copy_both(stream& one, stream& other, const copy_options& options,
               Token&& token = {}) noexcept(nothrow_token<Token>) {
    return initiate<copy_both_request>({one, other, options}, static_cast<Token&&>(token));
}
template <class Token = use_await_t>
    requires(!std::convertible_to<Token, const copy_options&>)
auto copy_both(stream& one, stream& other, Token&& token = {}) noexcept(nothrow_token<Token>) {
    return copy_both(one, other, copy_options(), static_cast<Token&&>(token));
}

}  // namespace coppice::io
