// base/internal/timer_wheel.hpp: compared with an ordered map, and at its limits.
#include <coppice/base/internal/timer_wheel.hpp>

#include "allocations.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <vector>

namespace {

using coppice::internal::timer_entry;
using coppice::internal::timer_wheel;

struct recorded : timer_entry {
    recorded(std::vector<recorded*>& l) : timer_entry(&record), log(l) {}
    static void record(timer_entry* entry) noexcept {
        recorded* const self = static_cast<recorded*>(entry);
        self->log.push_back(self);
    }
    std::vector<recorded*>& log;
};

TEST(timer_wheel, expires_the_same_timers_as_an_ordered_map_in_the_same_order) {
    std::mt19937_64 random(7);
    for (int round = 0; round != 50; ++round) {
        std::vector<recorded*> log;
        std::vector<std::unique_ptr<recorded>> entries;
        std::multimap<std::uint64_t, recorded*> oracle;
        timer_wheel wheel;
        std::uint64_t now = 0;
        for (int step = 0; step != 300; ++step) {
            for (int i = 0; i != 4; ++i) {
                entries.push_back(std::make_unique<recorded>(log));
                const std::uint64_t in = 1 + (random() >> (random() % 60 + 4)) % (1ull << 40);
                wheel.arm(*entries.back(), now + in);
                oracle.emplace(now + in, entries.back().get());
            }
            if (random() % 3 == 0) {
                auto victim = std::next(oracle.begin(),
                                        static_cast<std::ptrdiff_t>(random() % oracle.size()));
                wheel.cancel(*victim->second);
                oracle.erase(victim);
            }
            now += 1 + (random() >> (random() % 60 + 4)) % (1ull << 36);
            wheel.advance(now);
            std::uint64_t last = 0;
            for (recorded* const r : log) {
                ASSERT_LE(r->tick, now);
                ASSERT_GE(r->tick, last) << "expired out of order";
                last = r->tick;
                auto range = oracle.equal_range(r->tick);
                while (range.first != range.second && range.first->second != r) ++range.first;
                ASSERT_NE(range.first, range.second) << "expired twice, or after its cancel";
                oracle.erase(range.first);
            }
            log.clear();
            ASSERT_TRUE(oracle.empty() || oracle.begin()->first > now) << "one did not expire";
            ASSERT_EQ(wheel.size(), oracle.size());
            if (!oracle.empty()) {
                ASSERT_LE(*wheel.next_tick(), oracle.begin()->first);
            }
        }
        for (auto& [tick, r] : oracle) wheel.cancel(*r);
    }
}

TEST(timer_wheel, served_in_parts_expires_what_is_not_canceled_between_them_once_and_in_order) {
    std::mt19937_64 random(8);
    for (int round = 0; round != 30; ++round) {
        std::vector<recorded*> log;
        std::vector<std::unique_ptr<recorded>> entries;
        timer_wheel wheel;
        std::uint64_t now = random() % 10'000;
        wheel.advance(now);
        std::size_t canceled = 0;
        const auto arm = [&](std::uint64_t in) {
            entries.push_back(std::make_unique<recorded>(log));
            wheel.arm(*entries.back(), now + in);
        };
        // Many for few ticks, near and far, so that slots of all levels hold several.
        for (int i = 0; i != 300; ++i) arm(1 + (random() % 4) * (1 + 63 * (random() % 70)));
        for (int step = 0; step != 40; ++step) {
            now += random() % 900;
            while (wheel.advance_some(now, random() % 8)) {
                ASSERT_LE(wheel.next_tick().value_or(0), now);
                recorded& any = *entries[random() % entries.size()];
                if (any.armed()) {
                    wheel.cancel(any);
                    ++canceled;
                }
                arm(1 + random() % 200);
            }
            ASSERT_GT(wheel.next_tick().value_or(now + 1), now);
        }
        wheel.expire_all();
        EXPECT_EQ(log.size() + canceled, entries.size());
        std::uint64_t last = 0;
        for (const recorded* const each : log) {
            if (each->tick > now) break;  // by expire_all, in any order
            ASSERT_GE(each->tick, last) << "expired out of order";
            last = each->tick;
        }
    }
}

TEST(timer_wheel, a_due_tick_expires_at_the_next_advance) {
    std::vector<recorded*> log;
    timer_wheel wheel;
    wheel.advance(100);
    recorded late(log);
    wheel.arm(late, 5);
    wheel.advance(100);
    EXPECT_TRUE(log.empty());
    wheel.advance(101);
    EXPECT_EQ(log.size(), 1u);
}

TEST(timer_wheel, an_entry_may_arm_itself_again_while_it_expires) {
    struct repeating : timer_entry {
        explicit repeating(timer_wheel& w) : timer_entry(&again), wheel(w) {}
        static void again(timer_entry* entry) noexcept {
            repeating* const self = static_cast<repeating*>(entry);
            if (++self->count < 10) self->wheel.arm(*self, self->wheel.now() + 7);
        }
        timer_wheel& wheel;
        int count = 0;
    };
    timer_wheel wheel;
    repeating r(wheel);
    wheel.arm(r, 7);
    wheel.advance(69);
    EXPECT_EQ(r.count, 9);
    wheel.advance(70);
    EXPECT_EQ(r.count, 10);
    EXPECT_EQ(wheel.size(), 0u);
}

TEST(timer_wheel, expire_all_expires_what_is_not_due_and_lets_entries_cancel_each_other) {
    struct paired : timer_entry {
        explicit paired(timer_wheel& w) : timer_entry(&end), wheel(w) {}
        static void end(timer_entry* entry) noexcept {
            paired* const self = static_cast<paired*>(entry);
            ++self->count;
            if (self->other != nullptr && self->other->armed()) self->wheel.cancel(*self->other);
            if (self->next != nullptr) self->wheel.arm(*self->next, self->wheel.now() + 1);
        }
        timer_wheel& wheel;
        paired* other = nullptr;
        paired* next = nullptr;
        int count = 0;
    };
    timer_wheel wheel;
    paired first(wheel), second(wheel), third(wheel), fourth(wheel), new_one(wheel);
    first.other = &second;
    second.other = &first;
    third.next = &new_one;
    for (paired* each : {&first, &second, &third}) wheel.arm(*each, 1000);
    wheel.arm(fourth, std::uint64_t{1} << 40);
    wheel.expire_all();
    EXPECT_EQ(first.count, 1);
    EXPECT_EQ(second.count, 0);
    EXPECT_EQ(third.count, 1);
    EXPECT_EQ(fourth.count, 1);
    EXPECT_EQ(wheel.size(), 1u);
    wheel.advance(1);
    EXPECT_EQ(new_one.count, 1);
    EXPECT_EQ(wheel.size(), 0u);
}

TEST(timer_wheel, the_farthest_tick_is_capped_and_time_may_wrap_its_top_level) {
    std::vector<recorded*> log;
    timer_wheel wheel;
    wheel.advance((std::uint64_t{1} << 42) - 2);
    recorded near(log), far(log);
    wheel.arm(near, (std::uint64_t{1} << 42) + 3);
    wheel.arm(far, ~std::uint64_t{0});
    wheel.advance((std::uint64_t{1} << 42) + 2);
    EXPECT_TRUE(log.empty());
    wheel.advance((std::uint64_t{1} << 42) + 3);
    EXPECT_EQ(log, (std::vector<recorded*>{&near}));
    wheel.advance(far.tick);
    EXPECT_EQ(log.size(), 2u);
}

TEST(timer_wheel, arming_and_canceling_allocate_nothing) {
    std::vector<recorded*> log;
    timer_wheel wheel;
    recorded r(log);
    const coppice::test::allocation_count count;
    for (std::uint64_t i = 1; i != 1000; ++i) {
        wheel.arm(r, i * 1000);
        wheel.cancel(r);
    }
    EXPECT_EQ(count.so_far(), 0u);
}

TEST(timer_wheel_death, arming_twice_stops_the_process) {
    std::vector<recorded*> log;
    timer_wheel wheel;
    recorded r(log);
    wheel.arm(r, 5);
    EXPECT_DEATH(wheel.arm(r, 6), "armed twice");
    wheel.cancel(r);
}

}  // namespace
