// The state that stop_source, stop_token, stop_callback and stop_subscription share.
#pragma once
// Callbacks are in stripes: a stripe is a stop_list (protocol there) and what it counts. Each state
// has an inline stripe, which is all that most ever need. Only when registering threads have met at
// its lock often enough, a table of further stripes is allocated, once; from then on each thread
// registers at its home stripe, and moves its home on when it meets somebody there. A callback
// remembers its stripe and leaves in O(1).
//
// A stop. The lock of the inline stripe decides which request wins: the winner writes the cause and
// shows the bit `stopped` there, then marks and empties the other stripes one by one. A callback
// that registers at another stripe looks at the inline stripe's bit first: if the stop is visible,
// it runs in its constructor. If it is not, either its lock comes before the winner's at that
// stripe, and the winner finds it; or after, and it finds the stripe marked. The table is installed
// under the inline stripe's lock: the winner sees it, or who sees it sees the stop as well.
//
// Who keeps the state alive:
//   owners_   handles: sources and tokens. Sources are counted once more in the upper half, because
//             without a source no stop is possible.
//   members   of a stripe: stop_callbacks and subscriptions that are not yet destroyed. While there
//             is a handle they count for nothing, and touch no count that all threads share.
//   holds_    the request that runs and, once the last handle is gone, each stripe with members.
// The last handle's end locks all stripes, counts those with members into holds_ and marks each
// `orphaned`. The state is dead when it is orphaned and holds_ is 0; the thread that made it so
// destroys it. A parent or a deadline that requests a stop from then on is refused.
//
// Nodes of subscriptions stay with their stripe and are used again: in steady state nothing is
// allocated. A node's generation goes up when its subscription is removed, and never comes back: a
// late handle does not touch a stranger's subscription. The functions of subscriptions that remain
// when the state dies are destroyed and not run.
//
// Linked states may be a chain of any length, so nothing here calls itself along it. A request that
// comes from a parent shows the stop and takes its hold at once; if the parent's request came from
// a parent, too, the callbacks are run when that one's are (linked_states). A state that dies
// because its child has died is ended when that one is.

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/cause.hpp>
#include <coppice/stop/list.hpp>
#include <coppice/stop/running.hpp>
#include <coppice/stop/stripe.hpp>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

namespace coppice::internal {

class stop_deadline;    // deadline.hpp
struct parents_to_ask;  // links.hpp

// What a linked source holds of its parents; destroyed before the state.
struct [[gnu::visibility("default")]] stop_links {
    virtual ~stop_links() = default;
    // True: a parent can be stopped. If it is not known yet: `ask` says who has to be asked.
    virtual bool stop_possible(parents_to_ask& ask) const noexcept = 0;

    stop_state* following = nullptr;  // in the linked_states of the thread that works on this state
    // True: neither this state nor a parent can be stopped. Written by threads that have found it
    // out; relaxed: it stays so, and no data comes with it.
    atomic<bool> impossible{false};
};

// Linked states that a thread has still to work on, first in, first out. One thread's.
class [[gnu::visibility("default")]] linked_states {
public:
    inline void push(stop_state& state) noexcept;
    inline stop_state* pop() noexcept;

private:
    stop_state* first_ = nullptr;
    stop_state* last_ = nullptr;
};

// The deadline of a state: cold code in src/stop/deadline.cpp.
// Threads: any. arm() blocks on the timer's mutex; both throw what starting its thread throws.
bool deadline_pending(const stop_deadline& deadline) noexcept;
// Takes a pending deadline back. Blocks: while it is being delivered by another thread.
void disarm(stop_deadline& deadline) noexcept;
// The same, and frees it.
void destroy(stop_deadline& deadline) noexcept;

class [[gnu::visibility("default")]] stop_state : immovable {
public:
    explicit stop_state(stop_links* links = nullptr) noexcept : links_(links) {
        inline_.state = this;
    }

