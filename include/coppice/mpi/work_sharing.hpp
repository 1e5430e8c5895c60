// work_sharing: uneven work that the processes of a communicator share while they find more of it.
#pragma once
// For trees whose shape only a walk tells: a search, a fork_join over more than one machine. An
// item is a subtree that is not visited yet. The function visits its root, and adds its children.
//
//   mpi::work_sharing<node> tree(world);                           // in every process
//   if (world.rank() == 0) tree.add(root);
//   co_await tree.run([](const node& n, mpi::work_found<node>& found) { ... found.add(child); });
//
// Each process works on its newest item first, on one worker of its default pool, so a program has
// a process for each processor. It offers the older half of its items to the others. A process that
// has none asks one that it draws. Source: Blumofe and Leiserson 1999; how the end is found:
// mpi/internal/work_service.hpp.

#include <coppice/base/lifetime.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/element.hpp>
#include <coppice/mpi/internal/work_service.hpp>
#include <coppice/task/task.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace coppice::mpi {

template <transferable T>
class work_sharing;

namespace internal {

template <class T, class F>
class worked_off;

}  // namespace internal

// Where the function of a run puts the items that it has found. It exists during the call.
template <transferable T>
class work_found : immovable {
public:
    // Adds an item, which is the next one here unless another is added after it. Threads: that
    // which calls the function. Errors: std::bad_alloc. Cost: a push to a vector.
    void add(const T& item) { into_.push_back(item); }

private:
    template <class U, class F>
    friend class internal::worked_off;
    explicit work_found(std::vector<T>& into) noexcept : into_(into) {}
    std::vector<T>& into_;
};

namespace internal {

// Errors: std::bad_alloc; nothing is appended.
template <class T>
void append_items(std::vector<T>& to, std::span<const std::byte> from) {
    to.reserve(to.size() + from.size() / sizeof(T));
    for (; !from.empty(); from = from.subspan(sizeof(T))) {
        std::array<std::byte, sizeof(T)> raw;
        std::memcpy(raw.data(), from.data(), sizeof(T));
        to.push_back(std::bit_cast<T>(raw));
    }
}

// The items of a process that only its worker sees, and the calls of the function.
template <class T, class F>
class worked_off final : public work_service::work {
public:
    worked_off(work_service& service, std::vector<T>& mine, F& f) noexcept
        : service_(service), mine_(mine), function_(f) {}
    void off(inplace_stop_token stop) override {
        work_found<T> found(mine_);
        while (!service_.should_end() && !stop.stop_requested()) {
            if (mine_.empty() && !take_back()) return;
            const T item = mine_.back();
            mine_.pop_back();
            service_.count_worked();
            function_(item, found);
            if (mine_.size() > 1 && service_.wants_offer()) offer_older_half();
        }
    }

private:
    bool take_back() {
        return service_.take_back(
            [this](std::span<const std::byte> items) { append_items<T>(mine_, items); });
    }
    void offer_older_half() {
        const std::size_t half = mine_.size() / 2;
        service_.offer(std::as_bytes(std::span<const T>(mine_.data(), half)));
        mine_.erase(mine_.begin(), mine_.begin() + static_cast<std::ptrdiff_t>(half));
    }

    work_service& service_;
    std::vector<T>& mine_;
    F& function_;
};

template <class T, class F>
task<> run_work(work_service& service, std::vector<T>& mine, task<> running, F f) {
    worked_off<T, F> work(service, mine, f);
    service.use(work);
    co_await std::move(running);
}

}  // namespace internal

// Items that the processes of a communicator share. Lifetime: the environment outlives it. While it
// exists, the environment looks for requests of other processes at least once in 1 ms.
template <transferable T>
class work_sharing : immovable {
public:
    // Makes an empty one. Collective. Blocks: as communicator::duplicate(). Errors:
    // std::system_error; std::bad_alloc, after which the process has started nothing, and may make
    // it again, for which the others wait. Threads: any but the environment's own.
    explicit work_sharing(const communicator& over) : service_(over, sizeof(T)) {}
    // Collective and blocking, as the constructor. No run is on. Items that are left are dropped.
    ~work_sharing() = default;

    // Adds an item at this process, for the run that is on or for the next. An item that is added
    // while a run comes to its end stays for the next one. Threads: any. Blocks: for a mutex.
    // Errors: std::bad_alloc; nothing is added.
    void add(const T& item) { service_.add(std::as_bytes(std::span<const T, 1>(&item, 1))); }

    // Returns a sender that calls f(item, found) for each item of all processes, and for those that
    // the calls add to the work_found<T>&, once each. It completes when all processes have no item
    // and no call is on. Collective: every process starts it, with a function that does the same.
    // One worker of the default pool calls `f`, an item at a time; a process may call it for items
    // of any other.
    //
    // A stop at one process ends the run at all, after the calls that are on: the senders of all
    // are stopped. An exception of one ends it likewise: with that exception there, and with
    // errc::failed_elsewhere at the others. Items for which `f` has not been called are left, each
    // at one process, for the next run or for take_all(); what a call that throws has added is too.
    // A process whose default pool has ended fails with operation_canceled, and all end the run.
    // Other errors are those of mpi_category(), after which it can only be destroyed. A deadline
    // (get_deadline) ends no run: execution::timeout, which requests a stop, does. std::bad_alloc
    // from the call itself: the process has not started, and may call again, for which the others
    // wait. After that only `f` and the items that it adds need memory. The end of a run comes
    // before the next one begins: a second run of the same object at the same time, also from `f`,
    // stops the process.
    //
    // Cost for an item: a push and a pop of a vector, and reads of two flags; no call of MPI, and a
    // lock only when others have taken what was offered. A process without work asks others with
    // pauses of up to 1 ms. Stack and memory do not grow with the depth of a tree, beyond its
    // items.
    template <std::move_constructible F>
        requires std::invocable<F&, const T&, work_found<T>&>
    task<> run(F f) {
        return internal::run_work<T, F>(service_, mine_, service_.make_run(), static_cast<F&&>(f));
    }

    // Returns how many items are here. Threads: any, while no run is on.
    std::size_t size() const noexcept { return mine_.size() + service_.offered(); }
    // Removes the items that are here, and returns them, oldest first. Threads: any, while no run
    // is on. Errors: std::bad_alloc; nothing is removed.
    std::vector<T> take_all() {
        std::vector<T> all;
        service_.take_all([this, &all](std::span<const std::byte> items) {
            all.reserve(items.size() / sizeof(T) + mine_.size());
            internal::append_items<T>(all, items);
        });
        all.insert(all.end(), mine_.begin(), mine_.end());
        mine_.clear();
        return all;
    }
    // Returns what this process did in the last run. Threads: any, while no run is on.
    work_counts counts() const noexcept { return service_.counts(); }

private:
    std::vector<T> mine_;  // used by the worker; the oldest first
    internal::work_service service_;
};

}  // namespace coppice::mpi
