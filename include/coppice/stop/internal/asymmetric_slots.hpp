// asymmetric_slots: a flag and N slots that are filled with plain stores; for asymmetric.hpp.
#pragma once
// Two words per slot:
//   callback_   nullptr, or the registered callback. Written by the slot's owner with plain stores.
//   claim_      open; after the flag is seen, one of these, permanently:
//               withdrawn   set by the owner: the requester did not run its callback and will not
//               running     set by the requester: it runs what it read in callback_
//               done        set by the requester: that has returned
//               and before these, if way_back.hpp needs it:
//               watched     open, but its remover must act for the requester
//               leaving     set by the owner: it is telling the requester
//               farewell    set by the owner: it waits for the requester, which sets withdrawn
// The flag is raised once. The order of the two sides:
//
//   owner:      callback_ = c or nullptr; light_fence(); flag seen? claim_ open -> withdrawn
//   requester:  flag = 1; heavy_fence(); c = callback_; c != nullptr? claim_ open -> running, run c
//
// Proof. Consider an owner's store to callback_ and its look at the flag. (1) The owner does not
// see the flag. Then the requester's read of callback_, after the heavy fence, sees that store or a
// later one. So a callback that stays registered is found, and a removed one is not touched. (2)
// The owner sees the flag. Then owner and requester meet at claim_, and one wins. An owner that
// registers and wins runs its callback in its constructor. An owner that removes and wins has a
// callback that never runs. If the owner loses, the requester has read this very callback, and
// removal waits for `done`. (It cannot have read an older one of this slot: the removal of that one
// has seen the flag, so every later registration looks at the flag first.) Without membarrier both
// fences are full fences, and the same holds.
//
// A slot is watched only if its callback_ was read after the heavy fence. The remover of that
// callback therefore sees the flag, comes to claim_, and finds the mark there.

#include <coppice/base/internal/asymmetric.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/internal/running.hpp>
#include <coppice/stop/internal/sleepers.hpp>
#include <coppice/stop/internal/slot.hpp>
#include <coppice/stop/internal/way_back.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace coppice::internal {

// The common part of every callback in a slot. Owned by the slot's owner; the requester reads
// `execute` after claim.
struct asymmetric_callback : immovable {
    using execute_function = void(asymmetric_callback*) noexcept;
    asymmetric_callback(execute_function* run, const void* from) noexcept
        : execute(run), source(from) {}
    void go_nowhere() noexcept { source = nullptr; }

    execute_function* execute;
    const void* source;  // nullptr: not registered, and the destructor does nothing
};

// One slot. `flag` is the flag of the source, in every call.
class asymmetric_slot {
public:
    // The states in which the owner of a callback finds the slot when it has seen the flag.
    enum class found { withdrawn, watched, running, done };

    // Registers a callback. Returns false if a stop was requested; `what` then says whether more is
    // to be done.
    [[nodiscard]] bool fill(asymmetric_callback& callback, const atomic<std::uint32_t>& flag,
                            found& what) noexcept {
        what = found::withdrawn;
        // edge asymmetric.flag (acquire): what came before the request is visible
        if (flag.load(acquire) != 0) [[unlikely]]
            return false;
        COPPICE_CHECK(callback_.load(relaxed) == nullptr,
                      "a second callback was registered on a stop token that takes one: use a "
                      "source that takes more");
        // edge asymmetric.callback (release): the callback is constructed
        callback_.store(&callback, release);
        light_fence();  // edge asymmetric.order (light): the slot before the flag
        // edge asymmetric.flag (acquire): what came before the request is visible
        if (flag.load(acquire) == 0) [[likely]]
            return true;
        what = withdraw();
        return false;
    }

    // Ends a registration. Returns true if nothing more is to be done.
    [[nodiscard]] bool clear(const atomic<std::uint32_t>& flag) noexcept {
        // Relaxed: a thread that reads nullptr reads nothing else.
        callback_.store(nullptr, relaxed);
        light_fence();                   // edge asymmetric.order (light): the slot before the flag
        return flag.load(relaxed) == 0;  // relaxed: claim_ orders the rest
    }

    // Called when the owner has seen the flag. Finds out which side has the callback.
    [[nodiscard]] found withdraw() noexcept {
        std::uint32_t seen = open;
        // edge stop.done (acquire): the callback has returned
        while (!claim_.compare_exchange_strong(seen, seen == watched ? leaving : withdrawn, relaxed,
                                               acquire)) {
            if (seen == done) return found::done;
            if (seen == running) return found::running;
            if (seen != watched) break;
        }
        callback_.store(nullptr, relaxed);
        if (seen != watched) return found::withdrawn;
        // edge stop.watch (acquire): the request that watches
        fence(acquire);
        return found::watched;
    }

