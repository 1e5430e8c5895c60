// pool_timer_sender: the sender of schedule_after() and schedule_at() on a pool, and its operation.
#pragma once
// The operation registers for a stop before it is armed, because it may be gone as soon as it is
// armed. Its item runs once (pool_timers.hpp), and first deregisters: so a stop callback that still
// runs on another thread has ended before the operation completes.

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/internal/due_notice.hpp>
#include <coppice/exec/internal/scheduled_sender.hpp>
#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/pool/internal/pool_timer.hpp>

namespace coppice::internal {

// Scheduler is that of a basic_pool or of a contract_pool. Its timer_type is a pool_timer.
template <class Scheduler>
class pool_timer_sender {
public:
    using sender_concept = execution::sender_tag;

    pool_timer_sender(Scheduler sch, execution::time_span after) noexcept
        : sch_(sch), after_(after), is_span_(true) {}
    pool_timer_sender(Scheduler sch, execution::instant at) noexcept
        : sch_(sch), at_(at), is_span_(false) {}

    // It completes on the pool, which is also the timer for a timeout.
    auto get_env() const noexcept {
        return typename execution::internal::scheduled_sender<Scheduler>::attrs(sch_);
    }
    // The end of the pool stops it, also under a receiver that cannot be stopped.
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return execution::completion_signatures<execution::set_value_t(),
                                                execution::set_stopped_t()>();
    }

    template <class Rcvr>
    class operation final : Scheduler::timer_type {
        using timer_type = typename Scheduler::timer_type;

    public:
        using operation_state_concept = execution::operation_state_tag;
        operation(const pool_timer_sender& sndr, Rcvr rcvr) noexcept
            : timer_type(&run, sndr.sch_.node_), sndr_(sndr), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        operation(operation&&) = delete;
        ~operation() {
            COPPICE_CHECK(
                state_ != state::waiting,
                "a timer of a pool was destroyed while it was waiting: keep it until it completes");
        }
        void start() & noexcept {
            COPPICE_CHECK(state_ == state::idle,
                          "a timer of a pool was started twice: connect its sender again");
            state_ = state::waiting;
            const auto env = execution::get_env(rcvr_);
            const execution::instant now = execution::monotonic_now();
            execution::instant when = sndr_.is_span_ ? now + sndr_.after_ : sndr_.at_;
            const execution::instant deadline = execution::get_unwatched_deadline(env);
            if (deadline < when) {
                when = deadline;
                ends_stopped_ = true;
            }
            using notice = execution::internal::get_due_notice_t;
            if constexpr (execution::has_query<execution::env_of_t<Rcvr>, notice>) {
                if (!ends_stopped_) this->tell = &give_notice;
            }
            if constexpr (requires { &timer_type::deregister; }) {
                this->deregister = &end_registration;
            }
            auto& pool = *sndr_.sch_.pool_;
            if (!pool.begin_timer(*this)) return;
            on_stop_.engage(get_stop_token(env), stop(*this));
            pool.arm_timer(*this, when.nanoseconds(), now.nanoseconds());
        }

    private:
        enum class state : unsigned char { idle, waiting, over };
        class stop {
        public:
            explicit stop(operation& op) noexcept : op_(&op) {}
            void operator()() noexcept { op_->sndr_.sch_.pool_->stop_timer(*op_); }

        private:
            operation* op_;
        };

        static void give_notice(pool_timer& timer) noexcept {
            const operation& self = static_cast<const operation&>(timer);
            using event = execution::internal::due_notice::event;
            const event what = self.stopped.read() ? event::never_comes : event::has_come;
            execution::internal::get_due_notice(execution::get_env(self.rcvr_)).give(what);
        }
        static void end_registration(pool_timer& timer) noexcept {
            static_cast<operation&>(timer).on_stop_.reset();
        }
        static void run(work_item* item) noexcept {
            operation& self = *static_cast<operation*>(static_cast<pool_timer*>(item));
            self.on_stop_.reset();
            self.state_ = state::over;
            if (self.stopped.read() || self.ends_stopped_) {
                execution::set_stopped(static_cast<Rcvr&&>(self.rcvr_));
            } else {
                execution::set_value(static_cast<Rcvr&&>(self.rcvr_));
            }
        }

        const pool_timer_sender sndr_;
        [[no_unique_address]] Rcvr rcvr_;
        state state_ = state::idle;  // written before it is armed, and by the item
        bool ends_stopped_ = false;  // it waits for the deadline; written before it is armed
        [[no_unique_address]] execution::internal::stop_registration<
            stop_token_of_t<execution::env_of_t<Rcvr>>, stop> on_stop_;
    };
    template <execution::receiver Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(*this, static_cast<Rcvr&&>(rcvr));
    }

private:
    Scheduler sch_;
    execution::instant at_;
    execution::time_span after_;
    bool is_span_;
};

}  // namespace coppice::internal
