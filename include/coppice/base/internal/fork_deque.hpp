// fork_deque: a worker's forked calls; a call that is not stolen costs no fence and no exchange.
#pragma once
// fork_join and wait_for_tasks push and pop here; the workers of pools steal. The deque is split.
// What lies at or above the split is private to the owner, which pushes and pops it with plain
// loads and stores. What lies below is public, and exchanges on one word decide which worker gets
// it. Nothing is public until a thief asks. Then the owner publishes the older half of its calls,
// or the thief does so itself while the owner is busy. pool/PROTOCOL.md has the proof.
//
//   slots     0 ......... tail ......... split ......... head
//                taken          public         private
//
//   head_        moved by the owner only; read by a thief that grabs
//   public_      tail, split, and how many stolen calls the owner has run. Thieves move tail up.
//                The holder of lock_ moves split, by exchange, or by a store while tail == split.
//   lock_        0 free, 1 held: by the owner off its fast path, or by a thief that grabs
//   push_limit_  push is slow from this slot on: the end, or the first slot while a thief asks
//   pop_limit_   pop is slow below this slot: the split, or everything while a thief asks
//
// Where light fences are not free (asymmetric.hpp) the limits stay raised, and everything goes
// through the lock.
//
// Source: ours, after the split deque of Lace (van Dijk and van de Pol 2014). There the owner needs
// a fence when it shrinks its public part, and a thief whose victim does not fork gets no help.

#include <coppice/base/internal/asymmetric.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/cold_call.hpp>
#include <coppice/base/internal/fork_slot.hpp>
#include <coppice/base/internal/futex.hpp>
#include <coppice/base/internal/no_fork_context.hpp>
#include <coppice/base/lifetime.hpp>

#include <time.h>
#include <cstdint>

namespace coppice::internal {

// The context that forked calls inherit from their forker on this thread: a pointer of the user
// (fork_join: the stop scope). Contexts nest like calls.
class [[gnu::visibility("default")]] fork_context : immovable {
public:
    // In force until it is destroyed, for everything that this thread calls and pushes.
    explicit inline fork_context(const void* value) noexcept;
    inline ~fork_context();
    static const void* current() noexcept {
        const fork_context* const scope = innermost();
        return scope == nullptr ? nullptr : scope->value_;
    }

private:
    friend class fork_deque;
    static const fork_context*& innermost() noexcept {
        return thread_slot<fork_context, const fork_context*>();
    }

    const void* const value_;
    const fork_context* const outer_;
    const fork_slot* const first_;  // calls below this slot were pushed before
};

// Threads: push, pop, join, and functions that say so by the owner; the rest by any thread. Cost of
// push and pop: three loads, four stores, no fence, no exchange, no allocation.
class [[gnu::visibility("default")]] fork_deque : immovable {
public:
#if defined(COPPICE_MODEL)
    static constexpr std::uint32_t capacity = 3;
    static constexpr unsigned idle_rounds_max = 2;
    static constexpr unsigned spinning_rounds = 2;
#else
    static constexpr std::uint32_t capacity = 1024;
    // Of join(), before it sleeps: longer than a chunk of a loop, at whose end the loop answers.
    static constexpr unsigned idle_rounds_max = 128;
    static constexpr unsigned spinning_rounds = 64;  // the other rounds yield the processor
#endif

    fork_deque(fork_team& team, std::uint32_t worker) noexcept
        : head_(slots_),
          team_(team),
          worker_(worker),
          push_limit_(fast_ ? slots_ + capacity : slots_),
          pop_limit_(fast_ ? slots_ : slots_ + capacity) {}

    // The deque of the worker that this thread is, or nullptr.
    static fork_deque*& current() noexcept { return thread_slot<fork_deque, fork_deque*>(); }

    // Returns the slot of the next push.
    fork_slot* head() const noexcept { return head_.load(relaxed); }  // relaxed: its own word

