// contract_core: what a group and its handles share; lives until the last of them is gone.
#pragma once
// The board says which contracts are ready and claimed; the core runs them. A handle may outlive
// its group, and another thread may use it while the group is being destroyed. The group therefore
// ends every contract, so that handles find it dead, and the memory of the core stays until the
// last handle is gone.
//
// The mode says what may still happen, and never goes back (group_mode.hpp). The items of a
// scheduler pass a gate, which closes when the group is no longer open. Threads that execute the
// group run the items that the gate admitted. The submitter runs an item that the gate rejected.
//
// Contracts run on behalf of the group, so they do not inherit the token of a fork_join around the
// caller.
//
// Threads: all functions from any thread, except close().

#include <coppice/base/internal/gate.hpp>
#include <coppice/base/internal/no_fork_context.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/contract/internal/board.hpp>
#include <coppice/contract/internal/group_mode.hpp>
#include <coppice/contract/internal/slot.hpp>

#include <memory>
#include <mutex>

namespace coppice {

class contract_batch;

}  // namespace coppice

namespace coppice::internal {

// What a group's scheduler enqueues. `run` is called once, by a thread that executes the group.
struct contract_item : immovable {
    explicit contract_item(void (*function)(contract_item*) noexcept) noexcept : run(function) {}
    void (*run)(contract_item*) noexcept;
    contract_item* next = nullptr;  // used by the queue
};

// A waiter for the end of a contract. Told once, by the thread that ran the contract's release.
class contract_watcher : immovable {
public:
    explicit contract_watcher(void (*function)(contract_watcher*) noexcept) noexcept
        : gone_(function) {}

private:
    friend class contract_core;
    void (*gone_)(contract_watcher*) noexcept;
    contract_watcher* next_ = nullptr;   // guarded by watchers_mutex_, as is link_
    contract_watcher** link_ = nullptr;  // the pointer that points to this; nullptr if not linked
};

class contract_core : immovable {
public:
    // `seats` is how many workers can sleep; 0 if none ever does. Errors: std::invalid_argument for
    // a capacity of 0 or above 2^32 - 1; what allocation throws.
    contract_core(std::size_t capacity, std::size_t capacity_max, std::size_t seats);

    // Relaxed, both: the counts are for information.
    std::size_t capacity() const noexcept { return capacity_.load(relaxed); }
    std::size_t size() const noexcept { return population_.load(relaxed) % one_owner; }
    std::size_t capacity_max() const noexcept { return board_.capacity_max(); }
    // A number that almost certainly differs between groups: the key of a thread's round
    // (thread_rounds.hpp). Two groups with the same number would share that round, which is
    // harmless.
    std::uint64_t number() const noexcept { return number_; }
    bool is_open() const noexcept {
        // Relaxed: what follows is ordered by itself. A thread that sees the end schedules nothing.
        return mode_.is_open();
    }

    // Raises the capacity to `capacity`, or to capacity_max if that is less. Returns false if it
    // was at least that already. Errors: what allocation throws.
    bool grow(std::size_t capacity);

    // Makes a contract, and an owner's share in the core for its handle. The index is no_signal if
    // the group is full or not open. Errors: what constructing the body throws.
    struct created {
        std::size_t index;
        std::uint64_t generation;
    };
    template <class Body, class... Args>
    created create(selection_bias* near, bool scheduled, Args&&... args) {
        const std::size_t index = is_open() ? take_vacant(near) : no_signal;
        if (index == no_signal) return {no_signal, 0};
        // Relaxed, here and below: the caller is an owner. Counts the contract before running user
        // code, because take_vacant() waits for slots that are taken but not yet counted.
        population_.fetch_add(one_owner + 1, relaxed);
        scope_exit give_back([this, index]() noexcept {
            population_.fetch_sub(one_owner + 1, relaxed);
            board_.give_back(index);
        });
        board_[index].construct<Body>(std::forward<Args>(args)...);
        give_back.dismiss();
        const std::uint64_t generation = board_[index].life.open();
        if (scheduled) board_.set_ready(index);
        return {index, generation};
    }

