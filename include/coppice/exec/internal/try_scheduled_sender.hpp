// try_scheduled_sender: the sender of try_schedule() for resources whose queues may block.
#pragma once
// Scheduler is as for scheduled_sender, and has
//   bool try_enqueue(item_type&)    queues the item without blocking; returns false, and does
//                                   nothing, if it cannot

#include <coppice/base/internal/check.hpp>
#include <coppice/exec/internal/scheduled_sender.hpp>
#include <coppice/exec/try_schedule.hpp>

namespace coppice::execution::internal {

template <class Scheduler>
class try_scheduled_sender {
    using item_type = typename Scheduler::item_type;

public:
    using sender_concept = sender_tag;

    explicit try_scheduled_sender(Scheduler sch) noexcept : sch_(sch) {}
    auto get_env() const noexcept { return typename scheduled_sender<Scheduler>::attrs(sch_); }

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        if constexpr (sizeof...(Env) != 0 && (unstoppable_token<stop_token_of_t<Env>> && ...)) {
            return completion_signatures<set_value_t(), set_error_t(would_block_t)>();
        } else {
            return completion_signatures<set_value_t(), set_error_t(would_block_t),
                                         set_stopped_t()>();
        }
    }

    template <class Rcvr>
    class operation final : item_type {
    public:
        using operation_state_concept = operation_state_tag;
        operation(Scheduler sch, Rcvr rcvr) noexcept
            : item_type(&run), sch_(sch), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        operation(operation&&) = delete;
        ~operation() {
            COPPICE_CHECK(phase_ != phase::queued,
                          "an operation of a scheduler was destroyed while it was queued: keep it "
                          "until it completes");
        }
        void start() & noexcept {
            COPPICE_CHECK(
                phase_ == phase::idle,
                "an operation of a scheduler was started twice: connect its sender again");
            phase_ = phase::queued;
            if (sch_.try_enqueue(*this)) return;  // *this may be gone
            phase_ = phase::over;
            set_error(static_cast<Rcvr&&>(rcvr_), would_block_t());
        }

    private:
        enum class phase : unsigned char { idle, queued, over };

        static void run(item_type* item) noexcept {
            operation& self = *static_cast<operation*>(item);
            self.phase_ = phase::over;
            if constexpr (!unstoppable_token<stop_token_of_t<env_of_t<Rcvr>>>) {
                if (get_stop_token(execution::get_env(self.rcvr_)).stop_requested()) {
                    set_stopped(static_cast<Rcvr&&>(self.rcvr_));
                    return;
                }
            }
            set_value(static_cast<Rcvr&&>(self.rcvr_));
        }
        [[no_unique_address]] Scheduler sch_;
        [[no_unique_address]] Rcvr rcvr_;
        phase phase_ = phase::idle;  // written before it is queued, and by the thread that runs it
    };
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(sch_, static_cast<Rcvr&&>(rcvr));
    }

private:
    [[no_unique_address]] Scheduler sch_;
};

}  // namespace coppice::execution::internal
