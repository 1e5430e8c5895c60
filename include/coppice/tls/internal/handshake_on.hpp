// handshake_on: the request of a handshake whose computation runs on a scheduler.
#pragma once

#include <coppice/base/lifetime.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/scheduler.hpp>
#include <coppice/io/context.hpp>
#include <coppice/tls/internal/namespaces.hpp>
#include <coppice/tls/internal/stream_requests.hpp>

#include <utility>

namespace coppice::tls::internal {

template <class Next, class Scheduler>
class handshake_on_request : public handshake_request<Next> {
    using base = handshake_request<Next>;

    class receiver {
    public:
        using receiver_concept = execution::receiver_tag;
        explicit receiver(handshake_on_request& of) noexcept : of_(&of) {}
        void set_value() && noexcept { of_->work(); }
        // The scheduler has ended: the loop does it.
        template <class Error>
        void set_error(Error&&) && noexcept {
            of_->refused();
        }
        void set_stopped() && noexcept { of_->refused(); }

    private:
        handshake_on_request* of_;
    };
    using scheduled =
        execution::connect_result_t<execution::schedule_result_t<Scheduler&>, receiver>;

public:
    struct arguments : connection_arguments<Next> {
        arguments(connection<Next>* on, const Scheduler& s) noexcept
            : connection_arguments<Next>(on), scheduler(s) {}
        Scheduler scheduler;
    };
    explicit handshake_on_request(const arguments& a) noexcept : base(a), scheduler_(a.scheduler) {}

protected:
    ~handshake_on_request() = default;

private:
    // The loop does not end meanwhile: it is held.
    bool compute() noexcept final {
        if (this->engine().is_ready()) return base::compute();
        if (!this->give_room()) return true;
        is_away_ = true;
        hold_.construct(this->on().owner());
        operation_.construct_with([this]() noexcept {
            return execution::connect(execution::schedule(scheduler_), receiver(*this));
        });
        execution::start(operation_.get());
        return false;
    }
    // On the scheduler.
    void work() noexcept {
        this->last_ = this->engine().handshake();
        this->arrive_on_loop();
    }
    void refused() noexcept {
        was_refused_ = true;
        this->arrive_on_loop();
    }
    void arrived() noexcept final {
        if (std::exchange(is_away_, false)) {
            operation_.destroy();
            hold_.destroy();
            if (std::exchange(was_refused_, false)) this->last_ = this->engine().handshake();
        }
        this->go_on();
    }

    Scheduler scheduler_;
    bool is_away_ = false;
    bool was_refused_ = false;
    manual_lifetime<scheduled> operation_;
    manual_lifetime<io::context::work_guard> hold_;
};

}  // namespace coppice::tls::internal
