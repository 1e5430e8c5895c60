// stop_state: what stop_source, stop_token, stop_callback, and stop_subscription share.
#pragma once
// The callbacks are in stripes (stripes.hpp): the inline stripe, and perhaps a table of further
// ones.
//
// A stop. The lock of the inline stripe decides which request wins. The winner writes the cause and
// sets the bit `stopped` there, then marks and empties the other stripes one by one. A callback
// that registers in another stripe first looks at the inline stripe's bit. If it sees the stop, it
// runs in its constructor. Otherwise its lock comes before the winner's at that stripe, and the
// winner finds it; or after, and it finds the stripe marked. The table is installed under the
// inline stripe's lock: the winner sees it, or a thread that sees it sees the stop too.
//
// What keeps the state alive:
//   owners_   handles: sources and tokens. Sources are counted again in the upper half, because
//             without a source no stop is possible.
//   members   of a stripe: stop_callbacks and subscriptions that are not destroyed yet. While there
//             is a handle they do not matter, and touch no count that all threads share.
//   holds_    the running request and, once the last handle is gone, each stripe with members.
// The end of the last handle locks all stripes, counts those with members into holds_, and marks
// each as `orphaned`. The state is dead when it is orphaned and holds_ is 0; the thread that made
// it so destroys it. From then on a request from a parent or a deadline is refused.
//
// Nodes of subscriptions stay with their stripe and are reused, so in steady state nothing is
// allocated. The generation of a node goes up when its subscription is removed, and never comes
// back, so a late handle does not affect a later subscription. When the state dies, the functions
// of remaining subscriptions are destroyed without running.
//
// Linked states may form a chain of any length, so no function here recurses along it. A request
// that comes from a parent sets the bit and takes its hold at once. If the parent's request came
// from a parent too, the callbacks run when the parent's do (linked_states). If the end of a child
// makes its parent dead, the thread that ends the child ends the parent after it.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/cause.hpp>
#include <coppice/stop/internal/list.hpp>
#include <coppice/stop/internal/running.hpp>
#include <coppice/stop/internal/stripe.hpp>
#include <coppice/stop/internal/stripes.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace coppice::internal {

class stop_deadline;    // deadline.hpp
struct parents_to_ask;  // links.hpp

// What a linked source holds of its parents. Destroyed before the state.
struct [[gnu::visibility("default")]] stop_links {
    virtual ~stop_links() = default;
    // Returns true if a parent can be stopped. If that is not known, sets `ask` to parents to ask.
    virtual bool stop_possible(parents_to_ask& ask) const noexcept = 0;

    stop_state* following = nullptr;  // in the linked_states of the thread that works on this state
    // True if neither this state nor a parent can be stopped. Written by threads that have found it
    // out. Relaxed: it stays true, and no data comes with it.
    atomic<bool> impossible{false};
};

// The linked states that a thread still has to work on, first in, first out. One thread's own.
class [[gnu::visibility("default")]] linked_states {
public:
    inline void push(stop_state& state) noexcept;
    inline stop_state* pop() noexcept;

private:
    stop_state* first_ = nullptr;
    stop_state* last_ = nullptr;
};

// The deadline of a state; cold code in src/stop/deadline.cpp. Threads: any.
bool deadline_pending(const stop_deadline& deadline) noexcept;
// Withdraws a pending deadline. Blocks: while another thread is delivering it.
void disarm(stop_deadline& deadline) noexcept;
// Withdraws the deadline and frees it. Blocks: as disarm().
void destroy(stop_deadline& deadline) noexcept;

class [[gnu::visibility("default")]] stop_state : immovable {
public:
    explicit stop_state(stop_links* links = nullptr) noexcept : stripes_(*this), links_(links) {}

    // Handles. A new state has one, a source. Threads: any. Cost: one fetch_add or fetch_sub.
    // Lifetime: *this may be gone after a drop.
    void add_handle() noexcept { owners_.fetch_add(handle, relaxed); }
    void add_source() noexcept { owners_.fetch_add(handle + source, relaxed); }
    void drop_handle() noexcept { drop(handle); }
    void drop_source() noexcept { drop(handle + source); }

