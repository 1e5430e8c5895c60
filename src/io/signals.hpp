// receive_process_signals: the kernel's side of a signal_set; for system_calls.cpp.
#pragma once

#include <coppice/io/internal/system_calls.hpp>

#include <span>

namespace coppice::io {

using namespace internal;

// See system_calls::receive_signals(). Threads: any.
result<received_signals*> receive_process_signals(std::span<const int> signals) noexcept;

}  // namespace coppice::io
