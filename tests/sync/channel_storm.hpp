// The channels of storms: what operations do with one, and what must come out of it.
#pragma once

#include "storm.hpp"

#include <coppice/channel.hpp>
#include <coppice/token.hpp>

namespace coppice::test {

// Its number is gone when it was moved from.
struct storm_item {
    std::uint64_t number = 0;

    storm_item() = default;
    explicit storm_item(std::uint64_t n) noexcept : number(n) {}
    storm_item(storm_item&& other) noexcept : number(std::exchange(other.number, 0)) {}
    storm_item& operator=(storm_item&& other) noexcept {
        number = std::exchange(other.number, 0);
        return *this;
    }
};

// Gives each item a number of its own.
class storm_numbers {
public:
    std::uint64_t next() { return last_.fetch_add(1, internal::relaxed) + 1; }

private:
    internal::atomic<std::uint64_t> last_{0};
};

struct storm_receipt {
    template <class Slot>
    void operator()(Slot& slot, std::optional<storm_item> item) const {
        if (item) slot.tally.take(item->number);
    }
};
struct storm_sending {
    std::uint64_t number;
    template <class Slot>
    void operator()(Slot& slot) const {
        slot.tally.put(number);
    }
};

// Takes what is left, and compares.
template <class Channel>
void expect_balance(storm_tally all, Channel& channel) {
    while (const auto left = channel.try_receive()) all.take(left->number);
    EXPECT_EQ(all.in, all.out);
    EXPECT_EQ(all.sum_in, all.sum_out);
    EXPECT_TRUE(channel.is_closed());
}

template <std::size_t capacity>
struct channel_storm {
    struct held {};
    static constexpr int slots = 8;
    explicit channel_storm(int) {}

    template <class Slot>
    bool begin(Slot& s, storm_tally& tally, storm_random& random) {
        const std::uint32_t how = random.below(16);
        if (how == 0) {
            const std::uint64_t number = numbers.next();
            if (items.try_send(storm_item(number))) tally.put(number);
        } else if (how == 1) {
            if (const auto got = items.try_receive()) tally.take(got->number);
        } else if (how % 2 == 0) {
            const std::uint64_t number = numbers.next();
            s.start(items.send(storm_item(number)), storm_sending{number});
        } else {
            s.start(items.receive(), storm_receipt());
        }
        return true;
    }
    void open() { items.close(); }
    void expect(const storm_tally& all) { expect_balance(all, items); }

    storm_faults faults;
    storm_numbers numbers;
    channel<storm_item> items{capacity};
};

struct unbounded_storm {
    struct held {};
    static constexpr int slots = 8;
    explicit unbounded_storm(int) {}

    template <class Slot>
    bool begin(Slot& s, storm_tally& tally, storm_random& random) {
        const std::uint32_t how = random.below(16);
        if (how == 0) {
            if (const auto got = items.try_receive()) tally.take(got->number);
        } else if (how % 2 == 0 && items.size() < 2000) {
            const std::uint64_t number = numbers.next();
            if (items.send(storm_item(number))) tally.put(number);
        } else {
            s.start(items.receive(), storm_receipt());
        }
        return true;
    }
    void open() { items.close(); }
    void expect(const storm_tally& all) { expect_balance(all, items); }

    storm_faults faults;
    storm_numbers numbers;
    unbounded_channel<storm_item> items;
};

// Each thread sends to the channel of the next one.
template <std::size_t capacity>
struct spsc_storm {
    struct held {};
    static constexpr int slots = 2;
    explicit spsc_storm(int threads) {
        for (int i = 0; i != threads; ++i)
            channels.push_back(std::make_unique<spsc_channel<storm_item>>(capacity));
    }

    template <class Slot>
    bool begin(Slot& s, storm_tally& tally, storm_random& random) {
        const auto lane = static_cast<std::size_t>(s.lane);
        const bool at_once = random.below(8) == 0;
        if (s.place == 0) {
            spsc_channel<storm_item>& to = *channels[(lane + 1) % channels.size()];
            const std::uint64_t number = numbers.next();
            if (!at_once) {
                s.start(to.send(storm_item(number)), storm_sending{number});
            } else if (to.try_send(storm_item(number))) {
                tally.put(number);
            }
        } else {
            spsc_channel<storm_item>& from = *channels[lane];
            if (!at_once) {
                s.start(from.receive(), storm_receipt());
            } else if (const auto got = from.try_receive()) {
                tally.take(got->number);
            }
        }
        return true;
    }
    void open() {
        for (auto& c : channels) c->close();
    }
    void expect(storm_tally all) {
        for (auto& c : channels) {
            while (const auto left = c->try_receive()) all.take(left->number);
        }
        EXPECT_EQ(all.in, all.out);
        EXPECT_EQ(all.sum_in, all.sum_out);
    }

    storm_faults faults;
    storm_numbers numbers;
    std::vector<std::unique_ptr<spsc_channel<storm_item>>> channels;
};

// A ring of oneshots for one sender or closer, and two receivers. The last one destroys it.
struct oneshot_storm {
    static constexpr std::uint64_t users = 3;
    struct place {
        std::optional<oneshot<storm_item>> item{std::in_place};
        internal::atomic<std::uint64_t> round{0};
        internal::atomic<std::uint64_t> left{users};
    };
    struct held {};
    static constexpr int slots = 8;
    explicit oneshot_storm(int) {}