    bool stop_requested() const noexcept { return stripes_.stop_requested(); }
    bool stop_possible() const noexcept {
        return stop_possible_here() || (asks_parents() && stop_possible_above());
    }
    // Returns true if this state was stopped, or can be without a parent. If it returns false, it
    // does so until a parent stops this state, because only a source makes sources and sets the
    // deadline. The order of the loads matters: each one sees what the owners did that the load
    // before it found gone.
    bool stop_possible_here() const noexcept {
        // edge stop.handle (acquire): what the sources did that are gone is visible
        if (owners_.load(acquire) >= source) return true;
        // edge stop.deadline (acquire): the deadline is constructed
        const stop_deadline* const deadline = deadline_.load(acquire);
        return (deadline != nullptr && deadline_pending(*deadline)) || stop_requested();
    }
    // Returns true if there are parents to ask.
    bool asks_parents() const noexcept {
        return links_ != nullptr && !links_->impossible.load(relaxed);
    }
    // Returns the winner's cause after a stop.
    stop_cause cause() const noexcept {
        if (!stop_requested()) return {};
        return stop_cause{code_.read(), text_.read()};
    }

    // Requests the stop and runs the callbacks on this thread. Returns true for the first call
    // only. Lifetime: *this may be gone afterwards, unless the caller holds a handle.
    bool request(stop_cause cause, exception_sink* exceptions = nullptr) noexcept {
        stop_list::flags bits = 0;
        const claiming claimed = claim(cause, bits);
        if (claimed == claiming::to_run) run_claimed(bits, exceptions, nullptr);
        return claimed != claiming::lost;
    }
    // Requests the stop on behalf of a callback on a parent. Exceptions go where the parent's
    // request sends them.
    void request_from(const stop_state& parent, stop_cause cause) noexcept {
        stop_list::flags bits = 0;
        if (claim(cause, bits) != claiming::to_run) return;
        const shared_request above = running_request::brought_for(&parent);
        if (above.linked != nullptr) {
            stripes_.first.list.unlock(bits);
            if (!planted("shared.forget_linked")) above.linked->push(*this);
            return;
        }
        linked_states linked;
        run_claimed(bits, above.exceptions, &linked);
        while (stop_state* const next = linked.pop()) {
            const stop_list::flags its = next->stripes_.first.list.lock(stop_list::stopped);
            next->run_claimed(its, above.exceptions, &linked);
        }
    }

    // Both lock the stripe in which a callback registers; see stop_stripes. Threads: those that
    // hold a handle while the stripe is locked.
    [[nodiscard]] stop_stripe* enter() noexcept { return stripes_.enter(); }
    [[nodiscard]] bool enter_again(stop_stripe& stripe) noexcept {
        return stripes_.enter_again(stripe);
    }

    // Registers a stop_callback and returns its stripe; nullptr if a stop was requested and the
    // caller must run it. Threads: those that hold a handle during the call.
    [[nodiscard]] stop_stripe* add(stop_node& node) noexcept {
        stop_stripe* const stripe = enter();
        if (stripe == nullptr) return nullptr;
        stripe->list.push(node);
        join(*stripe);
        stripe->list.unlock(0);
        return stripe;
    }

    // Ends the registration of a stop_callback. Lifetime: its state may be gone afterwards. Blocks:
    // while the callback runs on another thread.
    static void remove(stop_node& node, stop_stripe& stripe) noexcept {
        const stop_list::flags bits = stripe.list.lock();
        const bool removed = stripe.list.unlink(node);
        stop_state* const dying = leave(stripe, bits);
        if (!removed) [[unlikely]]
            end_taken(node);
        if (dying != nullptr) dying->end();
    }

    // Both require the lock. join() counts one more member. leave() counts one less and unlocks; it
    // returns an orphaned state to its last member, which must end() it.
    static void join(stop_stripe& stripe) noexcept {
        stripe.members.write(stripe.members.read() + 1);
    }
    [[nodiscard]] static stop_state* leave(stop_stripe& stripe, stop_list::flags bits) noexcept {
        const std::uint32_t members = stripe.members.read() - 1;
        stripe.members.write(members);
        if (members == 0 && (bits & stop_list::orphaned) != 0) [[unlikely]] {
            return stripe.state->leave_orphan(stripe, bits);
        }
        stripe.list.unlock(bits);
        return nullptr;
    }

