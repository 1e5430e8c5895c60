// contract_board: which contracts are ready and which are running; the lock-free half of a group.
#pragma once
// Contracts stand in leaves of Width, and each leaf is one word on its own cache line:
//
//   ready running
//     0      0     idle
//     1      0     available    a search may claim it
//     0      1     running      one thread has claimed it
//     1      1     once more    running, and available again as soon as the run finishes
//
//   set_ready          idle -> available, running -> once more        schedule, release
//   take               available -> running                           a thread that executes
//   finish             running -> idle or available, once more -> available
//   finish_and_claim   as finish, and available -> running for the next contract of the leaf,
//                      in the same exchange: the usual step of a busy thread
//   withdraw           available -> idle, once more -> running        unschedule
//
// The ready bit says that a contract is to run, the running bit that one thread has exclusive use
// of it, and the life_word of its slot (life.hpp) whether it exists. PROTOCOL.md, beside this file,
// shows how the three work together and why nothing is lost; tests/model/contract_model.cpp is the
// model.
//
// Above the leaves stands a directory. A leaf counts as filled while its word is not 0, so
// contracts that run and come back leave its marks alone.
//
// Slot is the type of a contract's slot. It must have a member `life`, a life_word. Slots are
// constructed when the board grows, and never move.
//
// Threads: all functions from any thread, except grow() and the destructor.

#include <coppice/contract/internal/life.hpp>
#include <coppice/contract/internal/sleeping_workers.hpp>
#include <coppice/signal/signal_tree.hpp>

#include <sys/mman.h>
#include <new>

namespace coppice::internal {

// The slots of a group and the words that say which are ready and running. Width: slots per word.
template <class Slot, unsigned Width = 32>
class contract_board : immovable {
    static_assert(Width >= 2 && Width <= 32 && std::has_single_bit(Width));

public:
    static constexpr std::size_t extra = Width;  // contracts beyond those that grow() counts

    // Makes room for capacity_max contracts, none of which exists yet, and for some extra ones,
    // which exist at once. schedule() wakes one of `sleepers`, unless that is null. Errors:
    // std::invalid_argument for 0; what allocation throws. Cost: 3 bytes per contract of
    // capacity_max; a Slot for each contract that exists.
    contract_board(std::size_t capacity_max, sleeping_workers* sleepers)
        : vacant_(capacity_max),
          capacity_max_(capacity_max),
          leaves_((capacity_max + Width - 1) / Width + 1),
          end_(leaves_ * Width),
          nodes_(leaves_),
          words_(std::make_unique<word[]>(leaves_)),
          slots_(allocate(end_)),
          sleepers_(sleepers) {
        std::uninitialized_default_construct_n(slots_ + first_extra(), extra);
    }
    ~contract_board() {
        std::destroy_n(slots_, existing_);
        std::destroy_n(slots_ + first_extra(), extra);
        ::operator delete(slots_, alignment(end_));
    }

    // Makes the contracts below `capacity` exist. Threads: one at a time, concurrently with all
    // others.
    void grow(std::size_t capacity) noexcept {
        if (capacity <= existing_) return;
        std::uninitialized_default_construct(slots_ + existing_, slots_ + capacity);
        vacant_.set_range(existing_, capacity);
        existing_ = capacity;
    }

    Slot& operator[](std::size_t index) noexcept { return slots_[index]; }
    std::size_t capacity_max() const noexcept { return capacity_max_; }
    std::size_t first_extra() const noexcept { return (leaves_ - 1) * Width; }
    // Returns true if no contract is known to be ready or running.
    bool idle() const noexcept { return nodes_.empty(); }