    struct reception {
        oneshot_storm* storm;
        place* at;
        template <class Slot>
        void operator()(Slot& slot, storm_item got) const {
            slot.tally.take(got.number);
            storm->leave(*at, slot.tally);
        }
        template <class Slot>
        void gave_up(Slot& slot) const {
            storm->leave(*at, slot.tally);
        }
    };
    void leave(place& at, storm_tally& tally) {
        if (at.left.fetch_sub(1, internal::acq_rel) != 1) return;
        if (const auto kept = at.item->try_receive()) tally.take(kept->number);
        at.item.emplace();
        at.left.store(users, internal::relaxed);
        at.round.fetch_add(1, internal::release);
    }
    template <class Slot>
    bool begin(Slot& s, storm_tally& tally, storm_random& random) {
        std::uint64_t mine = next.load(internal::relaxed);
        place* at = nullptr;
        do {
            at = &places[mine / users % places.size()];
            if (at->round.load(internal::acquire) != mine / users / places.size()) return false;
        } while (!next.compare_exchange_weak(mine, mine + 1, internal::relaxed, internal::relaxed));
        if (mine % users != mine / users % users) {
            s.start(at->item->receive(), reception{this, at});
        } else if (random.below(16) == 0) {
            at->item->close();
            leave(*at, tally);
        } else {
            const std::uint64_t number = numbers.next();
            faults.expect(at->item->send(storm_item(number)));
            tally.put(number);
            leave(*at, tally);
        }
        return true;
    }
    void open() {
        for (place& at : places) at.item->close();
    }
    void expect(storm_tally all) {
        for (place& at : places) {
            if (const auto kept = at.item->try_receive()) all.take(kept->number);
        }
        EXPECT_EQ(all.in, all.out);
        EXPECT_EQ(all.sum_in, all.sum_out);
    }

    storm_faults faults;
    storm_numbers numbers;
    internal::atomic<std::uint64_t> next{0};
    std::array<place, 64> places;
};

// Copied inside the lock, or in shared memory.
template <bool inside>
struct storm_copy {
    std::uint64_t number = 0;

    storm_copy() = default;
    explicit storm_copy(std::uint64_t n) noexcept : number(n) {}
    storm_copy(storm_copy&& other) noexcept : number(std::exchange(other.number, 0)) {}
    storm_copy(const storm_copy& other) noexcept(inside) : number(other.number) {}
};

// The first thread sends; each slot has a receiver, and gets or misses every item.
template <bool inside>
struct broadcast_storm {
    using item = storm_copy<inside>;
    struct reader {
        typename broadcast_channel<item>::receiver from;
        std::uint64_t got = 0;
    };
    struct held {};
    static constexpr int slots = 4;
    explicit broadcast_storm(int threads) {
        for (int i = 0; i != threads * slots; ++i) readers.push_back({items.subscribe()});
    }

    template <class Slot>
    bool begin(Slot& s, storm_tally& tally, storm_random& random) {
        if (s.lane == 0 && random.below(2) == 0) {
            faults.expect(items.send(item(tally.in + 1)));
            tally.put(0);
            return true;
        }
        reader& r = readers[static_cast<std::size_t>(s.lane * slots + s.place)];
        if (random.below(8) == 0) {
            if (const auto got = r.from.try_receive()) check(r, got->number);
            return true;
        }
        s.start(r.from.receive(), [this, &r](Slot&, std::optional<item> got) {
            if (got) check(r, got->number);
        });
        return true;
    }
    void check(reader& r, std::uint64_t number) {
        faults.expect(++r.got + r.from.missed() == number);
    }
    void open() { items.close(); }
    void expect(const storm_tally& all) {
        EXPECT_EQ(all.failed, 0u);
        for (reader& r : readers) {
            while (const auto left = r.from.try_receive()) check(r, left->number);
            EXPECT_EQ(r.got + r.from.missed(), all.in);
        }
    }

    storm_faults faults;
    broadcast_channel<item> items{4};
    std::vector<reader> readers;
};

struct watch_storm {
    struct held {};
    static constexpr int slots = 4;
    explicit watch_storm(int threads) : seen(static_cast<std::size_t>(threads * slots)) {}

    template <class Slot>
    bool begin(Slot& s, storm_tally& tally, storm_random& random) {
        if (s.lane == 0 && random.below(4) == 0) {
            ++tally.in;
            number.set(tally.in);
            last = tally.in;
            return true;
        }
        std::uint64_t& before = seen[static_cast<std::size_t>(s.lane * slots + s.place)];
        if (random.below(8) == 0) faults.expect(number.get() >= before);
        s.start(number.changed(before), [this, &before](Slot&, std::uint64_t version) {
            faults.expect(version > before && number.get() >= version);
            before = version;
        });
        return true;
    }
    void open() { number.set(++last); }
    void expect(const storm_tally& all) {
        EXPECT_EQ(all.failed, 0u);
        EXPECT_EQ(number.version(), all.in + 1);
        EXPECT_EQ(number.get(), all.in + 1);
    }

    storm_faults faults;
    std::uint64_t last = 0;
    watch<std::uint64_t> number{0};  // its value is its version
    std::vector<std::uint64_t> seen;
};

}  // namespace coppice::test
