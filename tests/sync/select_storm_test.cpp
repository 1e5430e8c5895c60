// Selects under storms: each takes one thing or nothing.
#include "channel_storm.hpp"

#include <coppice/sync.hpp>

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::test;
namespace ex = coppice::execution;

// Two channels, a mutex and a semaphore; operations on one of them, and selects over some.
template <std::size_t capacity>
struct select_storm {
    using item = std::optional<storm_item>;
    using guard = async_mutex::guard;
    using permit = async_semaphore::permit;
    using held = std::variant<std::monostate, storm_visit<guard>, permit>;
    static constexpr int slots = 8;
    explicit select_storm(int) {}

    template <class Slot>
    struct result {
        select_storm* storm;
        std::uint64_t number;  // of the item that may be sent
        bool keeps;

        // The results of a select, or of one operation.
        template <class... Results>
        void operator()(Slot& slot, std::variant<Results...> results) {
            std::visit([this, &slot](auto& taken) { (*this)(slot, std::move(taken)); }, results);
        }
        template <class Result>
        void operator()(Slot& slot, std::pair<std::size_t, Result> branch) {
            (*this)(slot, std::move(branch.second));
        }
        void operator()(Slot& slot) { slot.tally.put(number); }
        void operator()(Slot& slot, std::monostate) { slot.tally.put(number); }
        void operator()(Slot& slot, item got) {
            if (got) slot.tally.take(got->number);
        }
        void operator()(Slot& slot, guard got) {
            storm_visit<guard> visit(storm->room, std::move(got));
            if (keeps) slot.held = std::move(visit);
        }
        void operator()(Slot& slot, permit got) {
            if (keeps) slot.held = std::move(got);
        }
        void operator()(Slot&, int) {}  // of another sender
    };
    template <class Slot>
    bool begin(Slot& s, storm_tally& tally, storm_random& random) {
        const std::uint64_t number = numbers.next();
        const result<Slot> done{this, number, random.below(4) == 0};
        channel<storm_item>& to = random.below(2) == 0 ? a : b;
        channel<storm_item>& from = random.below(2) == 0 ? a : b;  // perhaps the same
        switch (random.below(16)) {
            case 0:
                s.start(to.send(storm_item(number)), done);
                break;
            case 1:
                s.start(from.receive(), done);
                break;
            case 2:
                if (const auto got = from.try_receive()) tally.take(got->number);
                break;
            case 3:
                if (to.try_send(storm_item(number))) tally.put(number);
                break;
            case 4:
                s.start(mutex.lock(), done);
                break;
            case 5:
                s.start(semaphore.acquire(2), done);
                break;
            case 6:
                s.start(select(mutex.lock(), from.receive(), semaphore.acquire(1)), done);
                break;
            case 7:
                s.start(select(semaphore.acquire(2), mutex.lock()), done);
                break;
            case 8:
                s.start(select(a.send(storm_item(number)), b.send(storm_item(number))), done);
                break;
            case 9: {
                std::vector<decltype(a.receive())> both;
                both.push_back(b.receive());
                both.push_back(a.receive());
                s.start(select_range(std::move(both)), done);
                break;
            }
            case 10:  // its value may be lost, so it is not counted
                s.start(select(from.receive(), ex::schedule(ex::inline_scheduler()) |
                                                   ex::then([]() noexcept { return 0; })),
                        done);
                break;
            case 11:
                s.start(select(signal.wait() | ex::then([]() noexcept { return 0; }),
                               to.send(storm_item(number)), from.receive()),
                        done);
                break;
            case 12:
                random.below(2) == 0 ? void(signal.set()) : signal.reset();
                break;
            default:
                s.start(select(to.send(storm_item(number)), from.receive()), done);
        }
        return true;
    }
    void open() {
        a.close();
        b.close();
        signal.set();
    }
    void expect(storm_tally all) {
        for (channel<storm_item>* c : {&a, &b}) {
            while (const auto left = c->try_receive()) all.take(left->number);
        }
        EXPECT_EQ(all.in, all.out);
        EXPECT_EQ(all.sum_in, all.sum_out);
        EXPECT_TRUE(mutex.try_lock());
        EXPECT_EQ(semaphore.available(), 2u);
    }

    storm_faults faults;
    storm_room room{faults};
    storm_numbers numbers;
    channel<storm_item> a{capacity};
    channel<storm_item> b{capacity};
    async_mutex mutex;
    async_semaphore semaphore{2};
    async_event signal;
};

template <class Kind>
class selects_in_a_storm : public testing::Test {};
using kinds = testing::Types<select_storm<0>, select_storm<1>, select_storm<3>>;
TYPED_TEST_SUITE(selects_in_a_storm, kinds);

TYPED_TEST(selects_in_a_storm, two_threads_conserve_items) {
    storm_of<TypeParam>::run(2);
}
TYPED_TEST(selects_in_a_storm, four_threads_conserve_items) {
    storm_of<TypeParam>::run(4);
}

}  // namespace