    // Pushes a call. Returns the slot, by which the call is popped; or nullptr if the deque is
    // full, and then the caller runs the call.
    [[nodiscard]] fork_slot* push(forked_call call, void* frame) noexcept {
        fork_slot* const slot = head();
        slot->call_.write(call);
        slot->frame_.write(frame);
        // edge fork.grabbed (release): the slot is written
        head_.store(slot + 1, release);
        // edge fork.request (light): raises the head, then looks whether a thief asks
        light_fence(known_to_be_free());
        // Relaxed, here and in pop(): a hint from thieves, or the owner's own value.
        if (slot >= push_limit_.load(relaxed)) [[unlikely]]
            return push_slow(slot);
        if (slot == nullptr) __builtin_unreachable();  // callers handle what push_slow() returns
        return slot;
    }

    // Takes back the newest call, which was pushed at `slot`. Returns true if the caller must run
    // it. Returns false if a thief has it; the caller must then join(slot), or let_go(slot) if it
    // does not wait.
    [[nodiscard]] bool pop(fork_slot* slot) noexcept {
        head_.store(slot, relaxed);  // relaxed: settled by the fence
        // edge fork.grab (light): lowers the head, then looks
        light_fence(known_to_be_free());
        if (slot >= pop_limit_.load(relaxed)) [[likely]]
            return true;
        return reclaim(slot);
    }
    // Waits for a stolen call and helps meanwhile, then sleeps. Blocks: until the thief has
    // finished.
    [[gnu::noinline]] inline void join(fork_slot* slot) noexcept;
    // Gives up a stolen call that ends elsewhere. Blocks: until the thief has read it, some
    // instructions.
    [[gnu::noinline]] inline void let_go(fork_slot* slot) noexcept;

    // Steals a call. Called by another worker, which passes its number.
    [[nodiscard]] fork_steal steal(taken_call& out, std::uint32_t thief) noexcept {
        return take(public_.load(relaxed), out, thief);
    }
    // Steals for a worker that waits for `awaited`, which the owner runs. Takes only what was
    // forked below that call, never what the owner does afterwards.
    [[nodiscard]] inline fork_steal steal_below(const fork_slot& awaited, taken_call& out,
                                                std::uint32_t thief) noexcept;
    // Called by the owner: runs a call that it has taken from another worker.
    inline void run(const taken_call& taken) noexcept;
    // Asks the owner to publish calls. If the caller fences heavily afterwards, a push after that
    // fence answers, and looks_done() sees a push before it.
    void ask() noexcept {
        if (!asked()) raise_limits();
    }
    // Publishes in place of an owner that does not fork and so cannot answer. Cost: a heavy fence,
    // if there is anything to publish.
    inline void grab() noexcept;
    // Returns true if a thief has asked and nothing was pushed since.
    bool asked() const noexcept { return push_limit_.load(relaxed) == slots_; }
    // Returns true if nothing is public. May be stale; a thread that must not miss a call fences
    // first (pool/internal/parking.hpp).
    bool looks_empty() const noexcept {
        const std::uint64_t seen = public_.load(relaxed);
        return tail_of(seen) >= split_of(seen);
    }
    // Returns true if nothing is private either. May be stale as well.
    bool looks_done() const noexcept {
        return index_of(head_.load(relaxed)) <= split_of(public_.load(relaxed));
    }
    std::uint32_t worker() const noexcept { return worker_; }
    const fork_team& team() const noexcept { return team_; }
    fork_team& team() noexcept { return team_; }

private:
    // One stolen call that the owner has run, in public_.
    static constexpr std::uint64_t one_run = std::uint64_t{1} << 32;
    static_assert(capacity < 1u << 16);
    static std::uint32_t tail_of(std::uint64_t all) noexcept {
        return static_cast<std::uint16_t>(all);
    }
    static std::uint32_t split_of(std::uint64_t all) noexcept {
        return static_cast<std::uint16_t>(all >> 16);
    }
    // Returns `all` with another tail and split.
    static std::uint64_t with(std::uint64_t all, std::uint32_t tail, std::uint32_t split) noexcept {
        return (all & ~(one_run - 1)) | split << 16 | tail;
    }
    inline fork_steal take(std::uint64_t seen, taken_call& out, std::uint32_t thief) noexcept;
    // A pause for the model, in which another thread may take many steps.
    static void linger() noexcept {
#if defined(COPPICE_MODEL)
        for (unsigned i = rl::rand(2) * 40; i != 0; --i) spin_hint();
#endif
    }
    std::uint32_t index_of(const fork_slot* slot) const noexcept {
        return static_cast<std::uint32_t>(slot - slots_);
    }
    COPPICE_COLD_CALL inline fork_slot* push_slow(fork_slot* slot) noexcept;
    COPPICE_COLD_CALL inline bool reclaim(fork_slot* slot) noexcept;
    // Relaxed: hints without a fence; fork.publish brings what is published.
    void raise_limits() noexcept {
        push_limit_.store(slots_, relaxed);
        pop_limit_.store(slots_ + capacity, relaxed);
    }
    inline bool publish() noexcept;
    inline void answer() noexcept;
    inline void close(fork_slot* slot) noexcept;
    inline const void* context_of(const fork_slot* slot) const noexcept;
    static inline void sleep_on(const fork_slot& slot) noexcept;
    // Waits for something that takes another thread some instructions, unless it has lost its
    // processor.
    static void wait_a_little(unsigned tries) noexcept {
        if (tries % 32 != 0) {
            spin_hint();
        } else {
            thread_yield();
        }
    }
    inline void lock() noexcept;
    void unlock() noexcept {
        // edge fork.lock (release): what the holder did
        lock_.store(0, release);
    }
    inline void set_context(const fork_context* innermost) noexcept;
    friend class fork_context;