    // Handles. A new state has one, a source. Threads: any. Cost: one fetch_add or fetch_sub.
    // Lifetime: after a drop *this may be gone.
    void add_handle() noexcept { owners_.fetch_add(handle, relaxed); }
    void add_source() noexcept { owners_.fetch_add(handle + source, relaxed); }
    void drop_handle() noexcept { drop(handle); }
    void drop_source() noexcept { drop(handle + source); }

    bool stop_requested() const noexcept { return inline_.list.stop_requested(); }
    bool stop_possible() const noexcept {
        return stop_possible_here() || (asks_parents() && stop_possible_above());
    }
    // The same, but for the parents. False stays so until a parent stops this: only a source makes
    // sources and arms the deadline. In this order, each load shows what those before found gone
    // have done.
    bool stop_possible_here() const noexcept {
        // edge stop.handle (acquire): what the sources did that are gone is visible
        if (owners_.load(acquire) >= source) return true;
        // edge stop.deadline (acquire): the deadline is constructed
        const stop_deadline* const deadline = deadline_.load(acquire);
        return (deadline != nullptr && deadline_pending(*deadline)) || stop_requested();
    }
    // Whether there are parents that have to be asked.
    bool asks_parents() const noexcept {
        return links_ != nullptr && !links_->impossible.load(relaxed);
    }
    // The winner's cause, after a stop.
    stop_cause cause() const noexcept {
        if (!stop_requested()) return {};
        return stop_cause{code_.read(), text_.read()};
    }

    // Requests the stop and runs the callbacks on this thread. True for the first call only.
    // Lifetime: *this may be gone afterwards unless the caller holds a handle.
    bool request(stop_cause cause, exception_sink* exceptions = nullptr) noexcept {
        stop_list::flags bits = 0;
        const claiming claimed = claim(cause, bits);
        if (claimed == claiming::to_run) run_claimed(bits, exceptions, nullptr);
        return claimed != claiming::lost;
    }
    // The same, for a callback on a parent; exceptions go where those of the parent's request go.
    void request_from(const stop_state& parent, stop_cause cause) noexcept {
        stop_list::flags bits = 0;
        if (claim(cause, bits) != claiming::to_run) return;
        const shared_request above = running_request::brought_for(&parent);
        if (above.linked != nullptr) {
            inline_.list.unlock(bits);
            if (!planted("shared.forget_linked")) above.linked->push(*this);
            return;
        }
        linked_states linked;
        run_claimed(bits, above.exceptions, &linked);
        while (stop_state* const next = linked.pop()) {
            const stop_list::flags its = next->inline_.list.lock(stop_list::stopped);
            next->run_claimed(its, above.exceptions, &linked);
        }
    }

    // Locks the stripe at which this thread registers; nullptr if a stop was requested.
    // Threads: whoever has a handle, while the stripe is locked.
    [[nodiscard]] stop_stripe* enter() noexcept {
        // edge stop.table (acquire): the table's stripes are constructed
        stop_table* const table = table_.load(acquire);
        if (table != nullptr) [[unlikely]]
            return enter_table(*table);
        stop_list::flags seen = 0;
        if (inline_.list.try_lock(seen)) [[likely]]
            return &inline_;
        return enter_contended(seen);
    }

    // Locks this stripe of the state. False: a stop was requested. Threads: as for enter().
    [[nodiscard]] bool enter_again(stop_stripe& stripe) noexcept {
        if (&stripe != &inline_ && stop_requested()) return false;
        return (stripe.list.lock_unless(stop_list::stopped) & stop_list::stopped) == 0;
    }

    // Registers a stop_callback. Returns its stripe, or nullptr if a stop was requested and the
    // caller runs it. Threads: whoever has a handle, for the duration of the call.
    [[nodiscard]] stop_stripe* add(stop_node& node) noexcept {
        stop_stripe* const stripe = enter();
        if (stripe == nullptr) return nullptr;
        stripe->list.push(node);
        join(*stripe);
        stripe->list.unlock(0);
        return stripe;
    }

