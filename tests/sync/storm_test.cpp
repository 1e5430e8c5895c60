// Locks, events, and counts under storms: nothing is lost, and nothing is granted twice.
#include "storm.hpp"

#include <coppice/sync.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include <array>
#include <variant>

namespace {

using namespace coppice;
using namespace coppice::test;

struct mutex_storm {
    using guard = async_mutex::guard;
    using held = storm_visit<guard>;
    static constexpr int slots = 8;
    explicit mutex_storm(int) {}

    template <class Slot>
    bool begin(Slot& s, storm_tally&, storm_random& random) {
        if (random.below(8) == 0) {
            if (auto got = mutex.try_lock()) held(room, std::move(*got));
            return true;
        }
        s.start(mutex.lock(), [this, keeps = random.below(4) == 0](Slot& slot, guard got) {
            held visit(room, std::move(got));
            if (keeps) slot.held = std::move(visit);
        });
        return true;
    }
    void open() {}
    void expect(const storm_tally& all) {
        EXPECT_EQ(all.failed, 0u);
        EXPECT_TRUE(mutex.try_lock());
    }

    storm_faults faults;
    storm_room room{faults};
    async_mutex mutex;
};

struct shared_mutex_storm {
    using guard = async_shared_mutex::guard;
    using shared_guard = async_shared_mutex::shared_guard;
    using writer = storm_visit<guard>;
    using held = std::variant<shared_guard, writer>;
    static constexpr int slots = 8;
    explicit shared_mutex_storm(int) {}

    template <class Slot>
    bool begin(Slot& s, storm_tally&, storm_random& random) {
        const bool keeps = random.below(4) == 0;
        switch (random.below(8)) {
            case 0:
                if (auto got = mutex.try_lock()) writer(room, std::move(*got));
                return true;
            case 1:
                if (const auto got = mutex.try_lock_shared()) read();
                return true;
            case 2:
            case 3:
                s.start(mutex.lock(), [this, keeps](Slot& slot, guard got) {
                    writer visit(room, std::move(got));
                    ++version;
                    if (keeps) slot.held = std::move(visit);
                });
                return true;
            default:
                s.start(mutex.lock_shared(), [this, keeps](Slot& slot, shared_guard got) {
                    read();
                    if (keeps) slot.held = std::move(got);
                });
        }
        return true;
    }
    void read() { faults.expect(version >= 0); }  // a race, if there is a writer
    void open() {}
    void expect(const storm_tally& all) {
        EXPECT_EQ(all.failed, 0u);
        EXPECT_TRUE(mutex.try_lock());
    }

    storm_faults faults;
    storm_room room{faults};
    std::int64_t version = 0;
    async_shared_mutex mutex;
};

struct semaphore_storm {
    static constexpr int permits = 3;
    using permit = async_semaphore::permit;
    struct visit {
        visit() = default;
        visit(semaphore_storm& owner, permit p)
            : storm(&owner), mine(std::move(p)), count(static_cast<int>(mine.count())) {
            const int before = storm->taken.fetch_add(count, internal::relaxed);
            storm->faults.expect(before + count <= permits);
        }
        visit(visit&& other) noexcept
            : storm(std::exchange(other.storm, nullptr)),
              mine(std::move(other.mine)),
              count(other.count) {}
        visit& operator=(visit&& other) noexcept {
            leave();
            storm = std::exchange(other.storm, nullptr);
            count = other.count;
            mine = std::move(other.mine);
            return *this;
        }
        ~visit() { leave(); }
        void leave() {
            if (storm != nullptr) storm->taken.fetch_sub(count, internal::relaxed);
            storm = nullptr;
        }
        semaphore_storm* storm = nullptr;
        permit mine;
        int count = 0;
    };
    using held = visit;
    static constexpr int slots = 8;
    explicit semaphore_storm(int) {}

    template <class Slot>
    bool begin(Slot& s, storm_tally&, storm_random& random) {
        const std::size_t count = random.below(permits + 1);
        const std::uint32_t how = random.below(8);
        if (how == 0) {
            if (auto got = semaphore.try_acquire(count)) visit(*this, std::move(*got));
            return true;
        }
        s.start(semaphore.acquire(count), [this, how](Slot& slot, permit got) {
            visit v(*this, std::move(got));
            if (how < 3) {
                slot.held = std::move(v);
            } else if (how == 3) {
                v.leave();
                const std::size_t n = v.mine.count();
                v.mine.forget();
                semaphore.release(n);
            }
        });
        return true;
    }
    void open() {}
    void expect(const storm_tally& all) {
        EXPECT_EQ(all.failed, 0u);
        EXPECT_EQ(semaphore.available(), std::size_t{permits});
    }

