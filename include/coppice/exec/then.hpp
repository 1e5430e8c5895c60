// then, upon_error, upon_stopped: apply a function to one kind of completion; pass the others on.
#pragma once
// Each takes a sender and a function: `then(sndr, f)`, or `sndr | then(f)`. The function is called
// once, where the sender completes. If it throws, the exception is sent as an error; if it is
// noexcept, the pipeline has no such error. Cost: no allocation. Source: [exec.then].

#include <coppice/exec/internal/then_sender.hpp>

namespace coppice::execution {

// Calls f with the values; sends f's result, or its exception as an error.
struct then_t : internal::then_adaptor<then_t, set_value_t> {};
// Calls f with the error; sends f's result as a value.
struct upon_error_t : internal::then_adaptor<upon_error_t, set_error_t> {};
// Calls f if the child was stopped; sends f's result as a value.
struct upon_stopped_t : internal::then_adaptor<upon_stopped_t, set_stopped_t> {};
inline constexpr then_t then{};
inline constexpr upon_error_t upon_error{};
inline constexpr upon_stopped_t upon_stopped{};

}  // namespace coppice::execution
