// Adaptors with one child: the sender, the operation, and the child's receiver, written once.
#pragma once
// An adaptor says in a class, here called Algorithm, what is its own:
//
//   tag_type                                  the algorithm, as tag_of_t names it
//   operation<Child, Rcvr>                    constructed from the child, the data, and the
//   receiver signatures<Child, Env...>()               its completions, given its child's
//   attrs(sender)                             where it completes; attrs.hpp has the choices
//
// These are adaptors: then, upon_error, upon_stopped, bulk, continues_on, let_value, let_error,
// let_stopped, starts_on, stop_when, stopped_as_error, write_env; and, with no_data for their data,
// into_variant and stopped_as_optional.
//
// Most operations are an adaptor_operation: a state, and the child's operation, whose receiver
// points to the state. Most of these receivers are a passing_receiver.

#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/allocator_aware.hpp>

namespace coppice::execution::internal {

// The data of an algorithm that is called with a sender alone. Each has a type of its own, because
// two objects of one empty type would not share an address in nested senders.
template <class Algorithm>
struct no_data {};

// Decomposes as [tag, data, child]. The data is what the algorithm was called with.
template <class Algorithm, class Data, class Child>
struct adaptor_sender {
    using sender_concept = sender_tag;
    using tag_type = typename Algorithm::tag_type;
    using decomposable = void;
    template <class Sndr, class Rcvr>
    using operation = typename Algorithm::template operation<Sndr, Rcvr>;

    [[no_unique_address]] Data data;
    [[no_unique_address]] Child child;

    template <class DataInit, class ChildInit>
    constexpr adaptor_sender(DataInit&& d, ChildInit&& c) noexcept(
        std::is_nothrow_constructible_v<Data, DataInit> &&
        std::is_nothrow_constructible_v<Child, ChildInit>)
        : data(static_cast<DataInit&&>(d)), child(static_cast<ChildInit&&>(c)) {}

    constexpr auto get_env() const noexcept { return Algorithm::attrs(*this); }
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return Algorithm::template signatures<like_t<Self, Child>, Env...>();
    }
    template <receiver Rcvr>
    constexpr auto connect(Rcvr rcvr) && noexcept(
        std::is_nothrow_constructible_v<operation<Child, Rcvr>, Child, Data, Rcvr>)
        -> operation<Child, Rcvr> {
        return {static_cast<Child&&>(child), static_cast<Data&&>(data), static_cast<Rcvr&&>(rcvr)};
    }
    template <receiver Rcvr>
        requires std::copy_constructible<Data> && std::copy_constructible<Child>
    constexpr auto connect(Rcvr rcvr) const& noexcept(
        std::is_nothrow_constructible_v<operation<const Child&, Rcvr>, const Child&, const Data&,
                                        Rcvr>) -> operation<const Child&, Rcvr> {
        return {child, data, static_cast<Rcvr&&>(rcvr)};
    }
};

// Starts its child when it is started. Receiver is constructed from a State&, and State from the
// arguments after the child.
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
    template <class Algorithm>
    constexpr receiver_state(no_data<Algorithm>, Rcvr r) noexcept : rcvr(static_cast<Rcvr&&>(r)) {}
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
        return internal::child_env(std::as_const(state_->rcvr));
    }

protected:
    State* state_;
};

}  // namespace coppice::execution::internal
