// contract_completion: a sender that completes when a contract is gone; made by work_contract.
#pragma once

#include <coppice/contract/internal/core.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/start_race.hpp>
#include <coppice/exec/internal/stop_registration.hpp>

namespace coppice::internal {

// Completes with set_value once the contract's release has run, on the thread that ran it; or
// inside start(), if the contract is gone before start() returns. Completes with set_stopped if it
// is stopped while it waits.
class contract_completion {
public:
    using sender_concept = execution::sender_tag;

    contract_completion(contract_core* core, std::size_t index, std::uint64_t generation) noexcept
        : core_(core), index_(index), generation_(generation) {}

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        if constexpr (sizeof...(Env) != 0 && (unstoppable_token<stop_token_of_t<Env>> && ...)) {
            return execution::completion_signatures<execution::set_value_t()>();
        } else {
            return execution::completion_signatures<execution::set_value_t(),
                                                    execution::set_stopped_t()>();
        }
    }

    template <class Rcvr>
    class operation;
    template <execution::receiver Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(*this, static_cast<Rcvr&&>(rcvr));
    }

private:
    contract_core* core_;
    std::size_t index_;
    std::uint64_t generation_;
};

// The thread that takes the watcher off its contract's list decides the outcome: the group when the
// contract is gone, or the stop callback. If that happens before start() has returned, start()
// completes the operation.
template <class Rcvr>
class contract_completion::operation final : contract_watcher {
public:
    using operation_state_concept = execution::operation_state_tag;
    operation(const contract_completion& sender, Rcvr rcvr) noexcept
        : contract_watcher(&gone), sender_(sender), rcvr_(static_cast<Rcvr&&>(rcvr)) {}

    void start() & noexcept {
        race_.open();
        const auto token = get_stop_token(execution::get_env(rcvr_));
        on_stop_.engage(token, on_stop(*this));
        if (sender_.core_ == nullptr ||
            !sender_.core_->watch(sender_.index_, sender_.generation_, *this)) {
            decide(false);
        } else if (token.stop_requested()) {
            stop();  // the callback may have run before there was a watcher to take off
        }
        if (race_.returned()) complete();
    }

private:
    class on_stop {
    public:
        explicit on_stop(operation& op) noexcept : op_(&op) {}
        void operator()() noexcept { op_->stop(); }

    private:
        operation* op_;
    };

    static void gone(contract_watcher* watcher) noexcept {
        static_cast<operation*>(watcher)->decide(false);
    }
    void stop() noexcept {
        if (sender_.core_ != nullptr && sender_.core_->unwatch(*this)) decide(true);
    }
    void decide(bool stopped) noexcept {
        stopped_ = stopped;
        if (race_.completed()) complete();
    }
    void complete() noexcept {
        on_stop_.reset();
        if constexpr (!unstoppable_token<stop_token_of_t<execution::env_of_t<Rcvr>>>) {
            if (stopped_) {
                execution::set_stopped(static_cast<Rcvr&&>(rcvr_));
                return;
            }
        }
        execution::set_value(static_cast<Rcvr&&>(rcvr_));
    }

    const contract_completion sender_;
    [[no_unique_address]] Rcvr rcvr_;
    execution::internal::start_race race_;
    bool stopped_ = false;  // written by the deciding thread, before race_.completed()
    [[no_unique_address]] execution::internal::stop_registration<
        stop_token_of_t<execution::env_of_t<Rcvr>>, on_stop> on_stop_;
};

}  // namespace coppice::internal