    storm_faults faults;
    internal::atomic<int> taken{0};
    async_semaphore semaphore{permits};
};

struct event_storm {
    struct held {};
    static constexpr int slots = 8;
    explicit event_storm(int) {}

    template <class Slot>
    bool begin(Slot& s, storm_tally& tally, storm_random& random) {
        switch (random.below(8)) {
            case 0:
                tally.in += event.set();
                return true;
            case 1:
                event.reset();
                return true;
            default:
                s.start(event.wait(), [](Slot&) {});
        }
        return true;
    }
    void open() { event.set(); }
    void expect(const storm_tally& all) {
        EXPECT_EQ(all.failed, 0u);
        EXPECT_TRUE(event.is_set());
    }

    storm_faults faults;
    async_event event;
};

// One set() goes from holder to holder.
struct auto_event_storm {
    struct turn {
        turn() = default;
        explicit turn(auto_event_storm& owner) : storm(&owner) { storm->room.enter(); }
        turn(turn&& other) noexcept : storm(std::exchange(other.storm, nullptr)) {}
        turn& operator=(turn&& other) noexcept {
            turn before(std::move(other));
            std::swap(storm, before.storm);
            return *this;
        }
        ~turn() {
            if (storm == nullptr) return;
            storm->room.leave();
            storm->event.set();
        }
        auto_event_storm* storm = nullptr;
    };
    using held = turn;
    static constexpr int slots = 8;
    explicit auto_event_storm(int) {}

    template <class Slot>
    bool begin(Slot& s, storm_tally&, storm_random& random) {
        if (random.below(8) == 0) {
            if (event.try_wait()) turn(*this);
            return true;
        }
        s.start(event.wait(), [this, keeps = random.below(4) == 0](Slot& slot) {
            turn mine(*this);
            if (keeps) slot.held = std::move(mine);
        });
        return true;
    }
    void open() {}
    void expect(const storm_tally& all) {
        EXPECT_EQ(all.failed, 0u);
        EXPECT_TRUE(event.try_wait());
        EXPECT_FALSE(event.try_wait());
    }

    storm_faults faults;
    storm_room room{faults};
    async_auto_event event{true};
};

// A ring of latches for three arrivals each. The last operation that ends destroys its latch.
struct latch_storm {
    static constexpr std::uint64_t arrivals = 3;
    struct place {
        std::optional<async_latch> latch{std::in_place, arrivals};
        internal::atomic<std::uint64_t> round{0};
        internal::atomic<std::uint64_t> left{arrivals};
    };
    struct held {};
    static constexpr int slots = 8;
    explicit latch_storm(int) {}

    template <class Slot>
    struct arrival {
        latch_storm* storm;
        place* at;
        void operator()(Slot& slot) {
            storm->faults.expect(at->latch->try_wait());
            gave_up(slot);
        }
        void gave_up(Slot&) {
            if (at->left.fetch_sub(1, internal::acq_rel) != 1) return;
            storm->faults.expect(at->latch->try_wait());
            at->latch.emplace(arrivals);
            at->left.store(arrivals, internal::relaxed);
            at->round.fetch_add(1, internal::release);
        }
    };
    template <class Slot>
    bool begin(Slot& s, storm_tally&, storm_random& random) {
        std::uint64_t mine = next.load(internal::relaxed);
        place* at = nullptr;
        do {
            at = &places[mine / arrivals % places.size()];
            if (at->round.load(internal::acquire) != mine / arrivals / places.size()) return false;
        } while (!next.compare_exchange_weak(mine, mine + 1, internal::relaxed, internal::relaxed));
        if (random.below(4) != 0) {
            s.start(at->latch->arrive_and_wait(), arrival<Slot>{this, at});
        } else {
            // It counts before it waits; the latch stays, because its wait has not ended.
            at->latch->count_down();
            s.start(at->latch->wait(), arrival<Slot>{this, at});
        }
        return true;
    }
    void open() {
        for (; next.load(internal::relaxed) % arrivals != 0; next.fetch_add(1, internal::relaxed))
            places[next.load(internal::relaxed) / arrivals % places.size()].latch->count_down();
    }
    void expect(const storm_tally& all) { EXPECT_EQ(all.failed, 0u); }

    storm_faults faults;
    internal::atomic<std::uint64_t> next{0};
    std::array<place, 64> places;
};

struct barrier_storm {
    static constexpr std::uint64_t participants = 3;
    struct held {};
    static constexpr int slots = 8;
    explicit barrier_storm(int) {}

