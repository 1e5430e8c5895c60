// A receiver that notes how its operation ended; it has a stop token and a deadline.
#pragma once

#include <coppice/exec/connect.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/env.hpp>
#include <coppice/stop/inplace.hpp>

#include <system_error>

namespace coppice::test {

struct outcome {
    int values = 0;
    int errors = 0;
    int stops = 0;
    std::error_code error;
    int ends() const { return values + errors + stops; }
};

class outcome_env {
public:
    outcome_env(inplace_stop_token stop, execution::instant deadline) noexcept
        : stop_(stop), deadline_(deadline) {}
    inplace_stop_token query(get_stop_token_t) const noexcept { return stop_; }
    execution::instant query(execution::get_deadline_t) const noexcept { return deadline_; }

private:
    inplace_stop_token stop_;
    execution::instant deadline_;
};

class outcome_receiver {
public:
    using receiver_concept = execution::receiver_tag;
    explicit outcome_receiver(outcome& o, inplace_stop_token stop = {},
                              execution::instant deadline = execution::instant::never()) noexcept
        : outcome_(&o), env_(stop, deadline) {}
    template <class... Values>
    void set_value(Values&&...) && noexcept {
        ++outcome_->values;
    }
    void set_error(std::error_code error) && noexcept {
        ++outcome_->errors;
        outcome_->error = error;
    }
    void set_stopped() && noexcept { ++outcome_->stops; }
    outcome_env get_env() const noexcept { return env_; }

private:
    outcome* outcome_;
    outcome_env env_;
};

}  // namespace coppice::test