    // Waits until the callback has returned. Blocks: while it runs on another thread.
    void wait_done() noexcept {
        if (planted("asymmetric.do_not_wait")) return;
        callback_sleepers().wait_while(claim_, running);
    }

    // Claims the callback for the requester, which then runs it. Returns nullptr if there is none.
    // Called after the heavy fence.
    [[nodiscard]] asymmetric_callback* claim() noexcept {
        // edge asymmetric.callback (acquire): the callback is constructed
        asymmetric_callback* const callback = callback_.load(acquire);
        if (callback == nullptr) return nullptr;
        std::uint32_t seen = open;
        // Relaxed: callback_ and `done` carry everything that is passed on.
        if (claim_.compare_exchange_strong(seen, running, relaxed, relaxed)) return callback;
        return planted("asymmetric.run_withdrawn") ? callback : nullptr;
    }

    // Marks the callback as returned. Lifetime: touches nothing after its store.
    void finish() noexcept {
        // edge stop.done (release): the callback has returned
        claim_.store(done, release);
        callback_sleepers().wake(claim_);
    }
    // Called when the callback has removed itself. Relaxed: no other thread is concerned.
    void settle() noexcept { claim_.store(done, relaxed); }

    // The following functions are for way_back.hpp.

    [[nodiscard]] bool watch() noexcept {
        if (callback_.load(relaxed) == nullptr) return false;  // relaxed: nothing of it is read
        std::uint32_t seen = open;
        // edge stop.watch (release): the request that watches
        return claim_.compare_exchange_strong(seen, watched, release, relaxed);
    }
    // Lifetime: touches nothing after its store.
    void leave() noexcept {
        // edge stop.left (release): the mark was passed on
        claim_.store(withdrawn, release);
        callback_sleepers().wake(claim_);
    }
    void wait_for_farewell() noexcept {
        // edge stop.left (release): the remover does not touch the request again
        claim_.store(farewell, release);
        callback_sleepers().wake(claim_);
        // edge stop.left (acquire): all that the requester did to the source
        while (claim_.load(acquire) == farewell) callback_sleepers().wait_while(claim_, farewell);
    }
    [[nodiscard]] met meet(asymmetric_callback*& callback) noexcept {
        for (;;) {
            // edge stop.left (acquire): the mark was passed on
            std::uint32_t seen = claim_.load(acquire);
            if (seen == farewell) return met::farewell;
            if (seen != watched && seen != leaving) return met::nothing;
            // edge asymmetric.callback (acquire): the callback is constructed
            callback = callback_.load(acquire);
            if (seen == leaving || callback == nullptr) {
                callback_sleepers().wait_while(claim_, seen);  // it is about to be removed
            } else if (claim_.compare_exchange_strong(seen, running, relaxed, relaxed)) {
                return met::callback;  // relaxed: as in claim()
            }
        }
    }

    // Lifetime: touches nothing after its store.
    void say_farewell() noexcept {
        // edge stop.left (release): all that the requester did to the source
        claim_.store(withdrawn, release);
        callback_sleepers().wake(claim_);
    }

    // Called by the destructor of the source. Relaxed: the last owner looks.
    bool is_filled() const noexcept {
        return callback_.load(relaxed) != nullptr && claim_.load(relaxed) == open;
    }
    bool is_running() const noexcept { return claim_.load(relaxed) == running; }

private:
    static constexpr std::uint32_t open = 0;
    static constexpr std::uint32_t withdrawn = 1;
    static constexpr std::uint32_t running = 2;
    static constexpr std::uint32_t done = 3;
    static constexpr std::uint32_t watched = 4;
    static constexpr std::uint32_t leaving = 5;
    static constexpr std::uint32_t farewell = 6;

    atomic<asymmetric_callback*> callback_{nullptr};
    atomic<std::uint32_t> claim_{open};
};

// The distance of slots in bytes. A single slot needs no padding.
constexpr std::size_t asymmetric_stride(std::size_t slots) noexcept {
    return slots == 1 ? std::bit_ceil(sizeof(asymmetric_slot)) : 64;
}

// The state of an asymmetric source. Threads: any, all members concurrently; the callbacks of a
// slot by its owner only. Tokens point here.
template <std::size_t N, std::size_t Stride>
class asymmetric_slots {
public:
    asymmetric_slots() = default;
    asymmetric_slots(const asymmetric_slots&) = delete;
    ~asymmetric_slots() {
        bool running = false;
        for (const padded_slot& s : slots_) {
            COPPICE_CHECK(!s.slot.is_filled(),
                          "a stop source was destroyed while a callback was registered: destroy "
                          "the callback first");
            running |= s.slot.is_running();
        }
        if (running) [[unlikely]]
            die_inside_callback<asymmetric_callback>(this);
    }

