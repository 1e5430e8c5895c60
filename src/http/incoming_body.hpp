// incoming_body: the body of a request, as its handler reads it while it arrives.
#pragma once

#include "connection.hpp"

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/http/body.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/task/task.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace coppice::http {

using namespace internal;

// Lives as long as the handler. The handler may be on any thread; what it asks for is received on
// the loop.
class incoming_body final : public body_reader {
public:
    incoming_body(connection& c, exchange& e) noexcept;
    // Runs after the handler and its locals are gone.
    ~incoming_body();

    void keep(std::size_t bytes) override;
    bool has_begun() const noexcept override { return begun_; }
    task<std::string_view> read() override;

    bool is_complete() const noexcept { return ended_; }
    bool is_broken() const noexcept { return broken_; }
    // Returns what was received but does not belong to this body.
    std::string take_rest() { return bytes_.substr(at_); }

private:
    // Held by the read() that is under way. Errors: std::logic_error if another one is: the two
    // would wait in one place, and one of them forever.
    class turn_to_read : coppice::immovable {
    public:
        explicit turn_to_read(incoming_body& body);
        ~turn_to_read() { end(); }
        void end() noexcept;

    private:
        incoming_body* body_;
    };
    [[noreturn]] void refuse(int status, const char* reason);
    std::string_view next_piece();
    void note_drain(time_point began) noexcept;
    task<bool> receive(inplace_stop_token stop, execution::instant deadline);

    connection& connection_;
    exchange& exchange_;
    chunk_decoder decoder_;
    std::string bytes_;  // received bytes; those from at_ on have not been given out
    std::size_t at_ = 0;
    std::uint64_t left_;                    // bytes left of a body with a declared length
    std::uint64_t received_ = 0;            // bytes since the handler's first wait
    duration taken_{};                      // time that the client took to send them
    duration taken_max_ = duration::max();  // set in a drain
    std::size_t kept_ = 0;                  // bytes of the budget, for what the handler collects
    std::optional<refused> refusal_;
    std::mutex turns_;
    bool reading_ = false;  // a read() is under way; under turns_
    bool begun_ = false;    // read() has given a piece, or the end
    bool chunked_;
    bool ended_;           // nothing more belongs to the body
    bool asked_;           // the client is not waiting for 100 (Continue)
    bool broken_ = false;  // the client went away in the middle of the body
};

}  // namespace coppice::http
