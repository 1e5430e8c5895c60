// timer: waits on a context until a time has passed; also the timed part of a context's scheduler.
#pragma once

#include <coppice/base/saturating.hpp>
#include <coppice/io/event_loop.hpp>
#include <coppice/io/initiate.hpp>
#include <coppice/io/internal/request.hpp>

#include <algorithm>
#include <cerrno>

namespace coppice::io {

// Completes when its time has come, or as stopped if its deadline comes first. Cost: O(1), no
// allocation, no system call of its own.
class wait_request : public basic_request<operation>, timer_entry {
    using base = basic_request<operation>;

public:
    using value_type = void;
    static constexpr const char* name = "wait";
    struct arguments {
        arguments(context& c, internal::duration span) noexcept : owner(&c), time(span) {}
        arguments(context& c, internal::time_point at) noexcept : owner(&c), when(at) {}
        context* owner;
        internal::duration time{};
        // min: wait for `time`, counted from the start
        internal::time_point when = internal::time_point::min();
    };
    explicit wait_request(const arguments& a) noexcept
        : base(*a.owner), timer_entry(&fire), time_(a.time), when_(a.when) {}

protected:
    ~wait_request() = default;

private:
    bool submit() noexcept final {
        if (when_ == internal::time_point::min()) {
            when_ = saturating_add(owner().now(), time_);
        }
        owner().arm(*this, std::min(when_, deadline()));
        listen();
        return false;
    }
    void interrupt() noexcept final {
        if (!timer_entry::armed()) return;  // already ending
        owner().disarm(*this);
        complete = &interrupted;
        owner().defer(*this);
    }
    static void interrupted(operation* op) noexcept {
        wait_request& self = *static_cast<wait_request*>(op);
        self.set_outcome(-ECANCELED);
        self.ended();
    }
    static void fire(timer_entry* entry) noexcept {
        wait_request& self = *static_cast<wait_request*>(entry);
        self.set_outcome(self.owner().ending() ? -ECANCELED : 0);
        if (self.deadline() < self.when_ && !self.owner().ending()) self.end_at_deadline();
        self.ended();
    }

    internal::duration time_;
    internal::time_point when_;
};

// Waits for times. Threads: any thread may wait. Several waits at once count as several timers.
// Lifetime: the context must outlive the timer.
class timer {
public:
    // Makes a timer on `owner`'s loop. Cost: nothing until it waits.
    explicit timer(context& owner) noexcept : owner_(&owner) {}
    // Completes when `time` (nanoseconds) has passed, at most about 0.3 ms late because of the
    // wheel's tick. 0 or less: in the next turn. Errors: operation_canceled if the context is
    // destroyed.
    template <class Token = use_await_t>
    auto wait_for(internal::duration time, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<wait_request>({*owner_, time}, static_cast<Token&&>(token));
    }
    // Waits likewise, until a time of the context's clock.
    template <class Token = use_await_t>
    auto wait_until(internal::time_point when, Token&& token = {}) noexcept(nothrow_token<Token>) {
        return initiate<wait_request>({*owner_, when}, static_cast<Token&&>(token));
    }

private:
    context* owner_;
};

// The sender of schedule_after() and schedule_at(). It has no errors: the end of the context
// completes it as stopped.
class timed_sender {
    template <class Rcvr>
    class operation_state final : wait_request {
    public:
        using operation_state_concept = execution::operation_state_tag;
        operation_state(const arguments& a, Rcvr rcvr) noexcept
            : wait_request(a), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        void start() & noexcept {
            const internal::completion_env env =
                internal::completion_env_of(execution::get_env(rcvr_), link_);
            if (begin(env.query(get_stop_token),
                      static_cast<internal::time_point>(env.query(execution::get_deadline)))) {
                completed();
            }
        }

    private:
        void completed() noexcept override {
            link_.reset();
            if (error()) {
                execution::set_stopped(static_cast<Rcvr&&>(rcvr_));
            } else {
                execution::set_value(static_cast<Rcvr&&>(rcvr_));
            }
        }
        [[no_unique_address]] Rcvr rcvr_;
        [[no_unique_address]] internal::stop_link_for<execution::env_of_t<Rcvr>> link_;
    };

public:
    using sender_concept = execution::sender_tag;
    explicit timed_sender(const wait_request::arguments& a) noexcept : arguments_(a) {}

    // Completes on the context's scheduler, which also provides the timer of a timeout.
    class attrs {
    public:
        explicit attrs(context& owner) noexcept : owner_(&owner) {}
        template <class Tag>
            requires(!std::is_same_v<Tag, execution::set_error_t>)
        context::scheduler query(execution::get_completion_scheduler_t<Tag>) const noexcept {
            return owner_->get_scheduler();
        }
        context::scheduler query(execution::get_timed_scheduler_t) const noexcept {
            return owner_->get_scheduler();
        }

    private:
        context* owner_;
    };
    attrs get_env() const noexcept { return attrs(*arguments_.owner); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return execution::completion_signatures<execution::set_value_t(),
                                                execution::set_stopped_t()>();
    }
    template <execution::receiver Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation_state<Rcvr>(arguments_, static_cast<Rcvr&&>(rcvr));
    }

private:
    wait_request::arguments arguments_;
};

inline timed_sender context::scheduler::schedule_after(internal::duration time) const noexcept {
    return timed_sender({*owner_, time});
}
inline timed_sender context::scheduler::schedule_at(internal::time_point when) const noexcept {
    return timed_sender({*owner_, when});
}

}  // namespace coppice::io
