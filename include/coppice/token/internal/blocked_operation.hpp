// blocked_operation: an operation whose state is on the stack of the thread that waits for it.
#pragma once

#include <coppice/token/block_latch.hpp>
#include <coppice/token/completion.hpp>
#include <coppice/token/internal/inline_start.hpp>
#include <coppice/token/internal/outcome.hpp>
#include <coppice/token/internal/stop_link.hpp>

#include <exception>
#include <system_error>

namespace coppice::internal {

template <class Env, class Initiation, class... R>
class blocked_operation final : initiated_state<Initiation, R...> {
public:
    template <class From>
    blocked_operation(const Env& env, From&& initiation)
        : initiated_state<Initiation, R...>(static_cast<From&&>(initiation)) {
        this->set_env(completion_env_of(env, link_));
    }
    // Runs the operation and returns its error. Blocks: until the operation has completed.
    std::error_code run() noexcept {
        this->template call_initiation<&completed>();
        if (!done_.is_set()) callback_scope::run_before_blocking();
        if constexpr (requires { this->initiation().drive(done_); }) {
            this->initiation().drive(done_);
        } else {
            done_.wait();
        }
        link_.reset();
        return outcome_.error();
    }
    outcome_t<R...> take() { return outcome_.take(); }
    // Throws the error that run() returned, as an exception.
    [[noreturn]] void rethrow(std::error_code error) const {
        std::rethrow_exception(internal::exception_of(error, this->initiation()));
    }

private:
    static void completed(completion_state<R...>& state, std::error_code error,
                          R... results) noexcept {
        blocked_operation& self = static_cast<blocked_operation&>(state);
        self.outcome_.put(error, static_cast<R&&>(results)...);
        self.done_.set();  // the waiter may destroy this object at once
    }

    [[no_unique_address]] stop_link_for<Env> link_;
    outcome_slot<R...> outcome_;
    block_latch done_;
};

}  // namespace coppice::internal
