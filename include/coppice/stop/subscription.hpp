// stop_subscription: a handle of a function that runs on a stop; for callers without a callback.
#pragma once
// The function lives in a node of the state, which is reused after the end of the subscription, so
// in steady state subscribing allocates nothing. A handle is the node and its generation. While a
// handle exists it is a member of the node's stripe, which keeps the state alive. A late handle,
// whose subscription was removed and whose node belongs to another one, finds another generation
// and does nothing.
//
// Source: .NET's CancellationTokenRegistration and its Unregister.

#include <coppice/base/lifetime.hpp>
#include <coppice/stop/internal/list.hpp>
#include <coppice/stop/internal/running.hpp>
#include <coppice/stop/internal/state.hpp>
#include <coppice/stop/internal/subscribed_function.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace coppice {

// The results of unsubscribe().
enum class unsubscribed {
    removed,  // the function has not run and will not run
    running,  // it runs now; on this thread, if unsubscribe() was asked to wait
    ran       // it has returned, or ran in subscribe()
};

// A function that is subscribed to a stop_source: copied freely, and unsubscribed by the user.
class stop_subscription {
public:
    // Makes an empty subscription.
    stop_subscription() noexcept = default;
    stop_subscription(const stop_subscription& other) noexcept
        : node_(other.node_), generation_(other.generation_) {
        if (node_ == nullptr) return;
        const internal::stop_list::flags bits = list().lock();
        internal::stop_state::join(*node_->stripe);
        list().unlock(bits);
    }
    stop_subscription(stop_subscription&& other) noexcept
        : node_(std::exchange(other.node_, nullptr)),
          generation_(std::exchange(other.generation_, removed_before)) {}
    stop_subscription& operator=(stop_subscription other) noexcept {
        std::swap(node_, other.node_);
        std::swap(generation_, other.generation_);
        return *this;
    }
    // Leaves the function subscribed.
    ~stop_subscription() {
        if (node_ != nullptr) detach(*node_->stripe, list().lock(), removed_before);
    }

    // Ends the subscription. On a copy, or a second time, returns `removed` if the first call
    // removed it. An empty subscription is `removed`. Threads: any, on different objects. Blocks:
    // while the function runs on another thread. Cost: one lock.
    unsubscribed unsubscribe() noexcept { return end(true); }
    // Ends the subscription as unsubscribe() does, but never waits. Blocks: never.
    unsubscribed try_unsubscribe() noexcept { return end(false); }

private:
    friend class stop_token;

    // Values of generation_ without a node: what unsubscribe() returns.
    static constexpr std::uint64_t removed_before = 0;
    static constexpr std::uint64_t ran_before = 1;

    stop_subscription(internal::pooled_stop_node* node, std::uint64_t generation) noexcept
        : node_(node), generation_(generation) {}

    // Subscribes the function made from `init`, or calls it here if a stop was requested.
    template <class Init>
    static stop_subscription make(internal::stop_state& state, Init&& init);
    // Puts the node on the list and returns its handle. Requires the lock of the node's stripe,
    // which is not stopped, and unlocks it. Here and below the stripe is passed beside the node, so
    // that taking its lock need not wait until the node has been read.
    static stop_subscription publish(internal::stop_stripe& stripe,
                                     internal::pooled_stop_node& node) noexcept;
    // Frees an unlinked node, whose function is gone, for the next subscription. The caller must be
    // a member of the stripe or hold a handle of the state.
    static void give_back(internal::pooled_stop_node& node) noexcept;
    unsubscribed end(bool wait) noexcept;
    // Destroys the function of an unlinked node, without holding the lock meanwhile, and frees the
    // node. Requires the lock; returns with it held.
    static internal::stop_list::flags free(internal::stop_stripe& stripe,
                                           internal::pooled_stop_node& node,
                                           internal::stop_list::flags bits) noexcept;
    // Ends a subscription that is not on the list: it was ended before, or the request has taken
    // its function, which is running or has run. Requires the lock, with its other bits in `bits`,
    // and unlocks.
    [[gnu::noinline]] inline unsubscribed end_late(internal::stop_stripe& stripe,
                                                   internal::stop_list::flags bits, bool mine,
                                                   bool wait) noexcept;
    // Ends this handle's membership of the stripe, and unlocks. Requires the lock, with its other
    // bits in `bits`.
    void detach(internal::stop_stripe& stripe, internal::stop_list::flags bits,
                std::uint64_t outcome) noexcept;
    internal::stop_list& list() const noexcept { return node_->stripe->list; }

