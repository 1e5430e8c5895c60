// A hierarchical timer wheel: arming and cancelling are O(1), whatever the number of timers.
#pragma once
// Time is counted in ticks. Seven levels of 64 slots: level 0 holds what is due within 64 ticks,
// each level above 64 times as far. An entry sits at the level of the highest digit (base 64) in
// which its tick differs from the wheel's; when the wheel reaches a slot above level 0, the slot's
// entries move down. A bitmap per level finds the next slot without a scan.
//
// Source: Varghese and Lauck 1987, in the form that tokio and the Linux kernel use.

#include <coppice/base/check.hpp>
#include <coppice/base/internal.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>

#include <bit>
#include <cstdint>
#include <optional>

namespace coppice::io {

namespace internal {

class timer_wheel;

}  // namespace internal

// One timer, embedded in whoever waits. expire() is called once for each time it was armed, unless
// it is cancelled before. Lifetime: not destroyed while armed.
struct timer_entry : list_hook<> {
    explicit timer_entry(void (*function)(timer_entry*) noexcept) noexcept : expire(function) {}
    void (*expire)(timer_entry*) noexcept;
    std::uint64_t tick;  // when it is due; the wheel's while armed, which writes all of these
    bool armed() const noexcept { return linked(); }

private:
    friend class internal::timer_wheel;
    std::uint8_t level_;
    std::uint8_t slot_;
};

namespace internal {

// Threads: its owner's. Blocks: never. No allocation.
class timer_wheel : immovable {
public:
    // Ticks farther from now than this fire at this distance instead (with a tick of 2^18 ns: 18
    // years). Half of the top level's round, so that no entry shares a slot with the present.
    static constexpr std::uint64_t distance_max = (std::uint64_t{1} << 41) - 1;

    ~timer_wheel() { COPPICE_CHECK(size_ == 0, "a timer_wheel was destroyed with timers in it"); }

    std::uint64_t now() const noexcept { return now_; }
    std::size_t size() const noexcept { return size_; }

    // Arms the entry for `tick`; one that is due already expires at the next advance(). O(1).
    void arm(timer_entry& entry, std::uint64_t tick) noexcept {
        COPPICE_CHECK(!entry.armed(), "a timer was armed twice");
        if (tick <= now_) tick = now_ + 1;
        if (tick - now_ > distance_max) tick = now_ + distance_max;
        entry.tick = tick;
        place(entry);
        ++size_;
    }
    // Takes the entry out; expire() will not be called. O(1).
    void cancel(timer_entry& entry) noexcept {
        remove(entry);
        --size_;
    }

    // The tick at which advance() has something to do next: an entry is due, or moves down a level.
    std::optional<std::uint64_t> next_tick() const noexcept {
        if (size_ == 0) return std::nullopt;
        for (unsigned level = 0; level != level_count; ++level) {
            if (occupied_[level] != 0) return next_tick_of(level);
        }
        return std::nullopt;
    }

    // Moves time to `tick` and expires everything that is due by then, in order of ticks. Entries
    // armed by the expiring ones for a tick that is due expire too. O(expired + levels).
    void advance(std::uint64_t tick) noexcept {
        expire_due();  // if called by an expiring entry: what is left of the turn under way
        while (const std::optional<std::uint64_t> next = next_tick()) {
            if (*next > tick) break;
            now_ = *next;
            turn();
            expire_due();
        }
        if (tick > now_) now_ = tick;
    }

    // Expires every armed entry, due or not. One that expires may cancel others, destroy them once
    // they are out, and arm new ones, which stay. O(armed + slots).
    void expire_all() noexcept {
        for (auto& level : slots_) {
            for (list& slot : level) due_.append(slot);
        }
        for (std::uint64_t& bits : occupied_) bits = 0;
        expire_due();
    }

private:
    using list = intrusive_list<timer_entry>;
    static constexpr unsigned digit_bits = 6;
    static constexpr unsigned slot_count = 1u << digit_bits;
    static constexpr unsigned level_count = 7;

    std::uint64_t next_tick_of(unsigned level) const noexcept {
        const unsigned shift = level * digit_bits;
        const unsigned here = static_cast<unsigned>(now_ >> shift) % slot_count;
        // Slots up to `here` have passed: what sits in them belongs to the next round of the level.
        const unsigned ahead = static_cast<unsigned>(
            std::countr_zero(std::rotr(occupied_[level], static_cast<int>(here))));
        const std::uint64_t base = (now_ >> shift) << shift;
        return base + (std::uint64_t{ahead} << shift);
    }

    void place(timer_entry& entry) noexcept {
        const std::uint64_t differs = now_ ^ entry.tick;
        unsigned level = (static_cast<unsigned>(std::bit_width(differs | 1)) - 1) / digit_bits;
        if (level >= level_count) level = level_count - 1;
        const unsigned slot =
            static_cast<unsigned>(entry.tick >> (level * digit_bits)) % slot_count;
        entry.level_ = static_cast<std::uint8_t>(level);
        entry.slot_ = static_cast<std::uint8_t>(slot);
        slots_[level][slot].push_back(entry);
        occupied_[level] |= std::uint64_t{1} << slot;
    }
    void remove(timer_entry& entry) noexcept {
        list::erase(entry);
        if (slots_[entry.level_][entry.slot_].empty()) {
            occupied_[entry.level_] &= ~(std::uint64_t{1} << entry.slot_);
        }
    }
    void expire_due() noexcept {
        while (timer_entry* const entry = due_.pop_front()) {
            --size_;
            entry->expire(entry);  // may destroy the entry, arm and cancel others, and advance
        }
    }
    // Time has reached a slot boundary: entries of upper levels move down, those of level 0 are
    // due.
    void turn() noexcept {
        for (unsigned level = level_count; level-- != 0;) {
            const unsigned shift = level * digit_bits;
            if ((now_ & ((std::uint64_t{1} << shift) - 1)) != 0) continue;
            list& slot = slots_[level][(now_ >> shift) % slot_count];
            while (timer_entry* const entry = slot.front()) {
                remove(*entry);
                if (entry->tick <= now_) {
                    due_.push_back(*entry);
                } else {
                    place(*entry);
                }
            }
        }
    }

    list slots_[level_count][slot_count];
    list due_;  // left their slots, and expire before anything else does
    std::uint64_t occupied_[level_count]{};  // bit s: slots_[level][s] is not empty
    std::uint64_t now_ = 0;
    std::size_t size_ = 0;
};

}  // namespace internal

}  // namespace coppice::io
