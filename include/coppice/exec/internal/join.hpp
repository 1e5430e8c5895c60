// join: several operations, one completion. Under when_all, when_any, timeout, and others.
#pragma once
// An algorithm is a policy. It derives from join_state, keeps what its children send, and decides
// what the receiver gets. A child is named by its place: a join_place, which is a type, or a
// number.
//
//   static constexpr char name[]                      name of the algorithm, for messages
//   value(place, args...), error(e), stopped(place)   called when a child completes; each calls
//                                                     arrive() last
//   complete()                                        completes the receiver
//
//   pending_   arrivals still to come: one per child, and one for the starting thread where the
//              algorithm counts it. Only falls. The arrival that makes it 0 ends the operation.
//
// A stop from outside runs the registered function on the requester's thread, T. The function stops
// the children through the operation's own source. The last child may arrive inside that function.
//
//   The last child arrives on another thread: end() deregisters the function, which waits until T
//   has left the source.
//   The last child arrives on T: end() waits for no thread, and completes the receiver. Another
//   thread may then destroy the operation, with the source, before T has returned. That is safe: T
//   does not touch a source after its last callback has ended (stop/internal/way_back.hpp). Every
//   child deregisters its callbacks before it completes, or in its destructor, which waits for T.
//
// A child that asks its siblings to stop has not arrived yet, so it keeps the operation alive.
// Before the children are started nothing can end, so the stop may also arrive inside begin().
//
// The operation completes where its last child completes, with or without a stop. Source: ours;
// [exec.when.all] leaves the race open. Model: tests/model/join_model.cpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/exec/connect.hpp>
#include <coppice/exec/internal/product.hpp>
#include <coppice/exec/internal/stop_registration.hpp>
#include <coppice/stop/finite.hpp>

namespace coppice::execution::internal {

template <std::size_t Index>
using join_place = std::integral_constant<std::size_t, Index>;

// What child Index of Count sees: its own slot in one finite stop source (P3409R1).
template <std::size_t Count, std::size_t Index, class Env>
using join_child_env_t = stop_token_env<finite_inplace_stop_token<Count, Index>, Env>;

// Returns the message for a misused operation. Lifetime: until the next call; the process ends
// before that.
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

// What the senders of when_all, when_all_with_variant, and when_any are made of. Decomposes as
// [tag, data, children...].
template <class Tag, class... Children>
struct join_sender {
    using sender_concept = sender_tag;
    using tag_type = Tag;
    using decomposable = void;

    product<Children...> children;

    template <class... Inits>
    constexpr explicit join_sender(construct_each, Inits&&... inits) noexcept(
        (std::is_nothrow_constructible_v<Children, Inits> && ...))
        : children(construct_each(), static_cast<Inits&&>(inits)...) {}
};

// What an algorithm keeps in addition to its children's operations.
template <class Policy, class Rcvr, class Source>
class join_state : immovable {
    using outer_token = stop_token_of_t<env_of_t<Rcvr>>;

public:
    join_state(Rcvr rcvr, std::size_t arrivals) noexcept
        : rcvr_(static_cast<Rcvr&&>(rcvr)), pending_(arrivals) {}

    // Called before the children are started.
    void begin() noexcept {
        COPPICE_CHECK(!started_, join_message(Policy::name, " was started twice"));
        started_ = true;
        on_stop_.engage(get_stop_token(execution::get_env(rcvr_)), request(source_));
    }
    // Called before the children are destroyed.
    void check_over() const noexcept {
        // relaxed: a correct caller has learned of the completion in another way
        COPPICE_CHECK(!started_ || pending_.load(relaxed) == 0,
                      join_message(Policy::name, " was destroyed while it was running"));
    }
    // The environment of a child that has its own slot in the source.
    template <std::size_t Index>
    auto child_env(join_place<Index>) const noexcept {
        using Env = env_of_t<const Rcvr&>;
        return stop_token_env<decltype(source_.template get_token<Index>()), Env>(
            source_.template get_token<Index>(), execution::get_env(rcvr_));
    }

protected:
    // Called by a child as its last access to the operation.
    void arrive() noexcept {
        // edge join.arrive (release), edge join.arrive (acquire): the last arrival sees all results
        if (pending_.fetch_sub(1, acq_rel) == 1) end();
    }
    // As above. If `stops_others`, first stops the siblings; true for at most one child.
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
        const bool late = planted("join.stop_after_arrival");
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
    // One function per operation, not inlined into each of its children.
    [[gnu::noinline]] void end_stoppable() noexcept {
        if (!planted("join.stay_registered")) on_stop_.reset();
        static_cast<Policy*>(this)->complete();
    }

    atomic<std::size_t> pending_;
    [[no_unique_address]] stop_registration<outer_token, request> on_stop_;
    bool started_ = false;
};

// Tells the policy how the child at a place has completed.
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
    // The last child's start may destroy *this.
    void start(State&) noexcept {
        (execution::start(
             static_cast<join_child<State, join_place<Is>, Children>&>(*this).operation),
         ...);
    }
};

// The operation. Types::state is a policy; Types::children holds the operations of its children.
// Both are constructed with the operation.
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

}  // namespace coppice::execution::internal
