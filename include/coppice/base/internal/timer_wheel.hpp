// timer_wheel: a hierarchical timer wheel; arming and canceling are O(1) for any number of timers.
#pragma once
// Time is counted in ticks. The wheel has seven levels of 64 slots. Level 0 holds timers that are
// due within 64 ticks; each higher level reaches 64 times as far. An entry sits at the level of the
// highest digit (base 64) in which its tick differs from the wheel's current tick. When the wheel
// reaches a slot above level 0, the entries of that slot move down. A bitmap for each level finds
// the next slot without a scan.
//
// Source: Varghese and Lauck 1987, in the form that tokio and the Linux kernel use.

#include <coppice/base/internal/check.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/base/version.hpp>

#include <bit>
#include <cstdint>
#include <optional>

namespace coppice::internal {

// A timer, embedded in the object that waits. Each arming leads to one call of expire(), unless the
// timer is canceled first. Lifetime: must not be destroyed while armed.
struct timer_entry : list_hook<> {
    explicit timer_entry(void (*function)(timer_entry*) noexcept) noexcept : expire(function) {}
    void (*expire)(timer_entry*) noexcept;
    // when it is due; while armed, this and the fields below belong to the wheel
    std::uint64_t tick;
    bool armed() const noexcept { return linked(); }

private:
    friend class timer_wheel;
    std::uint8_t level_;
    std::uint8_t slot_;
};

// Threads: its owner's. Blocks: never. Cost: no allocation.
class timer_wheel : immovable {
public:
    // A timer that is farther from now than this fires at this distance instead (18 years with a
    // tick of 2^18 ns). It is half of the top level's round, so that no entry shares a slot with
    // the present.
    static constexpr std::uint64_t distance_max = (std::uint64_t{1} << 41) - 1;

    ~timer_wheel() {
        COPPICE_CHECK(size_ == 0,
                      "a timer_wheel was destroyed with timers in it: cancel them first");
    }

    std::uint64_t now() const noexcept { return now_; }
    std::size_t size() const noexcept { return size_; }

    // Arms the entry for `tick`. An entry that is already due expires at the next advance(). Cost:
    // O(1).
    void arm(timer_entry& entry, std::uint64_t tick) noexcept {
        COPPICE_CHECK(!entry.armed(),
                      "a timer was armed twice: cancel it, or wait until it has expired");
        if (tick <= now_) tick = now_ + 1;
        if (tick - now_ > distance_max) tick = now_ + distance_max;
        entry.tick = tick;
        place(entry);
        ++size_;
    }
    // Removes the entry; expire() will not be called. Cost: O(1).
    void cancel(timer_entry& entry) noexcept {
        remove(entry);
        --size_;
    }

    // Returns the tick at which advance() has something to do next: an entry is due, or moves down
    // a level.
    std::optional<std::uint64_t> next_tick() const noexcept {
        if (size_ == 0) return std::nullopt;
        if (in_tick_) return now_;
        for (unsigned level = 0; level != level_count; ++level) {
            if (occupied_[level] != 0) return next_tick_of(level);
        }
        return std::nullopt;
    }

    // Moves time to `tick`, and expires everything that is due by then, in order of ticks. If an
    // expiring entry arms another one for a tick that is due, that one expires too.
    // Cost: O(expired + levels).
    void advance(std::uint64_t tick) noexcept {
        while (advance_some(tick, ~std::size_t{0})) {
        }
    }
    // Does a part of that: `steps` entries expire or move down a level. Returns true if something
    // is left to do; entries may be armed and canceled before the next call. Cost: O(steps +
    // levels).
    [[nodiscard]] bool advance_some(std::uint64_t tick, std::size_t steps) noexcept {
        for (;;) {
            // What is left of the current tick: the last call had too few steps, or an expiring
            // entry called this.
            if (in_tick_ && (!turn(steps) || !expire_due(steps))) return true;
            in_tick_ = false;
            const std::optional<std::uint64_t> next = next_tick();
            if (!next || *next > tick) break;
            now_ = *next;
            in_tick_ = true;
        }
        if (tick > now_) now_ = tick;
        return false;
    }

    // Expires every armed entry, due or not. An entry that expires may cancel others, may destroy
    // entries that have left the wheel, and may arm new ones, which stay armed. Cost: O(armed +
    // slots).
    void expire_all() noexcept {
        for (auto& level : slots_) {
            for (list& slot : level) due_.append(slot);
        }
        for (std::uint64_t& bits : occupied_) bits = 0;
        std::size_t steps = ~std::size_t{0};
        (void)expire_due(steps);
    }

private:
    using list = intrusive_list<timer_entry>;
    static constexpr unsigned digit_bits = 6;
    static constexpr unsigned slot_count = 1u << digit_bits;
    static constexpr unsigned level_count = 7;

    std::uint64_t next_tick_of(unsigned level) const noexcept {
        const unsigned shift = level * digit_bits;
        const unsigned here = static_cast<unsigned>(now_ >> shift) % slot_count;
        // Slots up to `here` have passed, so their entries belong to the level's next round.
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
    // Returns false if it ran out of steps before it was done, as turn() does.
    [[nodiscard]] bool expire_due(std::size_t& steps) noexcept {
        while (timer_entry* const entry = due_.front()) {
            if (steps == 0) return false;
            --steps;
            due_.pop_front();
            --size_;
            // may destroy the entry, arm and cancel others, and call advance()
            entry->expire(entry);
        }
        return true;
    }
    // Called when time has reached a slot boundary: moves entries of upper levels down, and entries
    // that are due to due_. A second call goes on where the first one ended, because no entry is
    // placed in a slot that time has reached.
    [[nodiscard]] bool turn(std::size_t& steps) noexcept {
        for (unsigned level = level_count; level-- != 0;) {
            const unsigned shift = level * digit_bits;
            if ((now_ & ((std::uint64_t{1} << shift) - 1)) != 0) continue;
            list& slot = slots_[level][(now_ >> shift) % slot_count];
            while (timer_entry* const entry = slot.front()) {
                if (steps == 0) return false;
                --steps;
                remove(*entry);
                if (entry->tick <= now_) {
                    due_.push_back(*entry);
                } else {
                    place(*entry);
                }
            }
        }
        return true;
    }

    list slots_[level_count][slot_count];
    list due_;  // have left their slots, and expire before anything else does
    std::uint64_t occupied_[level_count]{};  // bit s: slots_[level][s] is not empty
    bool in_tick_ = false;  // advance_some() has moved time to now_, and has not finished that tick
    std::uint64_t now_ = 0;
    std::size_t size_ = 0;
};

}  // namespace coppice::internal