    // Takes a vacant slot for a new contract and returns its index: the lowest, or the bias's
    // choice.
    std::optional<std::size_t> take_vacant() noexcept { return vacant_.select_first(); }
    std::optional<std::size_t> take_vacant(selection_bias& bias) noexcept {
        return vacant_.select(bias);
    }
    std::optional<std::size_t> take_vacant_extra() noexcept {
        std::uint64_t taken = extras_.load(relaxed);  // relaxed: the exchange decides
        for (;;) {
            const auto bit = static_cast<unsigned>(std::countr_one(taken));
            if (bit >= Width) return std::nullopt;
            const std::uint64_t next = taken | std::uint64_t{1} << bit;
            // edge contract.extra (acquire): the slot's last contract is gone
            if (extras_.compare_exchange_weak(taken, next, acquire, relaxed))
                return first_extra() + bit;
        }
    }
    // A thread that finds no vacant extra slot may wait for one. wait_for_extra() announces the
    // waiter. It returns true if a slot is vacant by now; the caller must then take it. Otherwise
    // the next thread that frees an extra slot learns of the waiter from extra_is_awaited().
    // Waiters hold a lock of their own around both.
    [[nodiscard]] bool wait_for_extra() noexcept {
        // edge contract.extra (release): the waiter is known; pairs with extra_is_awaited()
        return (~extras_.fetch_or(awaited, acq_rel) & all_extras) != 0;
    }
    void nobody_waits_for_extra() noexcept {
        extras_.fetch_and(~awaited, relaxed);  // relaxed: under the waiters' lock
    }
    // Returns true if the slot was an extra one and a thread waits for one. The caller must then
    // give the slot to a waiter.
    [[nodiscard]] bool extra_is_awaited(std::size_t index) const noexcept {
        // edge contract.extra (acquire): the waiter
        return index >= first_extra() && (extras_.load(acquire) & awaited) != 0;
    }
    // Makes a slot vacant that was taken.
    void give_back(std::size_t index) noexcept {
        if (index < first_extra()) {
            vacant_.set(index);
        } else {
            // edge contract.extra (release): the slot's contract is gone
            extras_.fetch_and(~ready(index), acq_rel);
        }
    }

    // Called by handles. Each does nothing if the slot has another generation, or if it was
    // released.
    void schedule(std::size_t index, std::uint64_t generation) noexcept {
        __builtin_prefetch(&words_[index / Width], 1);  // so that both lines load at the same time
        if (slots_[index].life.enter(generation) != life_word::entered::yes) return;
        if (planted("contract.schedule_outside")) leave(index);
        set_ready(index);
        if (!planted("contract.schedule_outside")) leave(index);
    }
    void begin_release(std::size_t index, std::uint64_t generation) noexcept {
        if (slots_[index].life.begin_release(generation) != life_word::entered::yes) return;
        set_ready(index);
        leave(index);
    }
    // Returns true if a run was pending and will not happen.
    bool unschedule(std::size_t index, std::uint64_t generation) noexcept {
        if (slots_[index].life.enter(generation) != life_word::entered::yes) return false;
        // edge contract.run (acquire): if the ready bit came from a release, is_released() is true
        const std::uint64_t before = claims(index).fetch_and(~ready(index), seq_cst);
        bool withdrawn = (before & ready(index)) != 0;
        if (withdrawn && slots_[index].life.is_released() && !planted("contract.take_release")) {
            set_ready(index);
            withdrawn = false;
        }
        leave(index);
        return withdrawn;
    }

    // Makes the contract ready. The caller must hold its slot: as its creator, or as a visitor.
    void set_ready(std::size_t index) noexcept {
        // edge contract.run (release): what came before schedule(); pairs with take()
        const std::uint64_t before = claims(index).fetch_or(ready(index), seq_cst);
        if ((before & running(index)) == 0) make_known(index);  // else finish() does
    }
    // Ends a visit. The last visitor to leave a dead slot frees it.
    void leave(std::size_t index) noexcept {
        if (slots_[index].life.leave() != life_word::left::last_of_dead) return;
        // A visitor may have set the ready bit. No thread can have claimed the contract: its
        // running bit has been set since its release ran.
        // edge contract.run (release): the slot is at rest; pairs with the next contract's take()
        claims(index).fetch_and(~(ready(index) | running(index)), seq_cst);
        slots_[index].life.vacate();
        give_back(index);
    }

