// sync_wait: starts a sender and blocks this thread until the sender has completed.
#pragma once
// While it waits, the thread runs a run_loop. The sender finds the loop's scheduler in its
// environment, so work can be delegated to the blocked thread. The loop and the result are on the
// caller's stack: nothing is allocated. Source: [exec.sync.wait], [exec.sync.wait.var].

#include <coppice/exec/internal/as_exception.hpp>
#include <coppice/exec/into_variant.hpp>
#include <coppice/exec/run_loop.hpp>
#include <coppice/exec/value_types.hpp>

#include <optional>

namespace coppice::this_thread {

// The environment of a sender in sync_wait: all schedulers in it are the waiting thread's loop.
class sync_wait_env {
public:
    sync_wait_env() noexcept = default;
    explicit sync_wait_env(execution::run_loop& loop) noexcept : loop_(&loop) {}
    execution::run_loop::scheduler query(execution::get_scheduler_t) const noexcept {
        return loop_->get_scheduler();
    }
    execution::run_loop::scheduler query(execution::get_start_scheduler_t) const noexcept {
        return loop_->get_scheduler();
    }
    execution::run_loop::scheduler query(execution::get_delegation_scheduler_t) const noexcept {
        return loop_->get_scheduler();
    }

private:
    execution::run_loop* loop_ = nullptr;
};

// The results of sync_wait and of sync_wait_with_variant: empty if the sender was stopped.
template <execution::sender_in<sync_wait_env> Sndr>
using sync_wait_result_t = std::optional<execution::value_types_of_t<
    Sndr, sync_wait_env, execution::internal::decayed_tuple, std::type_identity_t>>;
template <execution::sender_in<sync_wait_env> Sndr>
using sync_wait_with_variant_result_t =
    std::optional<execution::value_types_of_t<Sndr, sync_wait_env>>;

// The loop and the result of one sync_wait, on the stack of the waiting thread.
template <class Result>
struct sync_wait_state {
    sync_wait_state() noexcept = default;
    execution::run_loop loop;
    std::exception_ptr error;
    Result result;
};

// Stores the result and ends the loop.
template <class Result>
class sync_wait_receiver {
public:
    using receiver_concept = execution::receiver_tag;
    explicit sync_wait_receiver(sync_wait_state<Result>& state) noexcept : state_(&state) {}

    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        if constexpr (std::is_nothrow_constructible_v<typename Result::value_type, Args...>) {
            state_->result.emplace(static_cast<Args&&>(args)...);
        } else {
            try {
                state_->result.emplace(static_cast<Args&&>(args)...);
            } catch (...) {
                state_->error = std::current_exception();
            }
        }
        state_->loop.finish();  // the waiting thread may have returned after this
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        state_->error = execution::internal::as_exception(static_cast<Error&&>(error));
        state_->loop.finish();
    }
    void set_stopped() && noexcept { state_->loop.finish(); }
    sync_wait_env get_env() const noexcept { return sync_wait_env(state_->loop); }

private:
    sync_wait_state<Result>* state_;
};

// Returned by a sync_wait that does not type-check, so that no further error follows.
struct no_result {};

// The domain where the sender completes chooses the implementation.
template <class Sndr>
using sync_wait_domain = execution::internal::completion_domain_of_t<Sndr, sync_wait_env>;

// Blocks until the sender has completed. Returns the values, or nothing if it was stopped.
// Errors: throws the sender's error: the exception of an exception_ptr, an error_code as a
// system_error, any other error as it is. Threads: any; while blocked, the thread runs what is
// delegated to it. Cost: no allocation.
struct sync_wait_t {
    template <execution::sender Sndr>
    auto operator()(Sndr&& sndr) const {
        using Sigs = execution::signatures_of<Sndr, sync_wait_env>;
        if constexpr (!execution::is_completion_signatures<Sigs>) {
            static_assert(execution::internal::diagnosis<Sigs>::reported);
            return no_result();
        } else if constexpr (Sigs::count_of(execution::set_value_t()) != 1) {
            using Error = execution::internal::pipeline_error<
                execution::internal::in_algorithm<sync_wait_t>, execution::internal::got<Sigs>,
                execution::internal::wanted<execution::internal::one_value_completion>>;
            static_assert(execution::internal::diagnosis<Error>::reported);
            return no_result();
        } else {
            using Result = decltype(execution::apply_sender(sync_wait_domain<Sndr>(), *this,
                                                            static_cast<Sndr&&>(sndr)));
            static_assert(std::is_same_v<Result, sync_wait_result_t<Sndr>>,
                          "a domain's sync_wait must return what sync_wait returns");
            return execution::apply_sender(sync_wait_domain<Sndr>(), *this,
                                           static_cast<Sndr&&>(sndr));
        }
    }

    template <execution::sender_in<sync_wait_env> Sndr>
        requires execution::sender_to<Sndr, sync_wait_receiver<sync_wait_result_t<Sndr>>>
    sync_wait_result_t<Sndr> apply_sender(Sndr&& sndr) const {
        using Result = sync_wait_result_t<Sndr>;
        sync_wait_state<Result> state;
        auto op = execution::connect(static_cast<Sndr&&>(sndr), sync_wait_receiver<Result>(state));
        execution::start(op);
        state.loop.run();
        if (state.error) std::rethrow_exception(std::move(state.error));
        return std::move(state.result);
    }
};
inline constexpr sync_wait_t sync_wait{};

// As sync_wait, for a sender with several value completions. Returns a variant of tuples.
struct sync_wait_with_variant_t {
    template <execution::sender Sndr>
    auto operator()(Sndr&& sndr) const {
        using Variant = decltype(execution::into_variant(static_cast<Sndr&&>(sndr)));
        using Sigs = execution::signatures_of<Variant, sync_wait_env>;
        if constexpr (!execution::is_completion_signatures<Sigs>) {
            static_assert(execution::internal::diagnosis<Sigs>::reported);
            return no_result();
        } else {
            using Result = decltype(execution::apply_sender(sync_wait_domain<Sndr>(), *this,
                                                            static_cast<Sndr&&>(sndr)));
            static_assert(std::is_same_v<Result, sync_wait_with_variant_result_t<Sndr>>,
                          "a domain's sync_wait_with_variant must return what it returns");
            return execution::apply_sender(sync_wait_domain<Sndr>(), *this,
                                           static_cast<Sndr&&>(sndr));
        }
    }

    template <execution::sender_in<sync_wait_env> Sndr>
    sync_wait_with_variant_result_t<Sndr> apply_sender(Sndr&& sndr) const {
        using Result = sync_wait_with_variant_result_t<Sndr>;
        if (auto values = sync_wait(execution::into_variant(static_cast<Sndr&&>(sndr)))) {
            return Result(std::move(std::get<0>(*values)));
        }
        return Result();
    }
};
inline constexpr sync_wait_with_variant_t sync_wait_with_variant{};

}  // namespace coppice::this_thread
