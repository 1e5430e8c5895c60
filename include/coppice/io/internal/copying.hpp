// copying: the state machine of copy.hpp: receive, send, and again, one way or both.
#pragma once
//   each way:  receiving -> sending -> receiving ...   until the end of the stream that it reads
//              \-> failed, or idle for too long        both ways end; the copy reports the error

#include <coppice/base/clock.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/io/buffer.hpp>
#include <coppice/io/internal/request.hpp>
#include <coppice/io/internal/stream_requests.hpp>
#include <coppice/io/stream.hpp>
#include <coppice/stop/inplace.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

namespace coppice::io {

struct copied;

}  // namespace coppice::io

namespace coppice::io::internal {

// Copies one way or both. Threads: everything runs on the loop of the streams.
class copying : public basic_request<operation> {
    using base = basic_request<operation>;

public:
    struct arguments {
        arguments(stream& f, stream& t, duration idle) noexcept
            : target(&f), to(&t), idle_max(idle) {}
        stream* target;
        stream* to;
        duration idle_max;  // see copy_options
    };
    std::error_code error() const noexcept { return failure_ ? failure_ : base::error(); }

protected:
    // Both streams belong to one context. `both`: also copies the way back, and passes the end of
    // each way on.
    copying(const arguments& a, bool both) noexcept;
    ~copying();
    // Return the bytes sent to the second stream, and to the first.
    std::uint64_t sent_there() const noexcept { return there_.sent; }
    std::uint64_t sent_back() const noexcept { return back_.sent; }

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
    bool cut_ = false;     // a way was halted before the end of its stream
    time_point active_at_{};
    std::error_code failure_;
    inplace_stop_source halt_;
    way there_;
    way back_;
};

// Copies one way. Its value is the number of bytes sent, also after an error.
class copy_request : public copying {
public:
    using value_type = std::uint64_t;
    static constexpr const char* name = "copy";
    explicit copy_request(const arguments& a) noexcept : copying(a, false) {}
    std::uint64_t take() const noexcept { return sent_there(); }

protected:
    ~copy_request() = default;
};

// Copies both ways. Its value is the number of bytes sent each way, also after an error.
class copy_both_request : public copying {
public:
    using value_type = copied;
    static constexpr const char* name = "copy_both";
    explicit copy_both_request(const arguments& a) noexcept : copying(a, true) {}
    copied take() const noexcept;

protected:
    ~copy_both_request() = default;
};

}  // namespace coppice::io::internal
