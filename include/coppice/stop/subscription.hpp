// stop_subscription: a handle of a function that runs on a stop; for who keeps no callback.
#pragma once
// The function lives in a node of the state, which is used again after the subscription's end: in
// steady state subscribing allocates nothing. A handle is the node and its generation, and a count
// on the state; a handle that comes late, after its subscription was removed and the node given to
// another one, finds another generation and does nothing.
//
// Source: .NET's CancellationTokenRegistration and its Unregister.

#include <coppice/base/lifetime.hpp>
#include <coppice/stop/list.hpp>
#include <coppice/stop/running.hpp>
#include <coppice/stop/state.hpp>

#include <concepts>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

namespace coppice {

// Where exceptions of subscribed functions go during one request.
class exception_sink {
public:
    virtual void take(std::exception_ptr thrown) noexcept = 0;

protected:
    ~exception_sink() = default;
};

template <class OnException>
class exception_sink_of final : public exception_sink {
public:
    explicit exception_sink_of(OnException& on_exception) noexcept : on_exception_(on_exception) {}
    void take(std::exception_ptr thrown) noexcept override { on_exception_(std::move(thrown)); }

private:
    OnException& on_exception_;
};

// What unsubscribe() finds.
enum class unsubscribed {
    removed,  // the function has not run and will not
    running,  // it runs now; on this thread, if unsubscribe() was asked to wait
    ran       // it has returned, or has run in subscribe()
};

class stop_subscription {
public:
    // Nothing is subscribed.
    stop_subscription() noexcept = default;
    stop_subscription(const stop_subscription& other) noexcept
        : state_(other.state_), node_(other.node_), generation_(other.generation_) {
        if (state_ != nullptr) state_->add_handle();
    }
    stop_subscription(stop_subscription&& other) noexcept
        : state_(std::exchange(other.state_, nullptr)),
          node_(std::exchange(other.node_, nullptr)),
          generation_(other.generation_) {}
    stop_subscription& operator=(stop_subscription other) noexcept {
        std::swap(state_, other.state_);
        std::swap(node_, other.node_);
        std::swap(generation_, other.generation_);
        return *this;
    }
    // Leaves the function subscribed.
    ~stop_subscription() {
        if (state_ != nullptr) state_->drop_handle();
    }

    // Ends the subscription; on a copy, or a second time, says what the first one did, if it
    // removed it. An empty subscription is removed. Threads: any. Blocks: while the function runs
    // on another thread. Cost: one lock.
    unsubscribed unsubscribe() noexcept { return end(true); }
    // The same, but never waits. Blocks: never.
    unsubscribed try_unsubscribe() noexcept { return end(false); }

private:
    friend class stop_token;

    // A function in its node, or behind a pointer in it.
    template <class Function>
    struct stored {
        static constexpr bool inside =
            sizeof(Function) <= pooled_stop_node::room && alignof(Function) <= alignof(void*);
        static constexpr bool trivial = inside && std::is_trivially_copyable_v<Function>;

        static Function& in(stop_node* node) noexcept {
            void* const storage = static_cast<pooled_stop_node*>(node)->storage;
            if constexpr (inside) {
                return *std::launder(static_cast<Function*>(storage));
            } else {
                return **std::launder(static_cast<Function**>(storage));
            }
        }
        template <class Init>
        static void construct(pooled_stop_node& node, Init&& init) {
            if constexpr (inside) {
                ::new (static_cast<void*>(node.storage)) Function(std::forward<Init>(init));
            } else {
                ::new (static_cast<void*>(node.storage))
                    Function*(new Function(std::forward<Init>(init)));
            }
            node.execute = &run;
            node.destroy = trivial ? nullptr : &destroy;
        }
        static void run(stop_node* node) noexcept {
            try {
                in(node)();
            } catch (...) {
                exception_sink* const sink = running_request::exceptions();
                if (sink == nullptr) std::terminate();
                sink->take(std::current_exception());
            }
            if constexpr (!trivial) destroy(static_cast<pooled_stop_node*>(node));
        }
        static void destroy(pooled_stop_node* node) noexcept {
            if constexpr (inside) {
                std::destroy_at(&in(node));
            } else {
                delete &in(node);
            }
        }
    };