    // Written by the owner; read by thieves. The last slot is never published: a push there is
    // refused.
    alignas(64) fork_slot slots_[capacity + 1];
    alignas(64) atomic<fork_slot*> head_;  // written by the owner; slots below are in use
    fork_team& team_;
    const std::uint32_t worker_;
    const bool fast_ = light_fences_are_free();
    plain<const fork_context*> context_{
        nullptr};                      // the innermost; written by the owner, under lock_
    running_call* running_ = nullptr;  // the innermost; of the owner
    // Read often by the owner; written rarely, by the owner and by thieves.
    alignas(64) atomic<fork_slot*> push_limit_;
    atomic<fork_slot*> pop_limit_;
    alignas(64) atomic<std::uint64_t> public_{0};  // changed by the owner and by thieves
    atomic<std::uint32_t> lock_{0};
};

inline fork_context::fork_context(const void* value) noexcept
    : value_(value),
      outer_(innermost()),
      first_(fork_deque::current() == nullptr ? nullptr : fork_deque::current()->head()) {
    innermost() = this;
    if (first_ != nullptr) fork_deque::current()->set_context(this);
}
inline fork_context::~fork_context() {
    innermost() = outer_;
    if (first_ != nullptr) fork_deque::current()->set_context(outer_);
}

inline void taken_call::run() const noexcept {
    const fork_context inherited(context);
    call(frame, *slot);
}

inline void fork_deque::lock() noexcept {
    // edge fork.lock (acquire): what the last holder did
    for (unsigned tries = 1; lock_.exchange(1, acquire) != 0; ++tries) wait_a_little(tries);
}

inline void fork_deque::set_context(const fork_context* innermost) noexcept {
    lock();
    context_.write(innermost);
    unlock();
}

inline const void* fork_deque::context_of(const fork_slot* slot) const noexcept {
    const fork_context* scope = context_.read();
    while (scope != nullptr && scope->first_ > slot) scope = scope->outer_;
    return scope == nullptr ? nullptr : scope->value_;
}

fork_slot* fork_deque::push_slow(fork_slot* slot) noexcept {
    if (slot == slots_ + capacity) {
        head_.store(slot, relaxed);  // relaxed: a grabbing thief ignores this slot
        return nullptr;
    }
    lock();
    answer();
    return slot;
}

// Called by the owner with the lock, which it releases: publishes if a thief asks.
inline void fork_deque::answer() noexcept {
    const bool published = asked() && publish();
    // The private part starts here. After an answer, no thief is asking any longer.
    if (fast_) pop_limit_.store(slots_ + split_of(public_.load(relaxed)), relaxed);
    if (fast_ && published) push_limit_.store(slots_ + capacity, relaxed);
    unlock();
    if (!published) return;
    team_.published();
    if (running_ != nullptr) running_->wake_owners();
}

// Called with the lock: makes the older half of the private part public. Returns false if there is
// nothing.
inline bool fork_deque::publish() noexcept {
    std::uint64_t seen = public_.load(relaxed);
    const std::uint32_t begin = split_of(seen);
    // edge fork.grabbed (acquire): the slots below are written
    const std::uint32_t head = index_of(head_.load(acquire));
    const std::uint32_t end = head > capacity ? capacity : head;
    if (end <= begin) return false;
    const std::uint32_t split = begin + (end - begin + 1) / 2;
    for (std::uint32_t i = begin; i != split; ++i) {
        slots_[i].context_.write(context_of(&slots_[i]));
        slots_[i].state_.store(fork_slot::published, relaxed);  // relaxed: published below
    }
    std::uint64_t wider = 0;
    do {
        wider = with(seen, tail_of(seen), split);
        // edge fork.publish (release): the slots below the split are written
    } while (!public_.compare_exchange_weak(seen, wider, release, relaxed));
    return true;
}

inline void fork_deque::grab() noexcept {
    if (looks_done()) return;
    lock();
    raise_limits();  // even if a thief asks: the owner may have lowered one of them
    heavy_fence();   // edge fork.grab (heavy): raises the limits, then looks at the head
    publish();
    unlock();
}

// Takes back the newest call, at `slot`. Returns false if a thief took it; the slot is then still
// in use.
bool fork_deque::reclaim(fork_slot* slot) noexcept {
    const std::uint32_t index = index_of(slot);
    lock();
    head_.store(slot, relaxed);  // relaxed: under the lock
    std::uint64_t seen = public_.load(relaxed);
    if (index >= split_of(seen)) {
        answer();  // unlocks
        return true;
    }
    std::uint64_t less = 0;
    std::uint32_t kept = 0;
    do {
        const std::uint32_t tail = tail_of(seen);
        if (tail > index && !planted("fork.ignore_theft")) {
            head_.store(slot + 1, relaxed);
            unlock();
            return false;
        }
        kept = tail + (index - tail) / 2;  // the older half stays public
        less = with(seen, tail, kept);
        // Relaxed: takes back what the owner wrote, and continues fork.publish for what stays.
    } while (!public_.compare_exchange_weak(seen, less, relaxed, relaxed));
    if (fast_) pop_limit_.store(slots_ + kept, relaxed);
    unlock();
    return true;
}

void fork_deque::let_go(fork_slot* slot) noexcept {
    if (!planted("fork.skip_reader")) {
        // edge fork.read (acquire): the thief has read the slot
        for (unsigned tries = 1; slot->state_.load(acquire) == fork_slot::published; ++tries) {
            wait_a_little(tries);
        }
    }
    close(slot);
}

// Frees the slot of the newest call, which was stolen, and with it all older ones.
inline void fork_deque::close(fork_slot* slot) noexcept {
    const std::uint32_t index = index_of(slot);
    lock();
    // Relaxed, and a store: nothing is public, so no thief's exchange can succeed.
    public_.store(with(public_.load(relaxed), index, index), relaxed);
    head_.store(slot, relaxed);
    if (fast_) pop_limit_.store(slot, relaxed);
    unlock();
}

void fork_deque::join(fork_slot* slot) noexcept {
    unsigned idle_rounds = 0;
    for (;;) {
        // edge fork.done (acquire): what the call did
        std::uint32_t state = slot->state_.load(acquire);
        if (state == fork_slot::done) break;
        const bool urgent = idle_rounds + 1 == idle_rounds_max || state == fork_slot::asleep;
        // Relaxed: written before the state says that it is.
        const std::uint32_t thief = slot->thief_.load(relaxed);
        if (state != fork_slot::published && team_.help(*this, *slot, thief, urgent)) {
            idle_rounds = 0;
        } else if (++idle_rounds < spinning_rounds) {
            spin_hint();
        } else if (idle_rounds < idle_rounds_max) {
            thread_yield();
        } else if (state == fork_slot::taken) {
            // relaxed: only says that a wake is wanted
            slot->state_.compare_exchange_strong(state, fork_slot::asleep, relaxed, relaxed);
        } else if (state == fork_slot::asleep) {
            sleep_on(*slot);
        }
    }
    close(slot);
}

// Sleeps until the call has ended, or until its thief has published something (answer()). If that
// wake-up was missed, the owner looks again after a millisecond.
inline void fork_deque::sleep_on(const fork_slot& slot) noexcept {
    constexpr std::uint32_t asleep = fork_slot::asleep;
#if defined(COPPICE_MODEL)
    futex_wait(slot.state_, asleep);
#else
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    constexpr std::int64_t look_again_ns = 1'000'000;
    futex_wait_until(slot.state_, asleep,
                     now.tv_sec * 1'000'000'000LL + now.tv_nsec + look_again_ns);
#endif
}

inline fork_steal fork_deque::take(std::uint64_t seen, taken_call& out,
                                   std::uint32_t thief) noexcept {
    const std::uint32_t index = tail_of(seen);
    if (index >= split_of(seen)) return fork_steal::empty;
    // edge fork.publish (acquire): the slot is written
    if (!public_.compare_exchange_strong(seen, seen + 1, acquire, relaxed)) return fork_steal::lost;
    // Read the slot only now: the word may have its old value again, and the slot another call.
    fork_slot& slot = slots_[index];
    out.call = slot.call_.read();
    out.frame = slot.frame_.read();
    out.context = slot.context_.read();
    out.slot = &slot;
    slot.thief_.store(thief, relaxed);  // relaxed: released below
    // edge fork.read (release): the slot has been read, and thief_ says which worker took it
    slot.state_.store(fork_slot::taken, release);
    return fork_steal::taken;
}

// While the owner runs `awaited`, everything that it publishes was forked below that call: what
// lies deeper in its deque was stolen before it could take the call. Either the word below was read
// while the owner ran the call; then an exchange that finds the same word finds the same number of
// runs, so the owner still runs it. Or the word shows what the owner has published since; then the
// state shows that the call is done.
inline fork_steal fork_deque::steal_below(const fork_slot& awaited, taken_call& out,
                                          std::uint32_t thief) noexcept {
    linger();
    // edge fork.publish (acquire): the owner's calls that had ended when it published these
    const std::uint64_t seen = public_.load(acquire);
    // edge fork.done (acquire): what the call did, if it has ended
    if (awaited.state_.load(acquire) == fork_slot::done && !planted("fork.help_late")) {
        return fork_steal::empty;
    }
    linger();
    return take(seen, out, thief);
}

inline void fork_deque::run(const taken_call& taken) noexcept {
    {
        const running_call call(*taken.slot, running_);
        taken.run();
    }
    // Relaxed: what the owner publishes next comes after this in the word's order.
    if (!planted("fork.run_uncounted")) public_.fetch_add(one_run, relaxed);
}

}  // namespace coppice::internal