    // Claims a contract chosen by a selection_bias or a signal_round. Returns no_signal if none was
    // available. Otherwise the caller runs the contract and calls finish(), or buries it and calls
    // leave().
    template <class Bias>
    std::size_t claim(Bias& bias) noexcept {
        return bias.take(*this);
    }
    // Makes the contract idle again; or available, if it was made ready during the run or if
    // `again`.
    [[gnu::always_inline]] void finish(std::size_t index, bool again) noexcept {
        atomic<std::uint64_t>& shared = claims(index);
        std::uint64_t seen = shared.load(relaxed);  // relaxed: the exchange decides
        std::uint64_t next;
        do {
            next = finished(seen, index, again);
            // edge contract.run (release): what the run did; pairs with take()
        } while (!shared.compare_exchange_weak(seen, next, seq_cst, relaxed));
        if ((next & ready(index)) != 0 && !planted("contract.finish_quietly")) make_known(index);
    }
    // Finishes a contract like finish(), and claims the next available one behind it in its leaf.
    // Returns no_signal if there is none. `seen` is a guess at the leaf's word, from look() or from
    // the previous call; afterwards it is the word. The guess saves a load of what was just
    // exchanged, which would take as long as the exchange.
    [[gnu::always_inline]] std::size_t finish_and_claim(std::size_t index, bool again,
                                                        std::uint64_t& seen,
                                                        signal_round& round) noexcept {
        for (bool fresh = false;; fresh = true) {
            const std::uint64_t done = finished(seen, index, again);
            const std::uint64_t behind = available_in(done) & ~(2 * ready(index) - 1);
            const std::uint64_t claimed = behind & (~behind + 1);
            const std::uint64_t next = (done & ~claimed) | claimed << Width;
            const std::uint64_t guess = seen;
            // edge contract.run (acq_rel): what the run did; what came before the next one's
            if (claims(index).compare_exchange_weak(seen, next, seq_cst, relaxed)) {
                seen = next;
                if ((next & ready(index)) != 0) make_known(index);
                if (claimed == 0) return no_signal;
                return index / Width * Width + static_cast<unsigned>(std::countr_zero(claimed));
            }
            // Lets the round step aside only for a runner that changed the word during this
            // exchange: not for a change during a long run, nor for a thread that only scheduled.
            if (fresh && ((guess ^ seen) >> Width) != 0) round.lost_exchange();
        }
    }
    std::uint64_t look(std::size_t index) noexcept {
        return claims(index).load(relaxed);  // relaxed: an exchange decides
    }
    // Claims up to `most` available contracts behind a claimed one in its leaf. Returns their bits.
    std::uint64_t claim_behind(std::size_t index, unsigned most) noexcept {
        std::uint64_t seen = claims(index).load(relaxed);  // relaxed: the exchange decides
        for (;;) {
            std::uint64_t rest = available_in(seen) & ~(2 * ready(index) - 1);
            std::uint64_t claimed = 0;
            for (unsigned n = 0; n != most && rest != 0; ++n, rest &= rest - 1)
                claimed |= rest & (~rest + 1);
            if (claimed == 0) return 0;
            const std::uint64_t next = (seen & ~claimed) | claimed << Width;
            // edge contract.run (acquire): what came before they were made ready
            if (claims(index).compare_exchange_weak(seen, next, seq_cst, relaxed)) return claimed;
        }
    }
    // Finishes several contracts in the leaf of `index`. Those in `again` become ready again.
    void finish_all(std::size_t index, std::uint64_t bits, std::uint64_t again) noexcept {
        std::uint64_t seen = claims(index).load(relaxed);  // relaxed: the exchange decides
        std::uint64_t next;
        do {
            next = (seen & ~(bits << Width)) | again;
            // edge contract.run (release): what the runs did; pairs with take()
        } while (!claims(index).compare_exchange_weak(seen, next, seq_cst, relaxed));
        if ((next & bits) != 0) make_known(index);
    }
    static constexpr std::uint64_t ready(std::size_t index) noexcept {
        return std::uint64_t{1} << index % Width;
    }