    // Destroys a dead state. Only parents and the deadline still reach it, and they are refused.
    [[gnu::noinline]] void end() noexcept {
        // States that this thread's innermost end() ends after the links that it deletes now.
        linked_states*& later = thread_slot<stop_links, linked_states*>();
        if (later != nullptr && links_ != nullptr) {
            later->push(*this);
            return;
        }
        linked_states* const outer = std::exchange(later, nullptr);
        linked_states linked;
        for (stop_state* state = this; state != nullptr; state = linked.pop()) {
            later = &linked;
            delete std::exchange(state->links_, nullptr);  // waits for a refused parent
            later = nullptr;
            state->destroy_unlinked();
        }
        later = outer;
    }

    // Returns true if no stop was requested and no callback is registered; then withdraws a pending
    // deadline. Blocks: while that deadline is being delivered.
    bool try_reset() noexcept {
        if (!is_idle()) return false;
        // edge stop.deadline (acquire): the deadline is constructed
        stop_deadline* const deadline = deadline_.load(acquire);
        if (deadline != nullptr) disarm(*deadline);
        return !stop_requested();
    }

    // Return the deadline or nullptr; install() sets the first one and returns the one before it.
    stop_deadline* deadline() const noexcept {
        // edge stop.deadline (acquire): the deadline is constructed
        return deadline_.load(acquire);
    }
    stop_deadline* install(stop_deadline& first) noexcept {
        stop_deadline* before = nullptr;
        // edge stop.deadline (acq_rel): the deadline is constructed
        deadline_.compare_exchange_strong(before, &first, acq_rel, acquire);
        return before;
    }

    // Sets what a linked source holds. Called before the source is handed out.
    void set_links(stop_links* links) noexcept { links_ = links; }

private:
    friend class linked_states;
    bool stop_possible_above() const noexcept;  // in src/stop/state.cpp
    static constexpr std::uint64_t handle = 1;
    static constexpr std::uint64_t source = std::uint64_t{1} << 32;
    // Decides whether this request wins. to_run: it wins, there are callbacks, and the state is
    // held and locked, with `bits`.
    enum class claiming { lost, nothing_to_run, to_run };
    claiming claim(stop_cause cause, stop_list::flags& bits) noexcept {
        bits = stripes_.first.list.lock_unless(stop_list::stopped);
        if ((bits & stop_list::stopped) != 0) return claiming::lost;
        const bool dead = (bits & stop_list::orphaned) != 0 && holds_.read() == 0;
        if (dead && !planted("shared.stop_the_dead")) {
            stripes_.first.list.unlock(bits);  // dead: its end waits for the caller
            return claiming::lost;
        }
        code_.write(cause.code);
        text_.write(cause.text);
        bits |= stop_list::stopped;
        if (stripes_.first.list.empty() && table_to_run() == nullptr) {
            stripes_.first.list.unlock(bits);
            return claiming::nothing_to_run;
        }
        holds_.write(holds_.read() + 1);
        return claiming::to_run;
    }
    stop_table* table_to_run() const noexcept {
        return planted("shared.skip_table") ? nullptr : stripes_.table();
    }

    // Runs the callbacks and gives the hold back. Puts linked states that this stops into `linked`,
    // or runs them at once if that is nullptr. Requires the lock, with its other bits in `bits`.
    void run_claimed(stop_list::flags bits, exception_sink* exceptions,
                     linked_states* linked) noexcept {
        shared_request context{exceptions, linked};
        running_request frame(this, nullptr, &context);
        stop_table* const table = table_to_run();
        bits = run_all(stripes_.first, bits, frame);
        if (table != nullptr) {
            stripes_.first.list.unlock(bits);
            for (std::size_t i = 0; i <= table->mask; ++i) {
                stop_stripe& stripe = table->stripes[i];
                const stop_list::flags its = stripe.list.lock() | stop_list::stopped;
                stripe.list.unlock(run_all(stripe, its, frame));
            }
            bits = stripes_.first.list.lock(stop_list::stopped);
        }
        if (release_hold(bits)) end();
    }

    // Runs the callbacks, newest first, each without the lock. Requires the lock, with its other
    // bits in `bits`.
    static stop_list::flags run_all(stop_stripe& stripe, stop_list::flags bits,
                                    running_request& frame) noexcept {
        while (stop_node* const node = stripe.list.pop()) {
            const bool pooled = node->phase.load(relaxed) == stop_node::pooled;
            stripe.list.unlock(bits);
            frame.set_callback(node);
            node->execute(node);
            if (!frame.callback_gone()) finish(*node);
            bits = stripe.list.lock(bits) | stop_list::stopped;
            if (pooled) push_node(stripe.spent, static_cast<pooled_stop_node&>(*node));
        }
        return bits;
    }

