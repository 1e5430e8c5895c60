// repeat_until, retry: run a sender repeatedly, on constant stack.
#pragma once
// `repeat_until(sndr)`, or `sndr | repeat_until()`. Each round connects a copy of the sender, in
// the same place, and starts where the previous one completed. A million rounds use no more stack
// than one. A stop that is requested between rounds ends the operation. Cost: no allocation.
// Source: ours.

#include <coppice/exec/internal/repeat_sender.hpp>

namespace coppice::execution {

// Runs a sender of bool until it sends true. Errors and stops end the operation.
struct repeat_until_t : internal::repeat_adaptor<repeat_until_t> {};
// Runs a sender until it completes without an error. Values and stops end the operation.
struct retry_t : internal::repeat_adaptor<retry_t> {};
inline constexpr repeat_until_t repeat_until{};
inline constexpr retry_t retry{};

}  // namespace coppice::execution
