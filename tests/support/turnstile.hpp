// A sender that waits until the test lets it pass or a stop ends it. Threads: one.
#pragma once

#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/exec/sender.hpp>
#include <coppice/stop/inplace.hpp>

namespace coppice::test {

class turnstile {
    struct waiter {
        virtual void pass() noexcept = 0;

    protected:
        ~waiter() = default;
    };

public:
    template <class Rcvr>
    class operation final : waiter {
    public:
        using operation_state_concept = execution::operation_state_tag;
        operation(turnstile& of, Rcvr rcvr) noexcept : of_(of), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        void start() & noexcept {
            of_.waiting_ = this;
            on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), stop(*this));
        }

    private:
        class stop {
        public:
            explicit stop(operation& o) noexcept : op_(&o) {}
            void operator()() noexcept {
                operation& op = *op_;
                op.of_.waiting_ = nullptr;
                op.on_stop_.reset();
                execution::set_stopped(static_cast<Rcvr&&>(op.rcvr_));
            }

        private:
            operation* op_;
        };
        void pass() noexcept override {
            on_stop_.reset();
            execution::set_value(static_cast<Rcvr&&>(rcvr_));
        }
        turnstile& of_;
        Rcvr rcvr_;
        execution::internal::stop_registration<stop_token_of_t<execution::env_of_t<Rcvr>>, stop>
            on_stop_;
    };
    class sender {
    public:
        using sender_concept = execution::sender_tag;
        explicit sender(turnstile& t) noexcept : of_(&t) {}
        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return execution::completion_signatures<execution::set_value_t(),
                                                    execution::set_stopped_t()>();
        }
        template <class Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return operation<Rcvr>(*of_, static_cast<Rcvr&&>(rcvr));
        }

    private:
        turnstile* of_;
    };

    sender wait() noexcept { return sender(*this); }
    bool has_waiter() const noexcept { return waiting_ != nullptr; }
    void let_pass() noexcept {
        waiter* const w = waiting_;
        waiting_ = nullptr;
        w->pass();
    }

private:
    waiter* waiting_ = nullptr;
};

// Counts an operation's outcomes. Its environment has a stop token.
struct counts {
    int values = 0;
    int errors = 0;
    int stops = 0;
    inplace_stop_source source;
};
class counting_receiver {
public:
    using receiver_concept = execution::receiver_tag;
    explicit counting_receiver(counts& c) noexcept : counts_(&c) {}
    void set_value(auto&&...) && noexcept { ++counts_->values; }
    void set_error(auto&&) && noexcept { ++counts_->errors; }
    void set_stopped() && noexcept { ++counts_->stops; }
    auto get_env() const noexcept {
        return execution::prop(get_stop_token, counts_->source.get_token());
    }

private:
    counts* counts_;
};

}  // namespace coppice::test
