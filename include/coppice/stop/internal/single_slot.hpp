// single_slot: room for one callback, and the stop flag, in one word; for single stop sources.
#pragma once
// slot.hpp has the states and the proof.

#include <coppice/base/internal/check.hpp>
#include <coppice/stop/internal/further.hpp>
#include <coppice/stop/internal/running.hpp>
#include <coppice/stop/internal/slot.hpp>
#include <coppice/stop/internal/slot_row.hpp>
#include <coppice/stop/internal/way_back.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice {

class single_inplace_stop_token;  // single.hpp

}  // namespace coppice

namespace coppice::internal {

class tolerant_single_stop_source;

// The state of a single source. Threads: any, all members concurrently. Tokens point here.
class single_slot {
public:
    single_slot() = default;
    single_slot(const single_slot&) = delete;
    ~single_slot() {
        const std::uintptr_t bits = slot_.left_over();
        COPPICE_CHECK(!callback_slot::any_filled(bits),
                      "a stop source was destroyed while a callback was registered: destroy the "
                      "callback first");
        if (callback_slot::any_running(bits)) [[unlikely]]
            die_inside_callback(this);
    }

    bool stop_requested() const noexcept { return slot_.stop_requested(); }

    // Requests the stop and runs the callback. Returns true for exactly one of all calls.
    // Lifetime: the callback may destroy *this.
    bool request_stop() noexcept {
        slot_callback* callback = nullptr;
        switch (slot_.close(callback)) {
            case callback_slot::closing::lost:
                return false;
            case callback_slot::closing::nothing_to_run:
                return true;
            case callback_slot::closing::callback_to_run:
                break;
        }
        running_request request(this, callback);
        callback->execute();
        // If the callback has destroyed itself, it may have destroyed the source too.
        if (!request.callback_gone()) slot_.finish();
        return true;
    }

    // Registers a callback. Returns false if a stop was requested and the caller must run the
    // callback itself.
    [[nodiscard]] bool enlist(slot_callback& callback, bool tolerant) const noexcept {
        std::uintptr_t seen;
        if (slot_.fill(callback, seen)) [[likely]]
            return true;
        return enlist_further(callback, tolerant, seen);
    }
    void withdraw(slot_callback& callback) const noexcept {
        if (!slot_.clear(callback)) [[unlikely]]
            coppice::internal::end_late(row(*this, nullptr), 0, slot_, callback);
    }
    callback_slot& slot(std::size_t) const noexcept { return slot_; }

private:
    friend tolerant_single_stop_source;
    using row = slot_row<single_slot, 1>;

    [[nodiscard]] bool enlist_further(slot_callback& callback, bool tolerant,
                                      std::uintptr_t seen) const noexcept;

    mutable callback_slot slot_;
};

// A single source that accepts further callbacks. An algorithm that passes its token to child
// senders uses this one. The first callback costs the same as on a single source, and a stop costs
// one load more. Further callbacks take a lock. All run on the requester's thread, the first one
// first.
// Threads and lifetime: as for a single source. Cost: 24 bytes.
class tolerant_single_stop_source : single_slot {
public:
    tolerant_single_stop_source() = default;
    ~tolerant_single_stop_source() {
        if (further_.was_used()) [[unlikely]]
            further_.check_end(this, slot_.left_over());
    }

    // Lifetime: the source must outlive every use of its tokens.
    inline single_inplace_stop_token get_token() const noexcept;  // in single.hpp
    static constexpr bool stop_possible() noexcept { return true; }
    using single_slot::stop_requested;

    // As in a single source.
    bool request_stop() noexcept {
        slot_callback* callback = nullptr;
        if (slot_.close(callback) == callback_slot::closing::lost) return false;
        if (callback != nullptr || !further_.is_empty()) run(callback);  // *this may be gone
        return true;
    }

private:
    friend single_slot;

    [[gnu::noinline]] void run(slot_callback* callback) noexcept {
        row slots(*this, &further_);
        claimed_callback<slot_callback> first{callback, 0};
        if (callback == nullptr) first = slots.claim_from(1);
        if (first.callback == nullptr) return;
        running_request request(this, first.callback, &further_);
        coppice::internal::run_row(slots, first, request);
    }

    mutable further_callbacks further_;
};

[[gnu::noinline, gnu::cold]] inline bool single_slot::enlist_further(
    slot_callback& callback, bool tolerant, std::uintptr_t seen) const noexcept {
    if (!tolerant) callback_slot::check_free(seen);
    if (!callback_slot::is_taken(seen)) return false;
    return static_cast<const tolerant_single_stop_source*>(this)->further_.add(
        callback, [this]() noexcept { return slot_.stop_requested_now(); });
}

}  // namespace coppice::internal
