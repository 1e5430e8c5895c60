// Shared by the models of room exec: operations that a simulated thread completes.
#pragma once
// And a receiver that destroys the operation when it is completed.
// Results are `watched`: their copies read and write through the checker. A result that is used
// without being ordered after its construction is a reported race. An operation that is destroyed
// in place leaves memory that is marked dead, so a later access is reported as well.

#include "stop_model.hpp"

#include <coppice/exec/connect.hpp>
#include <coppice/exec/deadline.hpp>
#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/stop/inplace.hpp>

// The checker prints the values of atomics; enumerators are printed as numbers.
namespace coppice::execution::internal {
template <class State>
    requires std::is_enum_v<State>
std::ostream& operator<<(std::ostream& out, State state) {
    return out << static_cast<int>(state);
}
}  // namespace coppice::execution::internal
namespace coppice::execution {
using internal::operator<<;
}

// Time stands still: these models test no waiting timers.
coppice::execution::instant coppice::execution::monotonic_now() noexcept {
    return instant(0);
}

namespace coppice::protocol_model {

using namespace coppice::internal;

namespace ex = coppice::execution;

// A value whose every use the checker sees.
class watched {
public:
    explicit watched(int value) { value_.write(value); }
    watched(const watched& other) { value_.write(other.get()); }
    watched& operator=(const watched&) = delete;
    ~watched() { value_.write(0); }  // must be ordered after every use
    int get() const { return value_.read(); }

private:
    plain<int> value_;
};

// A sender that a thread completes through its hand.
class hand {
public:
    class operation_base {
    public:
        virtual void value() noexcept = 0;
        virtual void error() noexcept = 0;
        virtual void stopped() noexcept = 0;
    };
    template <class Rcvr>
    class operation final : public operation_base {
    public:
        using operation_state_concept = ex::operation_state_tag;
        operation(hand& h, Rcvr rcvr) noexcept : hand_(h), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        ~operation() { hand_.ended.fetch_add(1, relaxed); }
        void start() & noexcept {
            hand_.started = this;
            hand_.is_started.store(1, release);
        }
        void value() noexcept override { ex::set_value(static_cast<Rcvr&&>(rcvr_), watched(1)); }
        void error() noexcept override { ex::set_error(static_cast<Rcvr&&>(rcvr_), watched(2)); }
        void stopped() noexcept override { ex::set_stopped(static_cast<Rcvr&&>(rcvr_)); }

    private:
        hand& hand_;
        Rcvr rcvr_;
    };
    class sender {
    public:
        using sender_concept = ex::sender_tag;
        explicit sender(hand& h) noexcept : hand_(&h) {}
        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return ex::completion_signatures<ex::set_value_t(watched), ex::set_error_t(watched),
                                             ex::set_stopped_t()>();
        }
        template <class Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return operation<Rcvr>(*hand_, static_cast<Rcvr&&>(rcvr));
        }

    private:
        hand* hand_;
    };

    sender get() noexcept { return sender(*this); }
    void wait_for_start() noexcept {
        while (is_started.load(acquire) == 0) spin_hint();
    }
    void reset() noexcept {
        is_started.store(0, relaxed);
        ended.store(0, relaxed);
    }
    operation_base* started = nullptr;  // published by is_started
    atomic<int> is_started{0};
    atomic<int> ended{0};
};

// A sender that its stop completes, inside the request, or in start() if the stop came before.
class stopped_inside {
public:
    using sender_concept = ex::sender_tag;
    stopped_inside() noexcept = default;
    template <class Rcvr>
    class operation {
    public:
        using operation_state_concept = ex::operation_state_tag;
        explicit operation(Rcvr rcvr) noexcept : rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        void start() & noexcept {
            // The later of the two completes: the registration or the stop.
            callback_.engage(get_stop_token(ex::get_env(rcvr_)), complete(*this));
            if (ready_.exchange(1, acq_rel) == 1) finish();
        }

    private:
        class complete {
        public:
            explicit complete(operation& op) noexcept : op_(&op) {}
            void operator()() noexcept {
                if (op_->ready_.exchange(1, acq_rel) == 1) op_->finish();
            }

        private:
            operation* op_;
        };
        void finish() noexcept {
            callback_.reset();
            ex::set_stopped(static_cast<Rcvr&&>(rcvr_));
        }
        Rcvr rcvr_;
        atomic<int> ready_{0};
        ex::internal::stop_registration<stop_token_of_t<ex::env_of_t<Rcvr>>, complete> callback_;
    };
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t(watched), ex::set_stopped_t()>();
    }
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(static_cast<Rcvr&&>(rcvr));
    }
};

// The test that an ending_receiver belongs to. completed() destroys the operation.
struct ending {
    inplace_stop_source source;
    virtual void completed() noexcept = 0;
};

// Reads every result, then destroys the operation. Without a stop token it takes fewer steps, so
// the checker explores more interleavings.
template <bool Stoppable>
class basic_ending_receiver {
public:
    using receiver_concept = ex::receiver_tag;
    explicit basic_ending_receiver(ending& t) noexcept : test_(&t) {}
    template <class... Ts>
    void set_value(Ts&&... values) && noexcept {
        (look(values), ...);
        test_->completed();
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        look(error);
        test_->completed();
    }
    void set_stopped() && noexcept { test_->completed(); }
    auto get_env() const noexcept {
        if constexpr (Stoppable) {
            return ex::prop(get_stop_token, test_->source.get_token());
        } else {
            return ex::env<>();
        }
    }

private:
    template <class T>
    static void look(const T& result) {
        if constexpr (requires { result.get(); }) require(result.get() != 0, "an empty result");
        if constexpr (requires { result.begin(); }) {
            for (const auto& each : result) look(each);
        }
    }
    ending* test_;
};
using ending_receiver = basic_ending_receiver<true>;
using unstoppable_ending_receiver = basic_ending_receiver<false>;

}  // namespace coppice::protocol_model