    bool stop_requested() const noexcept {
        // edge asymmetric.flag (acquire): what came before the request is visible
        return requested_.load(acquire) != 0;
    }

    // Requests the stop and runs the callbacks. Returns true for exactly one of all calls.
    // Lifetime: *this may be destroyed by a callback.
    bool request_stop() noexcept {
        // edge asymmetric.flag (release): what came before the request is visible
        if (requested_.exchange(1, acq_rel) != 0) return false;
        heavy_fence();  // edge asymmetric.order (heavy): the flag before the slots
        running_request request(this);
        row slots{this};
        coppice::internal::run_row(slots, slots.claim_from(0), request);  // *this may be gone
        return true;
    }

    // Registers a callback. Returns false if a stop was requested and the caller must run the
    // callback itself.
    [[nodiscard]] bool enlist(std::size_t index, asymmetric_callback& callback) const noexcept {
        asymmetric_slot::found what;
        if (slots_[index].slot.fill(callback, requested_, what)) [[likely]]
            return true;
        if (what == asymmetric_slot::found::watched)
            coppice::internal::leave_watched(row{this}, index);
        return what == asymmetric_slot::found::running || what == asymmetric_slot::found::done;
    }
    void withdraw(std::size_t index, asymmetric_callback& callback) const noexcept {
        if (!slots_[index].slot.clear(requested_)) [[unlikely]]
            withdraw_late(index, callback);
    }

private:
    struct alignas(Stride) padded_slot {
        asymmetric_slot slot;
    };

    // The slots as the Row of way_back.hpp.
    struct row {
        const asymmetric_slots* source;

        asymmetric_slot& at(std::size_t i) const noexcept { return source->slots_[i].slot; }
        static constexpr std::size_t size() noexcept { return N; }
        static std::size_t after(std::size_t i) noexcept { return i + 1; }
        bool pass_on(std::size_t k, std::size_t, running_request&) noexcept {
            for (; k < N; ++k) {
                if (at(k).watch()) return true;
            }
            return false;
        }
        running_request* watcher(std::size_t, std::size_t& i) const noexcept {
            i = N;
            return source->watcher_.load(relaxed);  // relaxed: stop.watch publishes it
        }
        void leave(std::size_t k) noexcept { at(k).leave(); }
        void wait_for_farewell(std::size_t k) noexcept { at(k).wait_for_farewell(); }
        met meet(std::size_t k, asymmetric_callback*& callback) noexcept {
            return at(k).meet(callback);
        }
        void say_farewell(std::size_t k) noexcept { at(k).say_farewell(); }
        void settle(std::size_t i, running_request& request) noexcept {
            at(i).settle();
            source->watcher_.store(&request, relaxed);  // relaxed: as above
        }
        static void settle(std::size_t) noexcept {}

        static void execute(claimed_callback<asymmetric_callback> next) noexcept {
            next.callback->execute(next.callback);
        }
        claimed_callback<asymmetric_callback> claim_from(std::size_t i) noexcept {
            for (; i < N; ++i) {
                asymmetric_callback* const callback = at(i).claim();
                if (callback != nullptr) return {callback, i};
            }
            return {};
        }
        void finish(claimed_callback<asymmetric_callback> former) noexcept {
            at(former.i).finish();
        }
    };

    [[gnu::noinline]] void withdraw_late(std::size_t index,
                                         asymmetric_callback& callback) const noexcept {
        asymmetric_slot& slot = slots_[index].slot;
        switch (slot.withdraw()) {
            case asymmetric_slot::found::watched:
                coppice::internal::leave_watched(row{this}, index);
                break;
            case asymmetric_slot::found::running: {
                running_request* const request = running_request::forget_callback(&callback);
                if (request != nullptr) {
                    coppice::internal::hand_over(row{this}, index, *request);
                } else {
                    slot.wait_done();
                }
                break;
            }
            case asymmetric_slot::found::withdrawn:
            case asymmetric_slot::found::done:
                break;
        }
    }

    // 0, then permanently 1. Written by the request that wins; read by all threads.
    alignas(Stride) mutable atomic<std::uint32_t> requested_{0};
    // The request for which a slot is watched. Written by the requester.
    mutable atomic<running_request*> watcher_{nullptr};
    mutable padded_slot slots_[N];
};

}  // namespace coppice::internal