    // Ends the registration of a stop_callback. Lifetime: its state may be gone afterwards.
    // Blocks: while the callback runs on another thread.
    static void remove(stop_node& node, stop_stripe& stripe) noexcept {
        const stop_list::flags bits = stripe.list.lock();
        const bool removed = stripe.list.unlink(node);
        stop_state* const dying = leave(stripe, bits);
        if (!removed) [[unlikely]]
            end_taken(node);
        if (dying != nullptr) dying->end();
    }

    // Locked, with `bits`: one more member, or one less, which unlocks. The last one to leave an
    // orphaned state gets it, to end() it.
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

    // Dead: nobody else has a way here but parents and the deadline, which are refused.
    [[gnu::noinline]] void end() noexcept {
        // What the thread's innermost end() has to end after the links that it deletes now.
        linked_states*& later = thread_slot<stop_links, linked_states*>();
        if (later != nullptr && links_ != nullptr) {
            later->push(*this);
            return;
        }
        linked_states* const outer = std::exchange(later, nullptr);
        linked_states linked;
        for (stop_state* state = this; state != nullptr; state = linked.pop()) {
            later = &linked;
            delete std::exchange(state->links_, nullptr);  // waits for a parent being refused
            later = nullptr;
            state->destroy_unlinked();
        }
        later = outer;
    }

    // True: no stop was requested and no callback is registered; a pending deadline is taken back.
    // Blocks: while that deadline is being delivered.
    bool try_reset() noexcept {
        if (!is_idle()) return false;
        // edge stop.deadline (acquire): the deadline is constructed
        stop_deadline* const deadline = deadline_.load(acquire);
        if (deadline != nullptr) disarm(*deadline);
        return !stop_requested();
    }

    // The deadline, if there is one; and installs the first one, or says which one was.
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

    // What a linked source holds; before the source is handed out.
    void set_links(stop_links* links) noexcept { links_ = links; }

private:
    friend class linked_states;
    bool stop_possible_above() const noexcept;  // in src/stop/state.cpp
    static constexpr std::uint64_t handle = 1;
    static constexpr std::uint64_t source = std::uint64_t{1} << 32;
#if defined(COPPICE_MODEL)
    static constexpr std::uint32_t meetings_before_growth = 1;
    static constexpr std::size_t stripes_grown() noexcept { return 2; }
#else
    static constexpr std::uint32_t meetings_before_growth = 64;
    // Twice the processors, as a power of two: threads find a stripe of their own by moving on.
    static std::size_t stripes_grown() noexcept;
#endif

    // The number of this thread's home stripe, in whatever table.
    static std::size_t& home() noexcept { return thread_slot<stop_state, std::size_t>(); }

    // The inline stripe was locked by another thread, or a stop was requested.
    [[gnu::noinline, gnu::cold]] stop_stripe* enter_contended(stop_list::flags seen) noexcept {
        const bool met = (seen & stop_list::locked) != 0;
        seen = inline_.list.lock_contended(seen, stop_list::stopped);
        if ((seen & stop_list::stopped) != 0) return nullptr;
        if (!met) return &inline_;
        // Who counts the last meeting grows, alone: others use the inline stripe until it is done.
        const std::uint32_t meetings = inline_.meetings.read() + 1;
        if (meetings <= meetings_before_growth) inline_.meetings.write(meetings);
        if (meetings != meetings_before_growth && !planted("shared.grow_twice")) return &inline_;
        inline_.list.unlock(0);
        grow();
        return enter();
    }

    stop_stripe* enter_table(stop_table& table) noexcept {
        if (stop_requested() && !planted("shared.steal_late_callback")) return nullptr;
        stop_stripe& stripe = table.stripes[home() & table.mask];
        stop_list::flags seen = 0;
        if (stripe.list.try_lock(seen)) [[likely]]
            return &stripe;
        if ((seen & stop_list::locked) != 0) ++home();  // from the next time on
        seen = stripe.list.lock_contended(seen, stop_list::stopped);
        return (seen & stop_list::stopped) != 0 ? nullptr : &stripe;
    }

