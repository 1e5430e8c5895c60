// work_contract_group: contracts, and the threads' way to run those that are scheduled.
#pragma once
// A contract is a callable that is made once and run many times. Scheduling it sets a bit; threads
// that execute the group find set bits, each by its own bias, and run each contract by one thread
// at a time. Data and logic are apart: what a contract works on, an SPSC queue perhaps, is its own.
//
// What happens to what is pending:
//   begin_drain(), drain()
//              it runs; nothing more is scheduled
//   stop()     it does not run; nothing more is scheduled; releases run as ever
//   ~group     it does not run; release callables that have not run, run there and then
//
// An exception of a contract goes to its OnException, or leaves the execute function that ran it;
// the contract is then as after any other run. One that leaves a release callable in the group's
// destructor ends the program.
//
// What a call costs, beside the callable: PROTOCOL.md has the table.
//
// Source: the talk's work contracts; PROTOCOL.md says what is ours.

#include <coppice/contract/batch.hpp>
#include <coppice/contract/scheduler.hpp>
#include <coppice/contract/thread_rounds.hpp>
#include <coppice/contract/work_contract.hpp>

namespace coppice {

// Whether a new contract is to run at once, or when it is scheduled.
enum class initial_state { unscheduled, scheduled };

namespace internal {

template <class F>
concept contract_work = std::invocable<F&> || std::invocable<F&, work_contract_token&>;
template <class F>
concept contract_release = std::invocable<F&>;
template <class F>
concept contract_handler = std::invocable<F&, std::exception_ptr>;

}  // namespace internal

// Threads: all functions from any, but the destructor, during which no thread may execute the
// group; handles may be used even then. Misuse: drain() and the destructor inside of a contract
// hang.
class work_contract_group : immovable {
public:
    // For `capacity` contracts; when they are all there, it grows up to capacity_max, twofold each
    // time. Errors: std::invalid_argument for 0; what allocation throws.
    // Cost: 67 bytes per contract, and 3 for each that it may grow by; 2.5 KB beside.
    explicit work_contract_group(std::size_t capacity, std::size_t capacity_max = 0)
        : work_contract_group(capacity, capacity_max, 0) {}
    ~work_contract_group() {
        core_->close();
        core_->drop_owner();
    }

    // Makes a contract; an invalid one if the group is full, was drained or stopped. The callables
    // lie in the contract's slot if they take 40 bytes together, empty ones none; else in one
    // allocation. Errors: what copying or moving them, and allocation, throw. Blocks: in a full
    // group, while the place of a contract that is gone is being given back.
    template <class Work>
        requires internal::contract_work<std::decay_t<Work>>
    work_contract create_contract(Work&& work, initial_state initial = initial_state::unscheduled) {
        return create(nullptr, initial, std::forward<Work>(work), internal::no_release(),
                      internal::no_handler());
    }
    template <class Work, class Release>
        requires internal::contract_work<std::decay_t<Work>> &&
                 internal::contract_release<std::decay_t<Release>>
    work_contract create_contract(Work&& work, Release&& on_release,
                                  initial_state initial = initial_state::unscheduled) {
        return create(nullptr, initial, std::forward<Work>(work), std::forward<Release>(on_release),
                      internal::no_handler());
    }
    template <class Work, class Release, class OnException>
        requires internal::contract_work<std::decay_t<Work>> &&
                 internal::contract_release<std::decay_t<Release>> &&
                 internal::contract_handler<std::decay_t<OnException>>
    work_contract create_contract(Work&& work, Release&& on_release, OnException&& on_exception,
                                  initial_state initial = initial_state::unscheduled) {
        return create(nullptr, initial, std::forward<Work>(work), std::forward<Release>(on_release),
                      std::forward<OnException>(on_exception));
    }
    // The same, at the vacant index that shares the most top levels with `index`: for contracts
    // that selection_bias::prefer(index) shall find first.
    template <class Work, class Release = internal::no_release>
        requires internal::contract_work<std::decay_t<Work>> &&
                 internal::contract_release<std::decay_t<Release>>
    work_contract create_contract_near(std::size_t index, Work&& work, Release&& on_release = {},
                                       initial_state initial = initial_state::unscheduled) {
        selection_bias near = selection_bias::prefer(index);
        return create(&near, initial, std::forward<Work>(work), std::forward<Release>(on_release),
                      internal::no_handler());
    }

    // Runs one contract, by this thread's own fair bias. False: none was available.
    bool execute_next_contract() { return core_->execute_one(this_threads_round()); }
    bool execute_next_contract(selection_bias& bias) { return core_->execute_one(bias); }

    // Runs up to `most` contracts by this thread's fair bias, each claimed by itself as soon as the
    // one before has run. Returns how many ran.
    std::size_t execute_contracts(std::size_t most = 32) {
        return core_->execute_some(this_threads_round(), most);
    }
    // The same, claiming several at once while they are short: see contract_batch.
    std::size_t execute_contracts(contract_batch& batch, std::size_t most = 32) {
        return core_->execute_batch(batch, most);
    }

    // For how many contracts there is room now.
    std::size_t capacity() const noexcept { return core_->capacity(); }
    std::size_t size() const noexcept { return core_->size(); }  // live contracts

    // Makes room for `capacity` contracts, or capacity_max; those that exist stay where they are.
    // False: there was. Errors: what allocation throws. Blocks: while another thread does this.
    bool grow(std::size_t capacity) { return core_->grow(capacity); }

    // From now on nothing is scheduled or created; what is pending runs, by whoever executes. What
    // is scheduled by get_scheduler() runs on the thread that schedules it. A contract that is
    // running, or pending, runs once more at most. A schedule() that races with this takes place
    // before it, or does nothing, or stays pending. A group that was stopped, or is being stopped
    // by another thread, remains so. Blocks: never.
    void begin_drain() noexcept { core_->begin_drain(); }
    // The same; runs what is pending, here and by whoever executes, and returns how many ran here,
    // when nothing is pending or running.
    // Blocks: until then. Errors: what a contract throws; call it again.
    std::size_t drain() { return core_->drain(); }
    // From now on nothing is scheduled or created, and nothing runs but releases; for good,
    // whatever other calls end the group at the same time or later.
    void stop() noexcept { core_->stop(); }

    // Senders and tasks run on whoever executes the group.
    internal::contract_scheduler get_scheduler() noexcept {
        return internal::contract_scheduler(*core_);
    }

protected:
    work_contract_group(std::size_t capacity, std::size_t capacity_max, std::size_t seats)
        : core_(new internal::contract_core(capacity, capacity_max, seats)) {}

    internal::signal_round& this_threads_round() noexcept {
        return internal::thread_rounds::of(core_->number());
    }
    internal::contract_core& core() noexcept { return *core_; }

private:
    template <class Work, class Release, class OnException>
    work_contract create(selection_bias* near, initial_state initial, Work&& work,
                         Release&& on_release, OnException&& on_exception) {
        using Body = internal::contract_body<std::decay_t<Work>, std::decay_t<Release>,
                                             std::decay_t<OnException>>;
        return work_contract(
            core_, core_->create<Body>(near, initial == initial_state::scheduled,
                                       std::forward<Work>(work), std::forward<Release>(on_release),
                                       std::forward<OnException>(on_exception)));
    }

    internal::contract_core* const core_;  // shared with the handles; the group owns one share
};

}  // namespace coppice