    stop_subscription(stop_state* state, pooled_stop_node* node, std::uint64_t generation) noexcept
        : state_(state), node_(node), generation_(generation) {
        if (state_ != nullptr) state_->add_handle();
    }

    template <class Init>
    static stop_subscription make(stop_state& state, Init&& init) {
        using function = std::decay_t<Init>;
        static_assert(std::invocable<function&>);
        stop_stripe* const stripe = state.enter();
        if (stripe == nullptr) {
            function late(std::forward<Init>(init));
            late();
            return stop_subscription(nullptr, nullptr, ran_at_once);
        }
        pooled_stop_node* node = pop_node(stripe->unused);
        // A trivial copy is no foreign code: it is made under the lock.
        if (stored<function>::trivial && node != nullptr) {
            stored<function>::construct(*node, std::forward<Init>(init));
            return publish(state, *node);
        }
        stripe->list.unlock(0);
        if (node == nullptr) node = new pooled_stop_node(*stripe);
        try {
            stored<function>::construct(*node, std::forward<Init>(init));
        } catch (...) {
            give_back(*node);
            throw;
        }
        if (state.enter_again(*node->stripe)) return publish(state, *node);
        // Stopped meanwhile: the function runs here, from its node.
        const scope_exit end([node]() noexcept {
            if (node->destroy != nullptr) node->destroy(node);
            give_back(*node);
        });
        stored<function>::in(node)();
        return stop_subscription(nullptr, nullptr, ran_at_once);
    }

    // The node's stripe is locked, and not stopped.
    static stop_subscription publish(stop_state& state, pooled_stop_node& node) noexcept {
        const std::uint64_t generation = node.generation.read();
        node.stripe->list.push(node);
        node.stripe->list.unlock(0);
        return stop_subscription(&state, &node, generation);
    }

    // An unlinked node, whose function is gone, is free for the next subscription.
    static void give_back(pooled_stop_node& node) noexcept {
        const stop_list::flags bits = node.stripe->list.lock();
        push_node(node.stripe->unused, node);
        node.stripe->list.unlock(bits);
    }

    unsubscribed end(bool wait) noexcept {
        if (node_ == nullptr) {
            return generation_ == ran_at_once ? unsubscribed::ran : unsubscribed::removed;
        }
        stop_list& list = node_->stripe->list;
        const stop_list::flags bits = list.lock();
        if (node_->generation.read() != generation_ && !planted("shared.ignore_generation")) {
            list.unlock(bits);
            return unsubscribed::removed;
        }
        if (list.unlink(*node_)) {
            remove_locked(bits);
            return unsubscribed::removed;
        }
        list.unlock(bits);
        // edge stop.done (acquire): the function has returned
        if (node_->phase.load(acquire) == stop_node::done) return unsubscribed::ran;
        if (!wait || running_request::runs_here(static_cast<stop_node*>(node_))) {
            return unsubscribed::running;
        }
        callback_sleepers().sleep_while(node_->phase, stop_node::pooled);
        return unsubscribed::ran;
    }

    // Unlinked under the lock, which is released here: the function is destroyed without it.
    void remove_locked(stop_list::flags bits) noexcept {
        node_->generation.write(generation_ + 1);
        if (node_->destroy == nullptr) {
            push_node(node_->stripe->unused, *node_);
            node_->stripe->list.unlock(bits);
            return;
        }
        node_->stripe->list.unlock(bits);
        node_->destroy(node_);
        give_back(*node_);
    }

    static constexpr std::uint64_t ran_at_once = 1;  // a generation without a node

    stop_state* state_ = nullptr;  // nullptr, or counted as a handle
    pooled_stop_node* node_ = nullptr;
    std::uint64_t generation_ = 0;
};

}  // namespace coppice
