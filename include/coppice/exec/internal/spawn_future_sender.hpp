// The spawned operation of spawn_future, and the sender that is its future.
#pragma once

#include <coppice/exec/internal/future_state.hpp>
#include <coppice/exec/internal/spawn_state.hpp>
#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/exec/stop_when.hpp>
#include <coppice/stop/single.hpp>

namespace coppice::execution {
struct spawn_future_t;
}

namespace coppice::execution::internal {

template <class Sigs>
class spawn_future_receiver {
public:
    using receiver_concept = receiver_tag;
    explicit spawn_future_receiver(future_state_base<Sigs>& state) noexcept : state_(&state) {}
    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        state_->result.keep(set_value_t(), static_cast<Args&&>(args)...);
        state_->operation_completed();
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        state_->result.keep(set_error_t(), static_cast<Error&&>(error));
        state_->operation_completed();
    }
    void set_stopped() && noexcept {
        state_->result.keep(set_stopped_t());
        state_->operation_completed();
    }

private:
    future_state_base<Sigs>* state_;
};

// What is connected: the sender, which the state's own source also stops, in the given environment.
template <class Wrapped, class Env>
using spawned_future_t = decltype(write_env(
    stop_when(std::declval<Wrapped>(), std::declval<single_inplace_stop_token>()),
    std::declval<Env>()));
template <class Wrapped, class Env>
using future_signatures_t = signatures_union_t<signatures_of<spawned_future_t<Wrapped, Env>, env<>>,
                                               completion_signatures<set_stopped_t()>>;

template <class Allocator, class Token, class Wrapped, class Env>
class spawn_future_state final : public future_state_base<future_signatures_t<Wrapped, Env>> {
    using Sigs = future_signatures_t<Wrapped, Env>;
    using association = decltype(std::declval<Token&>().try_associate());

public:
    spawn_future_state(Allocator allocator, Wrapped&& sndr, Token token, Env&& spawn_env,
                       std::source_location where)
        : allocator_(allocator),
          operation_(execution::connect(
              write_env(stop_when(static_cast<Wrapped&&>(sndr), source_.get_token()),
                        static_cast<Env&&>(spawn_env)),
              spawn_future_receiver<Sigs>(*this))),
          assoc_(token.try_associate()),
          listing_(where) {}

    void run() noexcept {
        if (assoc_) {
            listing_.enter(assoc_);
            execution::start(operation_);
        } else {
            spawn_future_receiver<Sigs>(*this).set_stopped();
        }
    }

private:
    void stop_operation() noexcept override { source_.request_stop(); }
    void destroy() noexcept override {
        const association leaving = static_cast<association&&>(assoc_);
        internal::delete_with(Allocator(allocator_), this);
    }
    template <class A, class T>
    friend void delete_with(A, T*) noexcept;

    [[no_unique_address]] Allocator allocator_;
    tolerant_single_stop_source source_;
    connect_result_t<spawned_future_t<Wrapped, Env>, spawn_future_receiver<Sigs>> operation_;
    association assoc_;
    scope_listing listing_;
};

template <class Sigs, class Rcvr>
class future_operation final : future_state_base<Sigs>::consumer {
    class cancel {
    public:
        explicit cancel(future_state_base<Sigs>& state) noexcept : state_(&state) {}
        void operator()() noexcept { state_->try_cancel(); }

    private:
        future_state_base<Sigs>* state_;
    };

public:
    using operation_state_concept = operation_state_tag;

    future_operation(future_handle<Sigs>&& handle, Rcvr rcvr) noexcept
        : rcvr_(static_cast<Rcvr&&>(rcvr)), handle_(static_cast<future_handle<Sigs>&&>(handle)) {}
    future_operation(future_operation&&) = delete;
    ~future_operation() {
        COPPICE_CHECK(!waiting_,
                      "an operation of spawn_future was destroyed while it was running: keep it "
                      "until it completes");
    }

    void start() & noexcept {
        COPPICE_CHECK(handle_.get() != nullptr,
                      "an operation of spawn_future was started twice: connect its sender again");
        waiting_ = true;
        on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), cancel(*handle_.get()));
        handle_.release()->consume(*this);
    }

private:
    void deliver(completion_store<Sigs>& result) noexcept override {
        on_stop_.reset();
        waiting_ = false;
        result.deliver(rcvr_);
    }
    void stopped() noexcept override {
        on_stop_.reset();
        waiting_ = false;
        set_stopped(static_cast<Rcvr&&>(rcvr_));
    }

    [[no_unique_address]] Rcvr rcvr_;
    future_handle<Sigs> handle_;
    [[no_unique_address]] stop_registration<stop_token_of_t<env_of_t<Rcvr>>, cancel> on_stop_;
    bool waiting_ = false;  // written before it is registered, and by the completing thread
};

// Decomposes as [tag, data].
template <class Sigs>
struct spawn_future_sender {
    using sender_concept = sender_tag;
    using tag_type = spawn_future_t;
    using decomposable = void;

    future_handle<Sigs> data;

    explicit spawn_future_sender(future_state_base<Sigs>& state) noexcept : data(state) {}

    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return delivered_signatures_t<Sigs>();
    }
    template <receiver Rcvr>
    auto connect(Rcvr rcvr) && noexcept -> future_operation<Sigs, Rcvr> {
        return {static_cast<future_handle<Sigs>&&>(data), static_cast<Rcvr&&>(rcvr)};
    }
};

}  // namespace coppice::execution::internal
