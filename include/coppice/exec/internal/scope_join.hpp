// The sender of a scope's join().
#pragma once

#include <coppice/exec/internal/adaptor.hpp>
#include <coppice/exec/internal/attrs.hpp>
#include <coppice/exec/internal/scope_state.hpp>

namespace coppice::execution::internal {

// What the concept scope_token wraps to see what a token makes of a sender.
struct scope_test_sender {
    using sender_concept = sender_tag;
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return completion_signatures<set_value_t()>();
    }
    template <class Rcvr>
    struct operation {
        using operation_state_concept = operation_state_tag;
        void start() & noexcept;
    };
    template <receiver Rcvr>
    operation<Rcvr> connect(Rcvr) const;
};

struct scope_join_t {};

// Completes on the receiver's start scheduler once the scope has ended.
template <class Rcvr>
class scope_join_operation final : scope_state::joiner {
public:
    using operation_state_concept = operation_state_tag;
    using schedule_sender =
        schedule_result_t<call_result_t<get_start_scheduler_t, env_of_t<const Rcvr&>>>;
    using schedule_receiver = passing_receiver<receiver_state<Rcvr>, Rcvr>;

    scope_join_operation(scope_state& scope, Rcvr rcvr) noexcept(
        nothrow_connectable<schedule_sender, schedule_receiver>)
        : scope_(&scope),
          state_(static_cast<Rcvr&&>(rcvr)),
          schedule_(execution::connect(
              schedule(get_start_scheduler(execution::get_env(std::as_const(state_.rcvr)))),
              schedule_receiver(state_))) {}
    ~scope_join_operation() {
        COPPICE_CHECK(!waiting_,
                      "an operation of a scope's join was destroyed while it waited: keep it until "
                      "it completes");
    }
    void start() & noexcept {
        COPPICE_CHECK(!started_,
                      "an operation of a scope's join was started twice: connect its sender again");
        started_ = true;
        waiting_ = true;
        if (!scope_->start_join(*this)) return;  // *this may be gone
        waiting_ = false;
        set_value(static_cast<Rcvr&&>(state_.rcvr));
    }

private:
    void complete() noexcept override {
        waiting_ = false;
        execution::start(schedule_);
    }

    scope_state* scope_;
    receiver_state<Rcvr> state_;
    connect_result_t<schedule_sender, schedule_receiver> schedule_;
    bool started_ = false;
    bool waiting_ = false;
};

// Decomposes as [tag, data].
struct scope_join_sender {
    using sender_concept = sender_tag;
    using tag_type = scope_join_t;
    using decomposable = void;

    scope_state* data;

    explicit scope_join_sender(scope_state& scope) noexcept : data(&scope) {}

    constexpr inline_attrs<set_value_t> get_env() const noexcept { return {}; }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return signatures<Env...>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) const
        noexcept(std::is_nothrow_constructible_v<scope_join_operation<Rcvr>, scope_state&, Rcvr>) {
        return scope_join_operation<Rcvr>(*data, static_cast<Rcvr&&>(rcvr));
    }

private:
    template <class... None>
        requires(sizeof...(None) == 0)
    static consteval dependent_signatures signatures() noexcept {
        return {};
    }
    template <class Env>
    static consteval auto signatures() noexcept {
        if constexpr (callable<get_start_scheduler_t, Env>) {
            using Schedule = schedule_result_t<call_result_t<get_start_scheduler_t, Env>>;
            return signatures_union_t<completion_signatures<set_value_t()>,
                                      signatures_of<Schedule, fwd_env_t<Env>>>();
        } else {
            return pipeline_error<in_algorithm<scope_join_t>, got<Env>,
                                  wanted<start_scheduler_in_the_environment>>();
        }
    }
};

}  // namespace coppice::execution::internal
