// The operation of adaptors that need no more than a state and the child's operation.
#pragma once
// Used by then, write_env, into_variant, and others. The child is connected to a receiver that
// points to the state. Starting the operation starts the child.

#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/allocator_aware.hpp>

namespace coppice::execution {

// Receiver is constructed from a State&, and State from the arguments after the child.
template <class Child, class State, class Receiver>
class adaptor_operation {
public:
    using operation_state_concept = operation_state_tag;

    template <class... Args>
    constexpr adaptor_operation(Child&& child, Args&&... args) noexcept(
        std::is_nothrow_constructible_v<State, Args...> && nothrow_connectable<Child, Receiver>)
        : state_(static_cast<Args&&>(args)...),
          child_(execution::connect(static_cast<Child&&>(child), Receiver(state_))) {}
    adaptor_operation(adaptor_operation&&) = delete;

    constexpr void start() & noexcept { execution::start(child_); }

private:
    State state_;
    connect_result_t<Child, Receiver> child_;
};

// An adaptor's state that holds only the receiver.
template <class Rcvr>
struct receiver_state {
    constexpr explicit receiver_state(Rcvr r) noexcept : rcvr(static_cast<Rcvr&&>(r)) {}
    [[no_unique_address]] Rcvr rcvr;
};
// An adaptor's state that holds the receiver and the adaptor's argument.
template <class Data, class Rcvr>
struct data_state {
    template <class Init>
    constexpr data_state(Init&& d, Rcvr r) noexcept(
        noexcept(forward_with_allocator<Data>(static_cast<Init&&>(d), r)))
        : data(forward_with_allocator<Data>(static_cast<Init&&>(d), r)),
          rcvr(static_cast<Rcvr&&>(r)) {}
    [[no_unique_address]] Data data;
    [[no_unique_address]] Rcvr rcvr;
};

// A child's receiver that passes everything on to state.rcvr. Adaptors override what they change.
template <class State, class Rcvr>
class passing_receiver {
public:
    using receiver_concept = receiver_tag;
    constexpr explicit passing_receiver(State& state) noexcept : state_(&state) {}

    template <class... Args>
    constexpr void set_value(Args&&... args) && noexcept {
        execution::set_value(static_cast<Rcvr&&>(state_->rcvr), static_cast<Args&&>(args)...);
    }
    template <class Error>
    constexpr void set_error(Error&& error) && noexcept {
        execution::set_error(static_cast<Rcvr&&>(state_->rcvr), static_cast<Error&&>(error));
    }
    constexpr void set_stopped() && noexcept {
        execution::set_stopped(static_cast<Rcvr&&>(state_->rcvr));
    }
    constexpr child_env_t<Rcvr> get_env() const noexcept {
        return execution::child_env(std::as_const(state_->rcvr));
    }

protected:
    State* state_;
};

}  // namespace coppice::execution