    // Installs the table. Without memory, none, and the meetings are counted anew.
    void grow() noexcept {
        const std::size_t stripes = stripes_grown();
        stop_table* const table = make_table(stripes);
        for (std::size_t i = 0; table != nullptr && i != stripes; ++i) {
            table->stripes[i].state = this;
        }
        const stop_list::flags bits = inline_.list.lock();
        COPPICE_CHECK(table_.load(relaxed) == nullptr, "a stop state grew twice");
        if (table == nullptr) inline_.meetings.write(0);
        // edge stop.table (release): the table's stripes are constructed
        if (table != nullptr) table_.store(table, release);
        inline_.list.unlock(bits);
    }

    static stop_table* make_table(std::size_t stripes) noexcept {
        stop_table* const table = try_new<stop_table>();
        if (table == nullptr) return nullptr;
        table->mask = stripes - 1;
        try {
            table->stripes = new stop_table::padded[stripes];
        } catch (const std::bad_alloc&) {
            delete table;
            return nullptr;
        }
        return table;
    }
    static void delete_table(stop_table* table) noexcept {
        delete[] table->stripes;
        delete table;
    }

    // Decides whether this request wins. to_run: it does, there are callbacks, and the state is
    // held and locked, with `bits`.
    enum class claiming { lost, nothing_to_run, to_run };
    claiming claim(stop_cause cause, stop_list::flags& bits) noexcept {
        bits = inline_.list.lock_unless(stop_list::stopped);
        if ((bits & stop_list::stopped) != 0) return claiming::lost;
        const bool dead = (bits & stop_list::orphaned) != 0 && holds_.read() == 0;
        if (dead && !planted("shared.stop_the_dead")) {
            inline_.list.unlock(bits);  // dead: the caller is what its end waits for
            return claiming::lost;
        }
        code_.write(cause.code);
        text_.write(cause.text);
        bits |= stop_list::stopped;
        if (inline_.list.empty() && table_to_run() == nullptr) {
            inline_.list.unlock(bits);
            return claiming::nothing_to_run;
        }
        holds_.write(holds_.read() + 1);
        return claiming::to_run;
    }
    stop_table* table_to_run() const noexcept {
        // Relaxed: written under the inline stripe's lock.
        return planted("shared.skip_table") ? nullptr : table_.load(relaxed);
    }

    // Locked, with `bits`: runs the callbacks and gives the hold back. Linked states that are
    // stopped by that are left in `linked`, or if it is nullptr run at once.
    void run_claimed(stop_list::flags bits, exception_sink* exceptions,
                     linked_states* linked) noexcept {
        shared_request context{exceptions, linked};
        running_request frame(this, nullptr, &context);
        stop_table* const table = table_to_run();
        bits = run_all(inline_, bits, frame);
        if (table != nullptr) {
            inline_.list.unlock(bits);
            for (std::size_t i = 0; i <= table->mask; ++i) {
                stop_stripe& stripe = table->stripes[i];
                const stop_list::flags its = stripe.list.lock() | stop_list::stopped;
                stripe.list.unlock(run_all(stripe, its, frame));
            }
            bits = inline_.list.lock(stop_list::stopped);
        }
        if (release_hold(bits)) end();
    }

    // Locked, with `bits`: runs the stripe's callbacks, newest first, each without the lock.
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
        const stop_list::flags bits = inline_.list.lock_unless(stop_list::stopped);
        if ((bits & stop_list::stopped) != 0) return false;
        bool idle = inline_.list.empty();
        stop_table* const table = table_.load(relaxed);  // relaxed: written under this lock
        for (std::size_t i = 0; table != nullptr && i <= table->mask; ++i) {
            stop_list& list = table->stripes[i].list;
            const stop_list::flags its = list.lock();
            idle = idle && list.empty();
            list.unlock(its);
        }
        inline_.list.unlock(bits);
        return idle;
    }

