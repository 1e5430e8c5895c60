// The parser of request heads for each instruction set; used by tests and benchmarks.
#pragma once

#include <coppice/base/internal/namespaces.hpp>
#include <coppice/http/internal/head_state.hpp>
#include <coppice/http/parse.hpp>

#include <span>
#include <string_view>

namespace coppice::http::internal {

// The same state machine for each instruction set that this processor has, the slowest first; the
// last one is in use. For tests and benchmarks, which compare them. A fresh state begins a head.
struct named_machine {
    const char* name;
    parse_result (*run)(std::string_view bytes, head_state& state, request_head& out,
                        const limits&) noexcept;
};
std::span<const named_machine> head_machines() noexcept;

}  // namespace coppice::http::internal