    // nullptr, or this handle is a member of the node's stripe.
    internal::pooled_stop_node* node_ = nullptr;
    std::uint64_t generation_ = removed_before;
};

// ---- Subscribing and unsubscribing --------------------------------------------------------------

template <class Init>
stop_subscription stop_subscription::make(internal::stop_state& state, Init&& init) {
    using function = std::decay_t<Init>;
    static_assert(std::invocable<function&>);
    internal::stop_stripe* const stripe = state.enter();
    if (stripe == nullptr) {
        function late(std::forward<Init>(init));
        late();
        return stop_subscription(nullptr, ran_before);
    }
    internal::pooled_stop_node* node = internal::pop_node(stripe->unused);
    // A trivial copy runs no user code, so it is made under the lock.
    if (internal::subscribed_function<function>::trivial && node != nullptr) {
        internal::subscribed_function<function>::construct(*node, std::forward<Init>(init));
        return publish(*stripe, *node);
    }
    stripe->list.unlock(0);
    if (node == nullptr) node = new internal::pooled_stop_node(*stripe);
    try {
        internal::subscribed_function<function>::construct(*node, std::forward<Init>(init));
    } catch (...) {
        give_back(*node);
        throw;
    }
    if (state.enter_again(*node->stripe)) return publish(*node->stripe, *node);
    // A stop came meanwhile, so the function runs here, from its node.
    const scope_exit end([node]() noexcept {
        if (node->destroy != nullptr) node->destroy(node);
        give_back(*node);
    });
    internal::subscribed_function<function>::in(node)();
    return stop_subscription(nullptr, ran_before);
}

inline stop_subscription stop_subscription::publish(internal::stop_stripe& stripe,
                                                    internal::pooled_stop_node& node) noexcept {
    const std::uint64_t generation = node.generation.read();
    stripe.list.push(node);
    internal::stop_state::join(stripe);
    stripe.list.unlock(0);
    return stop_subscription(&node, generation);
}

inline void stop_subscription::give_back(internal::pooled_stop_node& node) noexcept {
    const internal::stop_list::flags bits = node.stripe->list.lock();
    internal::push_node(node.stripe->unused, node);
    node.stripe->list.unlock(bits);
}

inline unsubscribed stop_subscription::end(bool wait) noexcept {
    if (node_ == nullptr) {
        return generation_ == ran_before ? unsubscribed::ran : unsubscribed::removed;
    }
    internal::pooled_stop_node& node = *node_;
    internal::stop_stripe& stripe = *node.stripe;
    const internal::stop_list::flags bits = stripe.list.lock();
    const bool mine =
        node.generation.read() == generation_ || internal::planted("shared.ignore_generation");
    if (!mine || !stripe.list.unlink(node)) [[unlikely]]
        return end_late(stripe, bits, mine, wait);
    node.generation.write(generation_ + 1);
    detach(stripe, free(stripe, node, bits), removed_before);
    return unsubscribed::removed;
}

inline internal::stop_list::flags stop_subscription::free(
    internal::stop_stripe& stripe, internal::pooled_stop_node& node,
    internal::stop_list::flags bits) noexcept {
    if (node.destroy != nullptr) {
        stripe.list.unlock(bits);
        node.destroy(&node);
        bits = stripe.list.lock();
    }
    internal::push_node(stripe.unused, node);
    return bits;
}

unsubscribed stop_subscription::end_late(internal::stop_stripe& stripe,
                                         internal::stop_list::flags bits, bool mine,
                                         bool wait) noexcept {
    if (!mine) {
        detach(stripe, bits, removed_before);
        return unsubscribed::removed;
    }
    // edge stop.done (acquire): the function has returned
    if (node_->phase.load(internal::acquire) == internal::stop_node::done) {
        detach(stripe, bits, ran_before);
        return unsubscribed::ran;
    }
    stripe.list.unlock(bits);
    if (!wait || internal::running_request::runs_here(static_cast<internal::stop_node*>(node_))) {
        return unsubscribed::running;
    }
    internal::callback_sleepers().wait_while(node_->phase, internal::stop_node::pooled);
    return unsubscribed::ran;
}

inline void stop_subscription::detach(internal::stop_stripe& stripe,
                                      internal::stop_list::flags bits,
                                      std::uint64_t outcome) noexcept {
    node_ = nullptr;
    generation_ = outcome;
    internal::stop_state* const dying = internal::stop_state::leave(stripe, bits);
    if (dying != nullptr) dying->end();
}

}  // namespace coppice