    // Called by handles.
    void schedule(std::size_t index, std::uint64_t generation) noexcept {
        if (is_open()) board_.schedule(index, generation);
    }
    void begin_release(std::size_t index, std::uint64_t generation) noexcept {
        board_.begin_release(index, generation);
    }
    bool unschedule(std::size_t index, std::uint64_t generation) noexcept {
        return board_.unschedule(index, generation);
    }
    bool valid(std::size_t index, std::uint64_t generation) noexcept {
        return board_[index].life.valid(generation);
    }
    void drop_owner() noexcept {
        // edge contract.owner (acq_rel): all owners are done before the core is destroyed
        if (population_.fetch_sub(one_owner, acq_rel) / one_owner == 1) delete this;
    }
    // Registers a watcher, to be told when the contract is gone. Returns false if it is gone
    // already; the watcher is then never told.
    [[nodiscard]] bool watch(std::size_t index, std::uint64_t generation,
                             contract_watcher& watcher) noexcept;
    // Deregisters a watcher. Returns true if it will not be told, false if it was or is about to
    // be.
    [[nodiscard]] bool unwatch(contract_watcher& watcher) noexcept;

    // Enqueues an item. A thread that executes the group calls its function, or else the thread
    // that destroys the group. That may happen before this call has returned; close() waits until
    // it has. Returns false, and does nothing, if the group was drained or stopped. Cost: no
    // allocation; a lock only while more items wait than the board has extra contracts.
    [[nodiscard]] bool try_enqueue(contract_item& item) noexcept {
        return enqueue_if_open(item, locking::waits);
    }
    // Does the same, but returns false, and does nothing, if another thread holds that lock.
    [[nodiscard]] bool enqueue_without_blocking(contract_item& item) noexcept {
        return enqueue_if_open(item, locking::tries);
    }
    // Enqueues an item, or runs it here if the group was drained or stopped.
    void enqueue(contract_item& item) noexcept;

    // Runs one contract. Returns false if none was available.
    template <class Bias>
    bool execute_one(Bias& bias) {
        for (;;) {
            const std::size_t index = board_.claim(bias);
            if (index == no_signal) return false;
            if (run_claimed(index)) return true;
        }
    }
    // Runs up to `most` contracts, claimed one at a time. Returns how many ran.
    std::size_t execute_some(signal_round& round, std::size_t most) {
        const no_fork_context none;
        std::size_t ran = 0;
        while (ran != most) {
            const std::size_t index = board_.claim(round);
            if (index == no_signal) break;
            if (stopped()) [[unlikely]] {
                ran += run_claimed(index) ? 1 : 0;
            } else {
                ran += run_leaf(index, most - ran, round);
            }
        }
        return ran;
    }
    // Claims as many contracts of a leaf at once as the batch allows, at most `most`, and runs
    // them.
    std::size_t execute_batch(contract_batch& batch, std::size_t most);

    // Claims a contract without running it. The caller must pass it to run_claimed().
    template <class Bias>
    std::size_t claim(Bias& bias) noexcept {
        return board_.claim(bias);
    }
    // Runs a claimed contract. Returns false if the group is stopped and the run was dropped.
    bool run_claimed(std::size_t index);

    // The last search of a thread that leaves because the group has ended. Finds every item that
    // was enqueued by then. Blocks: until calls that are enqueueing have done so.
    template <class Bias>
    std::size_t claim_at_end(Bias& bias) noexcept {
        entry_.wait();
        return board_.claim(bias);
    }

