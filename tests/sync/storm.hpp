// storm: threads that start and stop operations on one object at random, and count what moved.
#pragma once
// Each thread owns a lane of slots, each of which has one operation at a time. A thread never
// waits: it visits its slots in a random order, starts an operation in a slot that is idle, and
// clears a slot whose operation has ended. An operation that is pending may be stopped, by its own
// thread or by another one, at any moment from before its start until its end; some have a
// deadline.
//
// When all operations have been started, the object is opened: it grants or refuses all that wait.
// So each of these must end without a stop, or the storm hangs: a wake-up was lost.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/execution.hpp>
#include <coppice/stop_token.hpp>

#include "emulated.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace coppice::test {

// Returns the number of operations of a storm: COPPICE_STORM_OPERATIONS, or a small default.
inline std::uint64_t storm_operations() {
    if (const char* const asked = std::getenv("COPPICE_STORM_OPERATIONS"))
        return std::strtoull(asked, nullptr, 10);
    return std::uint64_t{repeated(50'000)};
}

struct storm_random {
    std::uint64_t state;
    // Returns a number below `count`.
    std::uint32_t below(std::uint32_t count) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return static_cast<std::uint32_t>(((state >> 32) * count) >> 32);
    }
};

// Counts what operations have done.
struct storm_tally {
    std::uint64_t started = 0;
    std::uint64_t granted = 0;
    std::uint64_t stopped = 0;
    std::uint64_t failed = 0;
    // The items that the object must conserve, and the sums of their numbers.
    std::uint64_t in = 0;
    std::uint64_t out = 0;
    std::uint64_t sum_in = 0;
    std::uint64_t sum_out = 0;

    void put(std::uint64_t number) {
        ++in;
        sum_in += number;
    }
    void take(std::uint64_t number) {
        ++out;
        sum_out += number;
    }
    void add(const storm_tally& other) {
        started += other.started;
        granted += other.granted;
        stopped += other.stopped;
        failed += other.failed;
        in += other.in;
        out += other.out;
        sum_in += other.sum_in;
        sum_out += other.sum_out;
    }
};

// Counts what must not happen.
class storm_faults {
public:
    void expect(bool holds) {
        if (!holds) [[unlikely]]
            count_.fetch_add(1, internal::relaxed);
    }
    std::uint64_t count() const { return count_.load(internal::relaxed); }

private:
    internal::atomic<std::uint64_t> count_{0};
};

// A slot for one operation. Held is the type of what the operation keeps there until it is cleared.
template <class Held>
class storm_slot {
    enum class state : unsigned char { idle, pending, ended };

    struct env {
        const storm_slot* slot;
        inplace_stop_token query(get_stop_token_t) const noexcept {
            return slot->stop_->get_token();
        }
        execution::instant query(execution::get_deadline_t) const noexcept {
            return slot->deadline_;
        }
        execution::inline_scheduler query(execution::get_scheduler_t) const noexcept { return {}; }
    };
    template <class Done>
    struct receiver {
        using receiver_concept = execution::receiver_tag;
        storm_slot* slot;
        Done done;

        template <class... Values>
        void set_value(Values&&... values) && noexcept {
            ++slot->tally.granted;
            done(*slot, std::forward<Values>(values)...);
            slot->end();
        }
        template <class Error>
        void set_error(Error&&) && noexcept {
            ++slot->tally.failed;
            if constexpr (requires { done.gave_up(*slot); }) done.gave_up(*slot);
            slot->end();
        }
        void set_stopped() && noexcept {
            ++slot->tally.stopped;
            if constexpr (requires { done.gave_up(*slot); }) done.gave_up(*slot);
            slot->end();
        }
        env get_env() const noexcept { return env{slot}; }
    };

public:
    storm_tally tally;  // of the operations here; written by the thread that ends them
    Held held{};
    int lane = 0;
    int place = 0;  // in its lane

    // The thread of the lane calls all members below except stop_from_outside().
    bool is_idle() const { return state_.load(internal::relaxed) == state::idle; }
    bool is_pending() const { return state_.load(internal::relaxed) == state::pending; }
    // Gives the next operation the deadline `when`.
    void limit(execution::instant when) { deadline_ = when; }
    // Starts the operation. The thread that ends the operation calls done(slot, values...) if it
    // has a result, and otherwise done.gave_up(slot) if there is such a function.
    template <class Sender, class Done>
    void start(Sender&& sender, Done done) {
        using operation =
            decltype(execution::connect(std::move(sender), std::declval<receiver<Done>>()));
        static_assert(sizeof(operation) <= sizeof(memory_) && alignof(operation) <= 64);
        operation* const o = ::new (static_cast<void*>(memory_))
            operation(execution::connect(std::move(sender), receiver<Done>{this, std::move(done)}));
        destroy_ = [](void* there) { static_cast<operation*>(there)->~operation(); };
        ++tally.started;
        // Published for the threads that stop it.
        state_.store(state::pending, internal::release);
        execution::start(*o);
    }
    void stop() { stop_->request_stop(); }
    // Threads: any.
    void stop_from_outside() {
        if (state_.load(internal::relaxed) != state::pending) return;
        if (visited_.exchange(true, internal::acquire)) return;
        if (state_.load(internal::acquire) == state::pending) stop_->request_stop();
        visited_.store(false, internal::release);
    }
    // Clears the slot if its operation has ended. Returns false if it has not.
    bool clear() {
        if (state_.load(internal::acquire) != state::ended) return false;
        while (visited_.exchange(true, internal::acquire)) std::this_thread::yield();
        destroy_(memory_);
        stop_.reset();
        stop_.emplace();
        deadline_ = execution::instant::never();
        state_.store(state::idle, internal::relaxed);
        visited_.store(false, internal::release);
        held = Held();
        return true;
    }

private:
    void end() noexcept { state_.store(state::ended, internal::release); }

    internal::atomic<state> state_{state::idle};
    internal::atomic<bool> visited_{false};  // by a thread that stops it, or that clears it
    execution::instant deadline_ = execution::instant::never();
    std::optional<inplace_stop_source> stop_{std::in_place};
    void (*destroy_)(void*) = nullptr;
    alignas(64) std::byte memory_[2048];
};

// The storm on an object of the type Kind, which has:
//
//   held                         the type of what an operation keeps in its slot
//   static constexpr int slots   the number of operations that a thread has at a time
//   Kind(int threads)
//   begin(slot, tally, random)   starts an operation in the idle slot, or does something at once;
//                                returns false if it could do neither now
//   open()                       called when all operations have begun: ends those that wait
//   expect(storm_tally)          checks the counts when all operations have ended
//   faults                       a storm_faults
template <class Kind>
class storm_of {
    using slot_type = storm_slot<typename Kind::held>;
    struct alignas(64) lane {
        std::unique_ptr<slot_type[]> slots{new slot_type[Kind::slots]};
        storm_tally tally;  // of what was done at once
    };

public:
    static void run(int threads) { storm_of(threads).run(); }

private:
    explicit storm_of(int threads)
        : each_(storm_operations() / static_cast<unsigned>(threads)),
          kind_(std::make_unique<Kind>(threads)),
          lanes_(static_cast<std::size_t>(threads)) {}

    void run() {
        std::vector<std::thread> running;
        for (std::size_t i = 0; i != lanes_.size(); ++i)
            running.emplace_back([this, i] { work(static_cast<int>(i)); });
        for (std::thread& thread : running) thread.join();
        storm_tally all;
        for (lane& l : lanes_) {
            all.add(l.tally);
            for (int i = 0; i != Kind::slots; ++i) all.add(l.slots[i].tally);
        }
        EXPECT_EQ(all.granted + all.stopped + all.failed, all.started);
        kind_->expect(all);
        EXPECT_EQ(kind_->faults.count(), 0u);
        for (const auto& [name, value] : {std::pair{"granted", all.granted},
                                          {"stopped", all.stopped},
                                          {"failed", all.failed},
                                          {"in", all.in},
                                          {"out", all.out}})
            testing::Test::RecordProperty(name, std::to_string(value));
        if (std::getenv("COPPICE_STORM_OPERATIONS") != nullptr) {
            std::printf(
                "%llu operations: %llu granted, %llu stopped, %llu failed; %llu in, %llu out\n",
                static_cast<unsigned long long>(each_ * lanes_.size()),
                static_cast<unsigned long long>(all.granted),
                static_cast<unsigned long long>(all.stopped),
                static_cast<unsigned long long>(all.failed),
                static_cast<unsigned long long>(all.in), static_cast<unsigned long long>(all.out));
            std::fflush(stdout);
        }
    }
    void work(int me) {
        lane& mine = lanes_[static_cast<std::size_t>(me)];
        storm_random random{0x9E3779B97F4A7C15u * static_cast<unsigned>(me + 1)};
        for (int i = 0; i != Kind::slots; ++i) {
            mine.slots[i].lane = me;
            mine.slots[i].place = i;
        }
        arrived_.fetch_add(1, internal::relaxed);
        while (arrived_.load(internal::relaxed) < static_cast<int>(lanes_.size()))
            std::this_thread::yield();
        for (std::uint64_t begun = 0; begun != each_;) {
            slot_type& s = mine.slots[random.below(Kind::slots)];
            if (s.is_idle()) {
                if (random.below(512) == 0) s.limit(soon(random));
                begun += kind_->begin(s, mine.tally, random);
            } else if (!s.clear()) {
                const std::uint32_t chance = random.below(128);
                if (chance < 2) s.stop();
                if (chance == 2) std::this_thread::yield();  // the other threads may have to run
                if (chance == 3) visit(random);
            }
        }
        end(mine);
    }
    void end(lane& mine) {
        if (arrived_.fetch_add(1, internal::acq_rel) + 1 == 2 * static_cast<int>(lanes_.size()))
            kind_->open();
        for (int i = 0; i != Kind::slots; ++i) {
            while (!mine.slots[i].is_idle()) {
                if (!mine.slots[i].clear()) std::this_thread::yield();
                // Clears all slots: one of them may hold what this operation waits for.
                for (int k = 0; k != Kind::slots; ++k) mine.slots[k].clear();
            }
        }
    }
    // Stops an operation of any lane, if one is pending there.
    void visit(storm_random& random) {
        lane& any = lanes_[random.below(static_cast<std::uint32_t>(lanes_.size()))];
        any.slots[random.below(Kind::slots)].stop_from_outside();
    }
    static execution::instant soon(storm_random& random) {
        const auto now = execution::instant(std::chrono::steady_clock::now());
        return execution::instant(now.nanoseconds() + random.below(50'000) - 1000);
    }

    const std::uint64_t each_;
    std::unique_ptr<Kind> kind_;
    std::vector<lane> lanes_;
    internal::atomic<int> arrived_{0};
};

// A room that one visitor at a time may enter.
class storm_room {
public:
    explicit storm_room(storm_faults& faults) : faults_(faults) {}
    void enter() {
        faults_.expect(inside_.fetch_add(1, internal::relaxed) == 0);
        ++visits_;
    }
    void leave() {
        ++visits_;
        inside_.fetch_sub(1, internal::relaxed);
    }

private:
    storm_faults& faults_;
    internal::atomic<int> inside_{0};
    std::uint64_t visits_ = 0;  // two visitors at once are a data race
};

// A guard, and a visit of the room that it guards.
template <class Guard>
class storm_visit {
public:
    storm_visit() = default;
    storm_visit(storm_room& room, Guard guard) : room_(&room), guard_(std::move(guard)) {
        room.enter();
    }
    storm_visit(storm_visit&& other) noexcept
        : room_(std::exchange(other.room_, nullptr)), guard_(std::move(other.guard_)) {}
    storm_visit& operator=(storm_visit&& other) noexcept {
        leave();
        room_ = std::exchange(other.room_, nullptr);
        guard_ = std::move(other.guard_);
        return *this;
    }
    ~storm_visit() { leave(); }

private:
    void leave() {
        if (room_ != nullptr) std::exchange(room_, nullptr)->leave();
    }

    storm_room* room_ = nullptr;
    Guard guard_;
};

}  // namespace coppice::test
