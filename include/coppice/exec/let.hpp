// let_value, let_error, let_stopped: the results of one sender choose the next.
#pragma once
// The function gets the first sender's results as lvalues. They stay in the operation while the
// second sender, which the function returns, runs. The second sender sees, as its start scheduler,
// where the first completed. If the function throws, the exception is sent as an error. Cost: no
// allocation. Source: [exec.let].

#include <coppice/exec/internal/let_sender.hpp>

namespace coppice::execution {

// Calls f with lvalues of the values, then runs the sender that f returns.
struct let_value_t : internal::let_adaptor<let_value_t, set_value_t> {};
// Calls f with an lvalue of the error, then runs the sender that f returns.
struct let_error_t : internal::let_adaptor<let_error_t, set_error_t> {};
// Calls f when stopped, then runs the sender that f returns.
struct let_stopped_t : internal::let_adaptor<let_stopped_t, set_stopped_t> {};
inline constexpr let_value_t let_value{};
inline constexpr let_error_t let_error{};
inline constexpr let_stopped_t let_stopped{};

}  // namespace coppice::execution