    // Ends scheduling and creating; pending contracts still run. Does not reopen a stopped group.
    void begin_drain() noexcept;
    // Begins to drain, runs pending contracts here while other threads may execute too, and returns
    // when nothing is pending or running. Returns how many ran here.
    std::size_t drain();
    // Ends scheduling, creating, and pending runs; releases still run.
    void stop() noexcept;
    // The last call of the group: runs all releases, and all items, that have not run.
    void close() noexcept;
    sleeping_workers* sleepers() noexcept { return sleepers_.get(); }

private:
    static constexpr std::uint64_t one_owner = std::uint64_t{1} << 32;

    std::size_t take_vacant(selection_bias* near);
    std::size_t run_leaf(std::size_t index, std::size_t most, signal_round& round);
    std::size_t run_batch(signal_round& round, std::size_t most);
    // Applies what the run asked of its token. Returns true if the contract is ready again, perhaps
    // for its release.
    bool end_run(contract_slot& slot, const work_contract_token& token) noexcept {
        if (token.released_) [[unlikely]] {
            slot.life.release_running();
            return true;
        }
        return token.again_ && is_open();
    }
    void retire(std::size_t index);
    void bury(std::size_t index) noexcept;
    void end() noexcept;
    void take_watchers(contract_slot& slot, contract_watcher*& list) noexcept;
    void tell_watchers(contract_watcher*& list) noexcept;  // `list` is guarded by watchers_mutex_
    static bool unlink(contract_watcher& watcher) noexcept;
    bool run_items() noexcept;
    enum class locking : bool { tries, waits };
    [[nodiscard]] bool enqueue_if_open(contract_item& item, locking how) noexcept;
    [[nodiscard]] bool place_or_wait(contract_item& item, locking how) noexcept;
    void place_waiting() noexcept;  // with waiting_mutex_
    void place(std::size_t extra, contract_item& item) noexcept;
    bool stopped() const noexcept { return mode_.is_stopped(); }

    // nullptr if workers of this group never sleep.
    const std::unique_ptr<sleeping_workers> sleepers_;
    const std::uint64_t number_;
    group_mode mode_;
    contract_board<contract_slot> board_;
    atomic<std::size_t> capacity_{0};  // written under growth_mutex_

    // Live contracts in the low half; owners (the group and each handle) in the high half.
    alignas(line_size) atomic<std::uint64_t> population_{one_owner};

    gate entry_;  // for items; closed when the group is no longer open

    std::mutex growth_mutex_;
    std::mutex watchers_mutex_;
    std::mutex waiting_mutex_;
    intrusive_queue<contract_item, &contract_item::next> waiting_;  // guarded by waiting_mutex_
};

inline bool contract_core::run_claimed(std::size_t index) {
    const no_fork_context none;
    contract_slot& slot = board_[index];
    if (slot.life.is_released()) [[unlikely]] {
        retire(index);
        return true;
    }
    if (stopped()) [[unlikely]] {
        board_.finish(index, false);
        return false;
    }
    work_contract_token token;
    const scope_exit finish(
        [this, index, &slot, &token]() noexcept { board_.finish(index, end_run(slot, token)); });
    slot.run(token);
    return true;
}

// Runs a claimed contract and the available ones behind it in its leaf. Each exchange finishes one
// contract and claims the next.
inline std::size_t contract_core::run_leaf(std::size_t index, std::size_t most,
                                           signal_round& round) {
    std::uint64_t seen = board_.look(index);
    for (std::size_t ran = 0;;) {
        contract_slot& slot = board_[index];
        if (slot.life.is_released()) [[unlikely]] {
            round.advance(index);
            retire(index);
            return ran + 1;
        }
        work_contract_token token;
        try {
            slot.run(token);
        } catch (...) {
            round.advance(index);
            board_.finish(index, end_run(slot, token));
            throw;
        }
        const bool again = end_run(slot, token);
        if (++ran == most || stopped()) {
            round.advance(index);
            board_.finish(index, again);
            return ran;
        }
        const std::size_t next = board_.finish_and_claim(index, again, seen, round);
        if (next == no_signal) {
            round.advance(index);
            return ran;
        }
        index = next;
    }
}

}  // namespace coppice::internal