    // Used by the searches of selection_bias.
    static constexpr unsigned width = Width;
    static constexpr unsigned nodes_width = Width;
    std::size_t end() const noexcept { return end_; }
    const directory<Width>& nodes() const noexcept { return nodes_; }
    std::uint64_t available(std::size_t leaf) const noexcept {
        // Relaxed: take() decides.
        return leaf < leaves_ ? available_in(words_[leaf].claims.load(relaxed)) : 0;
    }
    int take(std::size_t leaf, std::uint64_t mask, bool& contended) noexcept {
        atomic<std::uint64_t>& shared = words_[leaf].claims;
        // edge contract.look (seq_cst): what set_ready() has set is seen
        std::uint64_t seen = shared.load(seq_cst);
        while (const std::uint64_t due = available_in(seen) & mask) {
            const std::uint64_t taken = due & (~due + 1);
            // edge contract.run (acquire): what came before schedule(), and the last run
            if (shared.compare_exchange_weak(seen, (seen ^ taken) | taken << Width, seq_cst,
                                             relaxed))
                return std::countr_zero(taken);
            contended = true;
        }
        if (seen == 0)
            nodes_.lower(leaf, words_[leaf].note, [this, leaf] { return leaf_empty(leaf); });
        return -1;
    }

private:
    static constexpr std::uint64_t all_extras = (std::uint64_t{1} << Width) - 1;
    static constexpr std::uint64_t awaited = std::uint64_t{1} << Width;

    struct alignas(line_size) word {
        // Ready bits in the low Width bits, running bits in the high Width bits: see above. Written
        // by schedulers and runners; read by searches.
        atomic<std::uint64_t> claims{0};
        marks_note note;
    };

    // Put slots that fill many pages on huge pages, if the system provides them. Otherwise a thread
    // that runs one contract of a million waits for the page tables as long as for the contract.
    static constexpr std::size_t huge_page = std::size_t{1} << 21;
    static std::align_val_t alignment(std::size_t slots) noexcept {
        return std::align_val_t(slots * sizeof(Slot) < 2 * huge_page ? alignof(Slot) : huge_page);
    }
    static Slot* allocate(std::size_t slots) {
        const std::size_t size = slots * sizeof(Slot);
        void* const memory = ::operator new(size, alignment(slots));
#if !defined(COPPICE_MODEL)
        if (size >= 2 * huge_page)
            ::madvise(memory, size, MADV_HUGEPAGE);  // advice only: the kernel may ignore it
#endif
        return static_cast<Slot*>(memory);
    }

    static constexpr std::uint64_t running(std::size_t index) noexcept {
        return ready(index) << Width;
    }
    static constexpr std::uint64_t available_in(std::uint64_t seen) noexcept {
        return seen & ~(seen >> Width) & ((std::uint64_t{1} << Width) - 1);
    }
    static constexpr std::uint64_t finished(std::uint64_t seen, std::size_t index,
                                            bool again) noexcept {
        return (seen & ~running(index)) | (again ? ready(index) : 0);
    }

    atomic<std::uint64_t>& claims(std::size_t index) noexcept {
        return words_[index / Width].claims;
    }
    bool leaf_empty(std::size_t leaf) const noexcept {
        // edge contract.look (seq_cst): what set_ready() set before the caller's last step is seen
        return words_[leaf].claims.load(seq_cst) == 0;
    }
    // Lets searches find a contract that became available, and wakes a sleeper for it.
    [[gnu::always_inline]] void make_known(std::size_t index) noexcept {
        const std::size_t leaf = index / Width;
        nodes_.raise(leaf, words_[leaf].note, [this, leaf] { return leaf_empty(leaf); });
        if (sleepers_ != nullptr) sleepers_->wake_one();
    }

    signal_tree vacant_;  // slots without a contract, except the extra ones
    const std::size_t capacity_max_;
    const std::size_t leaves_;
    const std::size_t end_;
    directory<Width> nodes_;
    const std::unique_ptr<word[]> words_;
    Slot* const slots_;
    sleeping_workers* const sleepers_;
    std::size_t existing_ = 0;  // constructed slots; written by grow()
    // One bit for each extra slot that is taken, and `awaited` while a thread waits for one.
    atomic<std::uint64_t> extras_{0};
};

}  // namespace coppice::internal