    template <class Slot>
    bool begin(Slot& s, storm_tally&, storm_random&) {
        begun.fetch_add(1, internal::relaxed);
        s.start(barrier.arrive_and_wait(), [this](Slot&, std::uint64_t phase) {
            faults.expect((phase + 1) * participants <= begun.load(internal::relaxed));
        });
        return true;
    }
    void open() {
        // All have arrived, also those that were stopped.
        const std::uint64_t missing =
            (participants - begun.load(internal::relaxed) % participants) % participants;
        begun.fetch_add(missing, internal::relaxed);
        for (std::uint64_t i = 0; i != missing; ++i) barrier.arrive_and_drop();
        left = participants - missing;
    }
    void expect(const storm_tally& all) {
        EXPECT_EQ(all.failed, 0u);
        // The next phase is the one that the number of arrivals says.
        std::uint64_t ended = 0;
        for (std::uint64_t i = 0; i != left; ++i) {
            barrier.arrive_and_wait([&ended, this](std::error_code error, std::uint64_t phase) {
                ended += !error && phase == begun.load(internal::relaxed) / participants;
            });
        }
        EXPECT_EQ(ended, left);
    }

    storm_faults faults;
    internal::atomic<std::uint64_t> begun{0};
    std::uint64_t left = participants;
    async_barrier barrier{participants};
};

// A buffer of three numbers that tasks fill and empty.
struct condition_storm {
    struct held {};
    static constexpr int slots = 8;
    static constexpr std::size_t capacity = 3;
    explicit condition_storm(int) {}

    static task<bool> put(condition_storm& self, std::uint64_t number) {
        auto guard = co_await self.mutex.lock();
        self.faults.expect(!std::exchange(self.inside, true));
        while (self.count == capacity && !self.ended) {
            self.inside = false;
            co_await wait(self, self.changed_to_less, guard);
        }
        self.inside = false;
        if (self.ended) co_return false;
        self.numbers[(self.first + self.count++) % capacity] = number;
        self.changed_to_more.notify_one();
        co_return true;
    }
    static task<std::uint64_t> take(condition_storm& self) {
        auto guard = co_await self.mutex.lock();
        self.faults.expect(!std::exchange(self.inside, true));
        while (self.count == 0 && !self.ended) {
            self.inside = false;
            co_await wait(self, self.changed_to_more, guard);
        }
        self.inside = false;
        if (self.count == 0) co_return 0;
        --self.count;
        const std::uint64_t number = self.numbers[self.first];
        self.first = (self.first + 1) % capacity;
        self.changed_to_less.notify_one();
        co_return number;
    }
    // The lock is held again also after a stop.
    static task<> wait(condition_storm& self, async_condition& changed, async_mutex::guard& guard) {
        std::error_code error;
        co_await changed.wait(guard, use_await[error]);
        self.faults.expect(!std::exchange(self.inside, true));
        if (!error) co_return;
        self.inside = false;
        co_await execution::just_stopped();
    }
    template <class Slot>
    bool begin(Slot& s, storm_tally&, storm_random& random) {
        if (random.below(2) == 0) {
            const std::uint64_t number = next.fetch_add(1, internal::relaxed) + 1;
            s.start(put(*this, number), [number](Slot& slot, bool sent) {
                if (sent) slot.tally.put(number);
            });
        } else {
            s.start(take(*this), [](Slot& slot, std::uint64_t number) {
                if (number != 0) slot.tally.take(number);
            });
        }
        return true;
    }
    void open() {
        auto guard = mutex.lock(block);
        ended = true;
        changed_to_more.notify_all();
        changed_to_less.notify_all();
    }
    void expect(storm_tally all) {
        EXPECT_EQ(all.failed, 0u);
        for (std::size_t i = 0; i != count; ++i) all.take(numbers[(first + i) % capacity]);
        EXPECT_EQ(all.in, all.out);
        EXPECT_EQ(all.sum_in, all.sum_out);
        EXPECT_TRUE(mutex.try_lock());
    }

    storm_faults faults;
    internal::atomic<std::uint64_t> next{0};
    async_mutex mutex;
    async_condition changed_to_more;
    async_condition changed_to_less;
    // Guarded by the mutex.
    std::array<std::uint64_t, capacity> numbers{};
    std::size_t first = 0;
    std::size_t count = 0;
    bool ended = false;
    bool inside = false;
};

template <class Kind>
class storm : public testing::Test {};
using kinds = testing::Types<mutex_storm, shared_mutex_storm, semaphore_storm, event_storm,
                             auto_event_storm, latch_storm, barrier_storm, condition_storm>;
TYPED_TEST_SUITE(storm, kinds);

TYPED_TEST(storm, two_threads_lose_nothing_and_get_nothing_twice) {
    storm_of<TypeParam>::run(2);
}
TYPED_TEST(storm, four_threads_lose_nothing_and_get_nothing_twice) {
    storm_of<TypeParam>::run(4);
}

}  // namespace
