// The rare operations of a group: growing, ending, and waiting for contracts to be gone.
#include <coppice/base/clock.hpp>
#include <coppice/base/internal/caller_runs.hpp>
#include <coppice/base/internal/options.hpp>
#include <coppice/base/internal/put_off.hpp>
#include <coppice/base/saturating.hpp>
#include <coppice/contract/batch.hpp>
#include <coppice/contract/internal/core.hpp>

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

namespace coppice {

using namespace internal;

namespace {

// Checks both capacities. Returns the greatest number of contracts that the group may have room
// for.
std::size_t checked(std::size_t capacity, std::size_t capacity_max) {
    constexpr std::uint64_t contracts_most = std::numeric_limits<std::uint32_t>::max();
    check_option("a contract group's capacity", capacity, 1, contracts_most);
    check_option("a contract group's capacity_max", capacity_max, 0, contracts_most);
    return std::max(capacity, capacity_max);
}

}  // namespace

contract_core::contract_core(std::size_t capacity, std::size_t capacity_max, std::size_t seats)
    : sleepers_(seats == 0 ? nullptr : std::make_unique<sleeping_workers>(seats)),
      number_(reinterpret_cast<std::uintptr_t>(this) ^
              static_cast<std::uint64_t>(monotonic_clock().now().time_since_epoch().count())),
      board_(checked(capacity, capacity_max), sleepers_.get()) {
    board_.grow(capacity);
    capacity_.store(capacity, relaxed);  // relaxed: the owner passes the core on
}

bool contract_core::grow(std::size_t capacity) {
    const std::lock_guard lock(growth_mutex_);
    capacity = std::min(capacity, capacity_max());
    if (capacity <= this->capacity()) return false;
    board_.grow(capacity);
    capacity_.store(capacity, relaxed);  // relaxed: a count for information
    return true;
}

std::size_t contract_core::take_vacant(selection_bias* near) {
    const auto look = [&] {
        return near == nullptr ? board_.take_vacant() : board_.take_vacant(*near);
    };
    for (;;) {
        const std::size_t before = capacity();
        if (const auto index = look()) return *index;
        if (grow(saturating_add(before, before)) || capacity() != before) continue;
        // The group has grown as far as it can, and the growth lock has ordered the last growth
        // before this look.
        if (const auto index = look()) return *index;
        // There are fewer contracts than slots: a slot is being freed, or was taken and is not
        // counted yet. Neither waits for user code, so this loop is short.
        if (size() >= before || !is_open()) return no_signal;
        std::this_thread::yield();
    }
}

std::size_t contract_core::execute_batch(contract_batch& batch, std::size_t most) {
    const no_fork_context none;
    most = std::min(most, batch.size());
    if (most == 0) return 0;
    if (!batch.is_measured()) return run_batch(batch.round_, most);
    const monotonic_clock clock;
    const time_point begin = clock.now();
    const std::size_t ran = run_batch(batch.round_, most);
    if (ran != 0) batch.took(clock.now() - begin, ran);
    return ran;
}

std::size_t contract_core::run_batch(signal_round& round, std::size_t most) {
    const std::size_t first = board_.claim(round);
    if (first == no_signal) return 0;
    const std::size_t leaf = first / board_.width * board_.width;
    // Claimed contracts that have not run yet, and those that are to be ready when the batch ends.
    std::uint64_t left =
        board_.ready(first) | board_.claim_behind(first, static_cast<unsigned>(most - 1));
    std::uint64_t done = 0;
    std::uint64_t again = 0;
    std::size_t ran = 0;
    // However the batch ends, contracts that have not run are pending as before.
    const scope_exit finish([&]() noexcept {
        if ((done | left) != 0) board_.finish_all(leaf, done | left, again | left);
    });
    while (left != 0) {
        const std::size_t index = leaf + static_cast<unsigned>(std::countr_zero(left));
        const std::uint64_t bit = board_.ready(index);
        left &= ~bit;
        round.advance(index);
        if (board_[index].life.is_released()) {
            ++ran;
            retire(index);
            continue;
        }
        done |= bit;
        if (stopped()) continue;
        ++ran;
        contract_slot& slot = board_[index];
        work_contract_token token;
        try {
            slot.run(token);
        } catch (...) {
            if (end_run(slot, token)) again |= bit;
            throw;
        }
        if (end_run(slot, token)) again |= bit;
    }
    return ran;
}

// Runs the release, after which the contract is gone and its slot becomes vacant once no handle is
// inside. The watchers are user code; they are told last, so that they find the slot free.
void contract_core::retire(std::size_t index) {
    const scope_exit gone([&]() noexcept { bury(index); });  // also if the release throws
    board_[index].release();
}

void contract_core::bury(std::size_t index) noexcept {
    contract_slot& slot = board_[index];
    slot.destroy();
    // Relaxed: a count for information.
    if (index < board_.first_extra()) population_.fetch_sub(1, relaxed);
    contract_watcher* watchers = nullptr;
    const bool watched = slot.life.bury();
    if (watched) take_watchers(slot, watchers);
    board_.leave(index);
    if (board_.extra_is_awaited(index)) {
        const std::lock_guard lock(waiting_mutex_);
        place_waiting();
    }
    if (watched) tell_watchers(watchers);
}

// Called after the mode has changed. The sleepers' end() orders that change for waiting workers.
// May run more than once: a call that finds the group ended may have overtaken the call that ends
// it, and must still leave the gate closed when it returns.
void contract_core::end() noexcept {
    entry_.close();
    if (sleepers_ != nullptr) sleepers_->end();
}

void contract_core::begin_drain() noexcept {
    mode_.begin_drain();
    end();
}

std::size_t contract_core::drain() {
    begin_drain();
    signal_round round;
    std::size_t ran = 0;
    for (;;) {
        const std::size_t now = execute_some(round, 64);
        ran += now;
        if (now != 0) continue;
        if (entry_.is_quiet() && board_.idle()) return ran;
        if (put_off_work::run_one()) continue;
        // A contract runs on another thread, or an item is being enqueued.
        std::this_thread::yield();
    }
}

void contract_core::stop() noexcept {
    mode_.stop();
    end();
}

void contract_core::close() noexcept {
    const no_fork_context none;
    stop();
    for (std::size_t index = 0; index != capacity(); ++index) {
        if (!board_[index].life.vacant()) retire(index);
    }
    // Waits for submitters: a thread may have enqueued an item and not yet woken a worker.
    entry_.wait();
    while (run_items()) {
    }
}

// Runs the items that have a contract; for close(). Returns false if there was none.
bool contract_core::run_items() noexcept {
    bool any = false;
    for (std::size_t i = 0; i != board_.extra; ++i) {
        const std::size_t index = board_.first_extra() + i;
        if (board_[index].life.vacant()) continue;
        any = true;
        retire(index);
    }
    return any;
}

// The body of an extra contract. The contract opens as released, and its release runs the item.
class item_body {
public:
    explicit item_body(contract_item* item) noexcept : item_(item) {}
    void run(work_contract_token&) noexcept {}
    void release() noexcept { item_->run(item_); }

private:
    contract_item* item_;
};

bool contract_core::enqueue_if_open(contract_item& item, locking how) noexcept {
    if (!entry_.enter()) return false;
    const bool enqueued = place_or_wait(item, how);
    entry_.leave();
    return enqueued;
}

bool contract_core::place_or_wait(contract_item& item, locking how) noexcept {
    if (const auto extra = board_.take_vacant_extra()) {
        place(*extra, item);
        return true;
    }
    std::unique_lock lock(waiting_mutex_, std::defer_lock);
    if (how == locking::waits) {
        lock.lock();
    } else if (!lock.try_lock()) {
        return false;
    }
    waiting_.push_back(&item);
    if (board_.wait_for_extra()) place_waiting();
    return true;
}

void contract_core::enqueue(contract_item& item) noexcept {
    if (!try_enqueue(item)) caller_runs<contract_item>::run(item);
}

void contract_core::place(std::size_t extra, contract_item& item) noexcept {
    board_[extra].construct<item_body>(&item);
    (void)board_[extra].life.open(true);
    board_.set_ready(extra);
}

// Gives vacant extra slots to waiting items. A thread that frees an extra slot later does the same
// for the items that remain.
void contract_core::place_waiting() noexcept {
    while (!waiting_.empty()) {
        const auto extra = board_.take_vacant_extra();
        if (!extra) return;
        place(*extra, *waiting_.pop_front());
    }
    board_.nobody_waits_for_extra();
}

bool contract_core::watch(std::size_t index, std::uint64_t generation,
                          contract_watcher& watcher) noexcept {
    contract_slot& slot = board_[index];
    if (slot.life.enter_watching(generation) != life_word::entered::yes) return false;
    bool told = false;
    {
        const std::lock_guard lock(watchers_mutex_);
        told = slot.life.announce_watcher();
        if (told) {
            watcher.next_ = slot.first_watcher;
            if (watcher.next_ != nullptr) watcher.next_->link_ = &watcher.next_;
            watcher.link_ = &slot.first_watcher;
            slot.first_watcher = &watcher;
        }
    }
    board_.leave(index);
    return told;
}

bool contract_core::unwatch(contract_watcher& watcher) noexcept {
    const std::lock_guard lock(watchers_mutex_);
    return unlink(watcher);
}

bool contract_core::unlink(contract_watcher& watcher) noexcept {
    if (watcher.link_ == nullptr) return false;
    *watcher.link_ = watcher.next_;
    if (watcher.next_ != nullptr) watcher.next_->link_ = watcher.link_;
    watcher.link_ = nullptr;
    return true;
}

// Empties the slot's list: the slot may soon hold another contract.
void contract_core::take_watchers(contract_slot& slot, contract_watcher*& list) noexcept {
    const std::lock_guard lock(watchers_mutex_);
    list = std::exchange(slot.first_watcher, nullptr);
    if (list != nullptr) list->link_ = &list;
}

void contract_core::tell_watchers(contract_watcher*& list) noexcept {
    for (;;) {
        contract_watcher* watcher;
        {
            const std::lock_guard lock(watchers_mutex_);
            watcher = list;
            if (watcher == nullptr) return;
            unlink(*watcher);
        }
        watcher->gone_(watcher);  // the watcher may be destroyed by now
    }
}

}  // namespace coppice
