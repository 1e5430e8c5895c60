// join: several operations at once, one completion; under when_all, when_any, timeout and others.
#pragma once
// An algorithm is a policy: it derives from join_state, keeps what its children send, and says what
// the receiver gets. A child is named by its place: a join_place, which is a type, or a number.
//
//   static constexpr char name[]                      of the algorithm, for messages
//   value(place, args...), error(e), stopped(place)   a child has ended; arrive() is the last thing
//                                                     that each of them does
//   complete()                                        completes the receiver
//
//   pending_   arrivals to come: the children's, and the starter's where it counts. Only falls; the
//              one that makes it 0 ends the operation.
//
// A stop from outside runs the registered function on the thread that requests it, T, and stops the
// children through the operation's own source. The last child may arrive inside that.
//
//   On another thread: end() takes the registration back, and so waits until T has left the source.
//   On T: end() waits for nobody, and completes the receiver. Another thread may then destroy the
//   operation, and the source with it, before T has returned. T is safe: it does not touch a source
//   after its last callback has ended (stop/way_back.hpp), and every child has taken its callbacks
//   back before it completes, or does so in its destructor, which waits for T.
//
// A child that asks its siblings to stop keeps the operation alive by itself: it has not arrived
// yet. Before the children are started nothing can end, so the stop may come inside begin(), too.
//
// Source: ours; [exec.when.all] leaves the race open. Where the last child ends, there the whole
// completes, with a stop or without.

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/product.hpp>
#include <coppice/exec/stop_registration.hpp>
#include <coppice/stop/finite.hpp>

namespace coppice::execution {

template <std::size_t Index>
using join_place = std::integral_constant<std::size_t, Index>;

// What child Index of Count sees: a slot of its own in one finite stop source (P3409R1).
template <std::size_t Count, std::size_t Index, class Env>
using join_child_env_t = stop_token_env<finite_inplace_stop_token<Count, Index>, Env>;

// The message for a misused operation. Lifetime: until the next call; the process ends first.
[[gnu::cold, gnu::noinline]] inline const char* join_message(const char* name,
                                                             const char* what) noexcept {
    static char text[96];
    char* out = text;
    for (const char* part : {"an operation of ", name, what}) {
        while (*part != 0) *out++ = *part++;
    }
    *out = 0;
    return text;
}

// What an algorithm keeps but for its children's operations.
template <class Policy, class Rcvr, class Source>
class join_state : immovable {
    using outer_token = stop_token_of_t<env_of_t<Rcvr>>;

public:
    join_state(Rcvr rcvr, std::size_t arrivals) noexcept
        : rcvr_(static_cast<Rcvr&&>(rcvr)), pending_(arrivals) {}

    // Before the children are started.
    void begin() noexcept {
        COPPICE_CHECK(!started_, join_message(Policy::name, " was started twice"));
        started_ = true;
        on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), request(source_));
    }
    // Before the children are destroyed.
    void check_over() const noexcept {
        // relaxed: whoever destroys this knows in another way that it has completed, or is wrong
        COPPICE_CHECK(!started_ || pending_.load(internal::relaxed) == 0,
                      join_message(Policy::name, " was destroyed while it was running"));
    }
    // What a child with a slot of its own in the source sees.
    template <std::size_t Index>
    auto child_env(join_place<Index>) const noexcept {
        using Env = env_of_t<const Rcvr&>;
        return stop_token_env<decltype(source_.template get_token<Index>()), Env>(
            source_.template get_token<Index>(), execution::get_env(rcvr_));
    }

protected:
    // The last thing that a child does here.
    void arrive() noexcept {
        // edge join.arrive (release), edge join.arrive (acquire): the last sees all results
        if (pending_.fetch_sub(1, internal::acq_rel) == 1) end();
    }
    // The same, by the one child that stops its siblings, if this is that one.
    void arrive(bool stops_others) noexcept {
        if (stops_others) {
            stop_others_and_arrive();
        } else {
            arrive();
        }
    }

    [[no_unique_address]] Rcvr rcvr_;
    Source source_;

private:
    using request = request_stop_of<Source>;

    [[gnu::noinline]] void stop_others_and_arrive() noexcept {
        const bool late = internal::planted("join.stop_after_arrival");
        if (!late) source_.request_stop();
        arrive();
        if (late) source_.request_stop();
    }
    void end() noexcept {
        if constexpr (unstoppable_token<outer_token>) {
            static_cast<Policy*>(this)->complete();
        } else {
            end_stoppable();
        }
    }
    // Once per operation: not inlined into each of its children.
    [[gnu::noinline]] void end_stoppable() noexcept {
        if (!internal::planted("join.stay_registered")) on_stop_.reset();
        static_cast<Policy*>(this)->complete();
    }

    internal::atomic<std::size_t> pending_;
    [[no_unique_address]] stop_registration<outer_token, request> on_stop_;
    bool started_ = false;
};

// Tells the policy what became of the child at a place.
template <class State, class Place>
class join_receiver {
public:
    using receiver_concept = receiver_tag;
    join_receiver(State& state, Place place) noexcept : state_(&state), place_(place) {}
    template <class... Args>
    void set_value(Args&&... args) && noexcept {
        state_->value(place_, static_cast<Args&&>(args)...);
    }
    template <class Error>
    void set_error(Error&& error) && noexcept {
        state_->error(static_cast<Error&&>(error));
    }
    void set_stopped() && noexcept { state_->stopped(place_); }
    auto get_env() const noexcept { return state_->child_env(place_); }

private:
    State* state_;
    [[no_unique_address]] Place place_;
};

// One child's operation, constructed in place.
template <class State, class Place, class Child>
struct join_child {
    using child_receiver = join_receiver<State, Place>;
    static constexpr bool nothrow = nothrow_connectable<Child, child_receiver>;
    join_child(Child&& child, State& state, Place place) noexcept(nothrow)
        : operation(execution::connect(static_cast<Child&&>(child), child_receiver(state, place))) {
    }
    connect_result_t<Child, child_receiver> operation;
};

// The operations of a sender's `children`, started in their order.
template <class State, class Indices, class... Children>
struct join_children;
template <class State, std::size_t... Is, class... Children>
struct join_children<State, std::index_sequence<Is...>, Children...>
    : join_child<State, join_place<Is>, Children>... {
    template <class Sndr>
    join_children(Sndr&& sndr,
                  State& state) noexcept((join_child<State, join_place<Is>, Children>::nothrow &&
                                          ...))
        : join_child<State, join_place<Is>, Children>(
              static_cast<Children&&>(sndr.children.template get<Is>()), state, {})... {}
    // The last child's start may end the operation's life.
    void start(State&) noexcept {
        (execution::start(
             static_cast<join_child<State, join_place<Is>, Children>&>(*this).operation),
         ...);
    }
};

// The operation. Types::state is a policy, and Types::children the operations of its children; both
// are made when the operation is.
template <class Types>
class join_operation {
    using state = typename Types::state;
    using children = typename Types::children;

public:
    using operation_state_concept = operation_state_tag;

    template <class Sndr, class Rcvr>
    join_operation(Sndr&& sndr,
                   Rcvr rcvr) noexcept(std::is_nothrow_constructible_v<children, Sndr, state&>)
        : state_(static_cast<Rcvr&&>(rcvr), sndr), children_(static_cast<Sndr&&>(sndr), state_) {}
    join_operation(join_operation&&) = delete;
    ~join_operation() { state_.check_over(); }

    void start() & noexcept {
        state_.begin();
        children_.start(state_);  // *this may be gone
    }

private:
    state state_;
    children children_;
};

}  // namespace coppice::execution