    void drop(std::uint64_t what) noexcept {
        // edge stop.handle (acq_rel): what the other handles did is visible to the last
        const std::uint64_t before = owners_.fetch_sub(what, acq_rel);
        if (static_cast<std::uint32_t>(before) == 1) orphan();
    }

    // The last handle is gone: callbacks and a running request keep the state alive, if any.
    [[gnu::noinline]] void orphan() noexcept {
        const stop_list::flags bits = inline_.list.lock();
        std::uint32_t holds = holds_.read() + (inline_.members.read() != 0);
        stop_table* const table = table_.load(relaxed);  // relaxed: written under this lock
        for (std::size_t i = 0; table != nullptr && i <= table->mask; ++i) {
            stop_stripe& stripe = table->stripes[i];
            const stop_list::flags its = stripe.list.lock();
            holds += stripe.members.read() != 0 && !planted("shared.forget_members");
            stripe.list.unlock(its | stop_list::orphaned);
        }
        holds_.write(holds);
        inline_.list.unlock(bits | stop_list::orphaned);
        if (holds == 0) end();
    }

    // The last member of an orphaned stripe, which is locked, has left. Returns this if it is dead.
    [[gnu::noinline, gnu::cold]] stop_state* leave_orphan(stop_stripe& stripe,
                                                          stop_list::flags bits) noexcept {
        if (&stripe != &inline_) {
            stripe.list.unlock(bits);
            bits = inline_.list.lock(bits);
        }
        return release_hold(bits) ? this : nullptr;
    }

    // Locked, with `bits`: gives one hold back and unlocks. True: the state is dead.
    bool release_hold(stop_list::flags bits) noexcept {
        const std::uint32_t holds = holds_.read() - 1;
        holds_.write(holds);
        const bool dead = holds == 0 && (bits & stop_list::orphaned) != 0;
        inline_.list.unlock(bits);
        return dead;
    }

    void destroy_unlinked() noexcept {
        stop_deadline* const deadline = deadline_.load(relaxed);  // relaxed: the last one here
        if (deadline != nullptr) destroy(*deadline);
        delete_nodes(inline_);
        stop_table* const table = table_.load(relaxed);
        for (std::size_t i = 0; table != nullptr && i <= table->mask; ++i) {
            delete_nodes(table->stripes[i]);
        }
        if (table != nullptr) delete_table(table);
        delete this;
    }

    static void delete_nodes(stop_stripe& stripe) noexcept {
        COPPICE_CHECK(stripe.members.read() == 0, "a stop state ended before its callbacks");
        while (stop_node* const node = stripe.list.pop()) {
            pooled_stop_node* const pooled = static_cast<pooled_stop_node*>(node);
            if (pooled->destroy != nullptr) pooled->destroy(pooled);
            delete pooled;
        }
        while (pooled_stop_node* const node = pop_node(stripe.unused)) delete node;
        while (pooled_stop_node* const node = pop_node(stripe.spent)) delete node;
    }

    // Ends a callback that a request has taken. Blocks: while it runs on another thread.
    static void end_taken(stop_node& node) noexcept {
        // edge stop.done (acquire): the callback has returned
        if (node.phase.load(acquire) == stop_node::done) return;
        if (running_request::forget_callback(&node) == nullptr) wait_done(node);
    }

    // Handles in the lower half, sources among them in the upper. Written by whoever copies or
    // drops a handle; relaxed where it grows, because who copies holds one.
    atomic<std::uint64_t> owners_{handle + source};
    stop_stripe inline_;
    // nullptr, or the further stripes. Written once, under the inline stripe's lock.
    atomic<stop_table*> table_{nullptr};
    plain<std::uint32_t> holds_{0};  // guarded by the inline stripe's lock; see on top
    plain<int> code_{0};             // the cause: written by the winner before `stopped` is shown
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