    bool is_idle() noexcept {
        const stop_list::flags bits = stripes_.first.list.lock_unless(stop_list::stopped);
        if ((bits & stop_list::stopped) != 0) return false;
        bool idle = stripes_.first.list.empty();
        stop_table* const table = stripes_.table();
        for (std::size_t i = 0; table != nullptr && i <= table->mask; ++i) {
            stop_list& list = table->stripes[i].list;
            const stop_list::flags its = list.lock();
            idle = idle && list.empty();
            list.unlock(its);
        }
        stripes_.first.list.unlock(bits);
        return idle;
    }

    void drop(std::uint64_t what) noexcept {
        // edge stop.handle (acq_rel): what the other handles did is visible to the last
        const std::uint64_t before = owners_.fetch_sub(what, acq_rel);
        if (static_cast<std::uint32_t>(before) == 1) orphan();
    }

    // The last handle is gone; callbacks and a running request still keep the state alive.
    [[gnu::noinline]] void orphan() noexcept {
        const stop_list::flags bits = stripes_.first.list.lock();
        std::uint32_t holds = holds_.read() + (stripes_.first.members.read() != 0);
        stop_table* const table = stripes_.table();
        for (std::size_t i = 0; table != nullptr && i <= table->mask; ++i) {
            stop_stripe& stripe = table->stripes[i];
            const stop_list::flags its = stripe.list.lock();
            holds += stripe.members.read() != 0 && !planted("shared.forget_members");
            stripe.list.unlock(its | stop_list::orphaned);
        }
        holds_.write(holds);
        stripes_.first.list.unlock(bits | stop_list::orphaned);
        if (holds == 0) end();
    }

    // The last member of a locked, orphaned stripe has left. Returns this if it is dead.
    [[gnu::noinline, gnu::cold]] stop_state* leave_orphan(stop_stripe& stripe,
                                                          stop_list::flags bits) noexcept {
        if (&stripe != &stripes_.first) {
            stripe.list.unlock(bits);
            bits = stripes_.first.list.lock(bits);
        }
        return release_hold(bits) ? this : nullptr;
    }

    // Gives a hold back and unlocks. Returns true if the state is dead. Requires the lock, with its
    // other bits in `bits`.
    bool release_hold(stop_list::flags bits) noexcept {
        const std::uint32_t holds = holds_.read() - 1;
        holds_.write(holds);
        const bool dead = holds == 0 && (bits & stop_list::orphaned) != 0;
        stripes_.first.list.unlock(bits);
        return dead;
    }

    void destroy_unlinked() noexcept {
        // Relaxed: no other thread is left.
        stop_deadline* const deadline = deadline_.load(relaxed);
        if (deadline != nullptr) destroy(*deadline);
        delete_nodes(stripes_.first);
        stop_table* const table = stripes_.table();
        for (std::size_t i = 0; table != nullptr && i <= table->mask; ++i) {
            delete_nodes(table->stripes[i]);
        }
        if (table != nullptr) delete_stop_table(table);
        delete this;
    }

    // Ends a callback that a request has taken. Blocks: while it runs on another thread.
    static void end_taken(stop_node& node) noexcept {
        // edge stop.done (acquire): the callback has returned
        if (node.phase.load(acquire) == stop_node::done) return;
        if (running_request::forget_callback(&node) == nullptr) wait_done(node);
    }

    // Handles in the lower half, the sources among them in the upper half. Written by threads that
    // copy or drop a handle. Relaxed where it grows: a thread that copies a handle holds one.
    atomic<std::uint64_t> owners_{handle + source};
    stop_stripes stripes_;
    plain<std::uint32_t> holds_{0};  // guarded by the inline stripe's lock; see above
    plain<int> code_{0};             // written by the winner before it sets `stopped`
    plain<const char*> text_{""};
    stop_links* links_;  // written before the state is shared
    // nullptr, or the deadline. Written once, by the first request_stop_after().
    atomic<stop_deadline*> deadline_{nullptr};
};

void linked_states::push(stop_state& state) noexcept {
    if (first_ == nullptr) {
        first_ = &state;
    } else {
        last_->links_->following = &state;
    }
    last_ = &state;
}
stop_state* linked_states::pop() noexcept {
    stop_state* const state = first_;
    if (state != nullptr) first_ = std::exchange(state->links_->following, nullptr);
    return state;
}

}  // namespace coppice::internal
