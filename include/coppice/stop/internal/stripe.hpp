// stop_stripe: a part of the callbacks of a stop_state, and the nodes of its subscriptions.
#pragma once
// stripes.hpp says what stripes are for.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/stop/internal/list.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

class stop_state;

struct pooled_stop_node;

// A part of the callbacks of a state. Guarded by the lock of its list, except `state`.
struct stop_stripe {
    stop_list list;
    plain<std::uint32_t> members{0};           // callbacks and subscriptions not yet destroyed
    plain<std::uint32_t> meetings{0};          // contended registrations, until growth
    plain<pooled_stop_node*> unused{nullptr};  // linked by `next`, as are the spent ones
    plain<pooled_stop_node*> spent{nullptr};   // nodes whose function has run; not used again
    stop_state* state = nullptr;               // written before the stripe is shared
};

// A node that stays with its stripe and has space for a function; see subscribed_function.hpp.
struct pooled_stop_node : stop_node {
    explicit pooled_stop_node(stop_stripe& home) noexcept
        : stop_node(nullptr, pooled), stripe(&home) {}
    static constexpr std::size_t room = 40;

    stop_stripe* const stripe;
    plain<std::uint64_t> generation{0};                     // guarded by the stripe's lock
    void (*destroy)(pooled_stop_node*) noexcept = nullptr;  // nullptr: nothing to do
    alignas(void*) std::byte storage[room];
};

// Put a node on, or take one from, one of the two chains of its stripe. Call them with the stripe's
// lock.
inline void push_node(plain<pooled_stop_node*>& chain, pooled_stop_node& node) noexcept {
    node.next.write(chain.read());
    chain.write(&node);
}
inline pooled_stop_node* pop_node(plain<pooled_stop_node*>& chain) noexcept {
    pooled_stop_node* const node = chain.read();
    if (node != nullptr) chain.write(static_cast<pooled_stop_node*>(node->next.read()));
    return node;
}

// Deletes the nodes of a stripe whose state ends. Functions that have not run are destroyed.
inline void delete_nodes(stop_stripe& stripe) noexcept {
    COPPICE_CHECK(stripe.members.read() == 0, "a stop state ended before its callbacks");
    while (stop_node* const node = stripe.list.pop()) {
        pooled_stop_node* const pooled = static_cast<pooled_stop_node*>(node);
        if (pooled->destroy != nullptr) pooled->destroy(pooled);
        delete pooled;
    }
    while (pooled_stop_node* const node = pop_node(stripe.unused)) delete node;
    while (pooled_stop_node* const node = pop_node(stripe.spent)) delete node;
}

}  // namespace coppice::internal
