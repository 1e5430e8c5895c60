// work_contract_group: a set of contracts, and the functions that run the scheduled ones.
#pragma once
// A contract is a callable that is made once and runs many times. Scheduling it sets a bit. Threads
// that execute the group find set bits, each by its own bias, and run each contract on one thread
// at a time. Data and logic are separate: the group knows nothing of the data that a contract works
// on, for example an SPSC queue.
//
// What happens to pending contracts:
//   begin_drain(), drain()
//              they run; nothing more is scheduled
//   stop()     they do not run; nothing more is scheduled; releases still run
//   ~group     they do not run; the destructor runs the release callables that have not run
//
// An exception of a contract goes to its OnException, or leaves the execute function that ran it;
// the contract continues as after any other run. An exception that leaves a release callable in the
// group's destructor ends the program.
//
// PROTOCOL.md has a table of what each call costs beside the callable.
//
// Source: the work contracts of a talk at CppCon 2024; PROTOCOL.md says what is ours.

#include <coppice/contract/batch.hpp>
#include <coppice/contract/internal/scheduler.hpp>
#include <coppice/contract/internal/thread_rounds.hpp>
#include <coppice/contract/work_contract.hpp>

namespace coppice {

// Says whether a new contract runs at once, or only when it is scheduled.
enum class initial_state { unscheduled, scheduled };

namespace internal {

template <class F>
concept contract_work = std::invocable<F&> || std::invocable<F&, work_contract_token&>;
template <class F>
concept contract_release = std::invocable<F&>;
template <class F>
concept contract_handler = std::invocable<F&, std::exception_ptr>;

}  // namespace internal

// Threads: all functions from any thread, except the destructor. No thread may execute the group
// during the destructor; handles may be used even then. Misuse: a contract that calls drain() or
// the destructor of its own group hangs.
class work_contract_group : immovable {
public:
    // Makes room for `capacity` contracts. When they all exist, the room doubles each time, up to
    // capacity_max. Errors: std::invalid_argument for 0; what allocation throws. Cost: 67 bytes per
    // contract, 3 bytes for each that it may grow by, and 2.5 KB.
    explicit work_contract_group(std::size_t capacity, std::size_t capacity_max = 0)
        : work_contract_group(capacity, capacity_max, 0) {}
    ~work_contract_group() {
        core_->close();
        core_->drop_owner();
    }

    // Makes a contract. Returns an invalid handle if the group is full, was drained, or was
    // stopped. The callables lie in the contract's slot if they take 40 bytes together (empty ones
    // take none), otherwise in one allocation. Errors: what copying or moving the callables throws,
    // and what allocation throws. Blocks: only in a full group, while the slot of a contract that
    // is gone is being freed.
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
    // Makes a contract at the vacant index that shares the most top levels with `index`. For
    // contracts that selection_bias::prefer(index) is to find first.
    template <class Work, class Release = internal::no_release>
        requires internal::contract_work<std::decay_t<Work>> &&
                 internal::contract_release<std::decay_t<Release>>
    work_contract create_contract_near(std::size_t index, Work&& work, Release&& on_release = {},
                                       initial_state initial = initial_state::unscheduled) {
        selection_bias near = selection_bias::prefer(index);
        return create(&near, initial, std::forward<Work>(work), std::forward<Release>(on_release),
                      internal::no_handler());
    }

    // Runs one contract, chosen by this thread's own fair bias or by the given one. Returns false
    // if none was available.
    bool execute_next_contract() { return core_->execute_one(this_threads_round()); }
    bool execute_next_contract(selection_bias& bias) { return core_->execute_one(bias); }

    // Runs up to `most` contracts, chosen by this thread's fair bias. Claims each one after the
    // previous one has run. Returns how many ran.
    std::size_t execute_contracts(std::size_t most = 32) {
        return core_->execute_some(this_threads_round(), most);
    }
    // Runs up to `most` contracts, and claims several at once while they are short: see
    // contract_batch.
    std::size_t execute_contracts(contract_batch& batch, std::size_t most = 32) {
        return core_->execute_batch(batch, most);
    }

    // Returns the number of contracts for which there is room now.
    std::size_t capacity() const noexcept { return core_->capacity(); }
    std::size_t size() const noexcept { return core_->size(); }  // live contracts

    // Makes room for `capacity` contracts, or for capacity_max if that is less. Existing contracts
    // do not move. Returns false if there was room for as many already. Errors: what allocation
    // throws. Blocks: while another thread grows the group.
    bool grow(std::size_t capacity) { return core_->grow(capacity); }

    // Begins to drain the group: nothing more is scheduled or created, and pending contracts run
    // when threads execute the group. An item that is scheduled through get_scheduler() from now on
    // runs on the thread that schedules it. A contract that is running or pending runs at most once
    // more. A schedule() that races with this call takes effect before it, does nothing, or stays
    // pending. A group that was stopped, or is being stopped by another thread, stays stopped.
    // Blocks: never.
    void begin_drain() noexcept { core_->begin_drain(); }
    // Drains the group: calls begin_drain(), runs pending contracts here while other threads may
    // execute the group too, and returns when nothing is pending or running. Returns how many
    // contracts ran here. Blocks: until then. Errors: what a contract throws; call it again.
    std::size_t drain() { return core_->drain(); }
    // Stops the group permanently: nothing is scheduled or created, and only releases run, no
    // matter which other calls end the group at the same time or later.
    void stop() noexcept { core_->stop(); }

    // Returns a scheduler that runs senders and tasks on the threads that execute the group.
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
