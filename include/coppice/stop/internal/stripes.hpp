// stop_stripes: the stripes of a stop_state, and which one a thread registers in.
#pragma once
// A stripe is a stop_list (protocol there) and its counts. Each state has an inline stripe, which
// is all that most states ever need. Once registering threads have contended for its lock often
// enough, a table of further stripes is allocated, once. From then on each thread registers in its
// home stripe, and moves its home on when it meets another thread there. A callback remembers its
// stripe and leaves in O(1).
//
// The protocol of a stop, which visits all stripes, is in state.hpp.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/internal/list.hpp>
#include <coppice/stop/internal/stripe.hpp>

#include <cstddef>
#include <cstdint>
#include <new>

namespace coppice::internal {

// Further stripes; their number is a power of two. Written before the table is installed.
struct stop_table {
    struct alignas(64) padded : stop_stripe {};
    static constexpr std::size_t stripes_most = 64;
    std::size_t mask;
    padded* stripes;
};

// Returns a table of stripes, or nullptr without memory.
inline stop_table* make_stop_table(std::size_t stripes) noexcept {
    stop_table* const table = try_new<stop_table>();
    if (table == nullptr) return nullptr;
    table->mask = stripes - 1;
    try {
        table->stripes = new stop_table::padded[stripes];
    } catch (const std::bad_alloc&) {
        delete table;
        return nullptr;
    }
    return table;
}

inline void delete_stop_table(stop_table* table) noexcept {
    delete[] table->stripes;
    delete table;
}

// The stripes of one state. Threads: those that hold a handle of the state.
class [[gnu::visibility("default")]] stop_stripes {
public:
    explicit stop_stripes(stop_state& state) noexcept { first.state = &state; }

    bool stop_requested() const noexcept { return first.list.stop_requested(); }

    // Locks and returns the stripe in which this thread registers; nullptr if a stop was requested.
    // Threads: those that hold a handle while the stripe is locked.
    [[nodiscard]] stop_stripe* enter() noexcept {
        // edge stop.table (acquire): the table's stripes are constructed
        stop_table* const table = table_.load(acquire);
        if (table != nullptr) [[unlikely]]
            return enter_table(*table);
        stop_list::flags seen = 0;
        if (first.list.try_lock(seen)) [[likely]]
            return &first;
        return enter_contended(seen);
    }

    // Locks this stripe. Returns false if a stop was requested. Threads: as for enter().
    [[nodiscard]] bool enter_again(stop_stripe& stripe) noexcept {
        if (&stripe != &first && stop_requested()) return false;
        return (stripe.list.lock_unless(stop_list::stopped) & stop_list::stopped) == 0;
    }

    // Returns the further stripes, or nullptr. Call it with the lock of the first stripe, under
    // which the table is written.
    stop_table* table() const noexcept { return table_.load(relaxed); }

    stop_stripe first;  // the inline stripe; its list has the bit `stopped` of the state

private:
#if defined(COPPICE_MODEL)
    static constexpr std::uint32_t meetings_before_growth = 1;
    static constexpr std::size_t stripes_grown() noexcept { return 2; }
#else
    static constexpr std::uint32_t meetings_before_growth = 64;
    // Twice the processors, as a power of two. Threads find a stripe of their own by moving on.
    static std::size_t stripes_grown() noexcept;
#endif

    // The number of this thread's home stripe, in any table.
    static std::size_t& home() noexcept { return thread_slot<stop_state, std::size_t>(); }

    // Called when another thread holds the inline stripe, or a stop was requested.
    [[gnu::noinline, gnu::cold]] stop_stripe* enter_contended(stop_list::flags seen) noexcept {
        const bool met = (seen & stop_list::locked) != 0;
        seen = first.list.lock_contended(seen, stop_list::stopped);
        if ((seen & stop_list::stopped) != 0) return nullptr;
        if (!met) return &first;
        // Only the thread whose meeting makes the count meetings_before_growth makes the table.
        // Other threads use the inline stripe meanwhile.
        const std::uint32_t meetings = first.meetings.read() + 1;
        if (meetings <= meetings_before_growth) first.meetings.write(meetings);
        if (meetings != meetings_before_growth && !planted("shared.grow_twice")) return &first;
        first.list.unlock(0);
        grow();
        return enter();
    }

    stop_stripe* enter_table(stop_table& table) noexcept {
        if (stop_requested() && !planted("shared.steal_late_callback")) return nullptr;
        stop_stripe& stripe = table.stripes[home() & table.mask];
        stop_list::flags seen = 0;
        if (stripe.list.try_lock(seen)) [[likely]]
            return &stripe;
        if ((seen & stop_list::locked) != 0) ++home();  // from the next time on
        seen = stripe.list.lock_contended(seen, stop_list::stopped);
        return (seen & stop_list::stopped) != 0 ? nullptr : &stripe;
    }

    // Installs the table. Without memory there is no table, and meetings are counted from 0 again.
    void grow() noexcept {
        const std::size_t stripes = stripes_grown();
        stop_table* const table = make_stop_table(stripes);
        for (std::size_t i = 0; table != nullptr && i != stripes; ++i) {
            table->stripes[i].state = first.state;
        }
        const stop_list::flags bits = first.list.lock();
        COPPICE_CHECK(table_.load(relaxed) == nullptr, "a stop state grew twice");
        if (table == nullptr) first.meetings.write(0);
        // edge stop.table (release): the table's stripes are constructed
        if (table != nullptr) table_.store(table, release);
        first.list.unlock(bits);
    }

    // nullptr, or the further stripes. Written once, under the lock of the first stripe.
    atomic<stop_table*> table_{nullptr};
};

}  // namespace coppice::internal
