// whole_writes: text that reaches a body_writer whole, even if its writes are stopped.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/http/body.hpp>
#include <coppice/task/task.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace coppice::http {

using namespace internal;

// Keeps what a stopped write has left, so that the next write begins with it. Threads: one at a
// time. Lifetime: the writer outlives this, and nothing else writes to it.
class whole_writes : immovable {
public:
    explicit whole_writes(body_writer& to) noexcept : to_(to) {}

    // Returns what is still to be written; the caller may append to it.
    std::string& text() noexcept {
        if (before_) text_.erase(0, static_cast<std::size_t>(to_.written() - *before_));
        before_.reset();
        return text_;
    }
    // Writes text(). What a stop loses: nothing; the next call writes the rest.
    task<> write() {
        if (text().empty()) co_return;
        before_ = to_.written();
        co_await to_.write(text_);
        text_.clear();
        before_.reset();
    }

private:
    body_writer& to_;
    std::string text_;
    std::optional<std::uint64_t> before_;  // to_.written() when the last write of text_ began
};

}  // namespace coppice::http
