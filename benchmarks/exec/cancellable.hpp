// An operation that waits for its stop request, as a pending read or a timer does.
#pragma once

#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/stop/inplace.hpp>

#include <cstdint>

namespace bench_exec {

namespace ex = coppice::execution;

class cancellable {
public:
    using sender_concept = ex::sender_tag;
    cancellable() noexcept = default;

    template <class Rcvr>
    class operation {
        using token = coppice::stop_token_of_t<ex::env_of_t<Rcvr>>;

    public:
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr rcvr) noexcept : rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        operation(operation&&) = delete;
        void start() & noexcept {
            callback_.engage(coppice::get_stop_token(ex::get_env(rcvr_)), stop(*this));
        }

    private:
        class stop {
        public:
            explicit stop(operation& op) noexcept : op_(&op) {}
            void operator()() noexcept {
                operation& op = *op_;
                op.callback_.reset();
                ex::set_stopped(static_cast<Rcvr&&>(op.rcvr_));
            }

        private:
            operation* op_;
        };
        [[no_unique_address]] Rcvr rcvr_;
        ex::internal::stop_registration<token, stop> callback_;
    };

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>();
    }
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(static_cast<Rcvr&&>(rcvr));
    }
};

// The receiver of both rivals: counts its stops, and can be stopped itself.
class counting_receiver {
public:
    using receiver_concept = ex::receiver_tag;
    counting_receiver(std::uint64_t& stops, coppice::inplace_stop_source& source) noexcept
        : stops_(&stops), source_(&source) {}
    void set_value() && noexcept {}
    void set_stopped() && noexcept { ++*stops_; }
    auto get_env() const noexcept {
        return ex::prop(coppice::get_stop_token, source_->get_token());
    }

private:
    std::uint64_t* stops_;
    coppice::inplace_stop_source* source_;
};

}  // namespace bench_exec
