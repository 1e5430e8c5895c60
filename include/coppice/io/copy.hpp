// copy: forwards what one stream receives to another, one way or both ways, until the end.
#pragma once
// This is what a proxy does; copy(s, s) is an echo. The copy receives the next bytes only after it
// has sent the previous ones, so a slow receiver slows its sender down. Each way uses at most one
// buffer of the context (4 KiB), and none while it waits for bytes.
// Cost: no allocation.
//
// A stop, the deadline, or an error loses the bytes that were received and not yet sent, up to one
// buffer for each way. Afterwards the only use of the streams is to close them.

#include <coppice/base/clock.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/copying.hpp>
#include <coppice/io/stream.hpp>

#include <concepts>
#include <cstdint>

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

// Sends to one stream what the other receives, until the end of that stream. Does not pass the end
// on, so the caller may send more. The value is the number of bytes sent. Both arguments may be the
// same stream.
// Threads: any. Errors: those of receiving and sending; timed_out. Lifetime: both streams belong to
// one context, and stay where they are until the operation has ended. Meanwhile no other operation
// may receive from `from` or send to `to`.
template <class Token = use_await_t>
auto copy(stream& from, stream& to, const copy_options& options,
          Token&& token = {}) noexcept(nothrow_token<Token>) {
    return initiate<internal::copy_request>({from, to, options.idle_max},
                                            static_cast<Token&&>(token));
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
    return initiate<internal::copy_both_request>({one, other, options.idle_max},
                                                 static_cast<Token&&>(token));
}
template <class Token = use_await_t>
    requires(!std::convertible_to<Token, const copy_options&>)
auto copy_both(stream& one, stream& other, Token&& token = {}) noexcept(nothrow_token<Token>) {
    return copy_both(one, other, copy_options(), static_cast<Token&&>(token));
}

}  // namespace coppice::io
