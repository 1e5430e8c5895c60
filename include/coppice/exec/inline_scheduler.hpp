// inline_scheduler: runs what is scheduled inside start().
#pragma once
// Source: [exec.inline.scheduler].

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/scheduler.hpp>

namespace coppice::execution {

namespace internal {

template <class Rcvr>
class inline_operation {
public:
    using operation_state_concept = operation_state_tag;
    constexpr explicit inline_operation(Rcvr rcvr) noexcept : rcvr_(static_cast<Rcvr&&>(rcvr)) {}
    inline_operation(inline_operation&&) = delete;
    constexpr void start() & noexcept {
        COPPICE_CHECK(
            !started_,
            "an operation of inline_scheduler was started twice: connect its sender again");
        started_ = true;
        set_value(static_cast<Rcvr&&>(rcvr_));
    }

private:
    [[no_unique_address]] Rcvr rcvr_;
    bool started_ = false;
};

// Source: [exec.snd.expos], inline-attrs<set_value_t>.
struct inline_scheduler_attrs {
    template <class Env>
        requires callable<get_scheduler_t, const Env&>
    constexpr auto query(get_completion_scheduler_t<set_value_t>, const Env& env) const noexcept {
        return get_scheduler(env);
    }
    template <class Env>
    constexpr auto query(get_completion_domain_t<set_value_t>, const Env& env) const noexcept {
        return get_domain(env);
    }
};

}  // namespace internal

// Any two compare equal. Threads: any.
class [[gnu::visibility("default")]] inline_scheduler : public internal::inline_scheduler_attrs {
public:
    using scheduler_concept = scheduler_tag;

    class inline_sender {
    public:
        using sender_concept = sender_tag;
        constexpr internal::inline_scheduler_attrs get_env() const noexcept { return {}; }
        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return completion_signatures<set_value_t()>();
        }
        template <receiver Rcvr>
        constexpr auto connect(Rcvr rcvr) const noexcept {
            return internal::inline_operation<Rcvr>(static_cast<Rcvr&&>(rcvr));
        }
    };

    // Returns a sender that completes inside its start.
    constexpr inline_sender schedule() const noexcept { return {}; }
    // Returns the same sender: it has nothing to wait for.
    constexpr inline_sender try_schedule() const noexcept { return {}; }
    using internal::inline_scheduler_attrs::query;
    constexpr forward_progress_guarantee query(get_forward_progress_guarantee_t) const noexcept {
        return forward_progress_guarantee::weakly_parallel;
    }
    constexpr bool operator==(const inline_scheduler&) const noexcept { return true; }
};

}  // namespace coppice::execution
