// completion_env: what the waiter of an operation tells it, namely when to give up.
#pragma once

#include <coppice/exec/deadline.hpp>
#include <coppice/stop/inplace.hpp>

#include <system_error>

namespace coppice::internal {

// The environment of a completion: a stop token, and a deadline.
class completion_env {
public:
    completion_env() noexcept = default;
    completion_env(inplace_stop_token stop, execution::instant deadline) noexcept
        : stop_(stop), deadline_(deadline) {}
    inplace_stop_token query(get_stop_token_t) const noexcept { return stop_; }
    execution::instant query(execution::get_deadline_t) const noexcept { return deadline_; }

    // Returns true if `error` is the outcome of an operation that was told to give up.
    [[gnu::cold, gnu::noinline]] bool stopped_by(std::error_code error) const noexcept {
        return error == std::errc::operation_canceled &&
               (stop_.stop_requested() || (deadline_ != execution::instant::never() &&
                                           execution::monotonic_now() >= deadline_));
    }

    // Called for an operation that knows it gave up, for example by another clock.
    void tell_stopped() noexcept { deadline_ = execution::instant(); }

private:
    inplace_stop_token stop_;
    execution::instant deadline_ = execution::instant::never();
};

}  // namespace coppice::internal
