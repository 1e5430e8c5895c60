// A slot that holds one stop callback; used by the single and the finite source.
#pragma once
// The word of a slot and who moves it:
//
//   empty    nothing registered
//   address  a callback is registered
//   running  a stop was requested, and the callback that was here runs on the requester's thread
//   done     a stop was requested, and nothing is left to wait for; final
//
//   empty   -> address   fill              the thread that constructs the callback
//   address -> empty     clear, take_back  the thread that destroys it, when no stop came first
//   address -> running   claim, close      the one thread whose request_stop() won
//   empty   -> done      close             the same, in a source whose slot is also its flag
//   running -> done      finish            the same, after the callback has returned
//
// Only the ways out of `address` are contested: clear against claim. If claim wins, the callback's
// destructor waits for `done`, unless it runs inside the callback itself. The store of `done` is
// the requester's last touch of the slot and of the callback: both may be gone after it. Only one
// callback may be registered at a time; a second one stops the process.
//
// clear subtracts the address, whatever the word is by then: addresses have the two lowest bits
// clear, so a state that has taken their place stays readable in these bits, and whoever asks for
// the state looks at them alone. Who has subtracted from `running` or `done` puts the word right
// before it leaves. The subtraction beats a compare-exchange (docs/decisions/0007) because the
// processor has nothing to compare with what its last locked instruction stored.

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/running.hpp>
#include <coppice/stop/sleepers.hpp>

#include <cstdint>

namespace coppice {

// What every callback of a slot starts with. Owned by the thread that constructs and destroys the
// callback; the requester reads `execute` after claim.
struct slot_callback : immovable {
    using execute_function = void(slot_callback*) noexcept;
    slot_callback(execute_function* run, const void* from) noexcept : execute(run), source(from) {}

    execute_function* execute;
    const void* source;  // nullptr: not registered, the destructor has nothing to do
};

class callback_slot {  // immovable as its atomic is; no base, for its size in a source
public:
    // Registers. False: a stop was requested, the caller runs the callback itself.
    [[nodiscard]] bool fill(slot_callback& callback) noexcept {
        std::uintptr_t seen = empty;
        // seq_cst is for the finite source's flag; alone, the slot needs the release.
        // edge stop.callback (release): the callback is constructed; pairs with claim and close
        if (word_.compare_exchange_strong(seen, address(callback), seq_cst, acquire)) [[likely]] {
            return true;
        }
        return refuse(seen);
    }

    // Takes a registration back that shall go on if that fails: request_stop() has claimed it then.
    [[nodiscard, gnu::noinline, gnu::cold]] bool take_back(slot_callback& callback) noexcept {
        std::uintptr_t seen = address(callback);
        // Relaxed: whoever finds the slot empty reads nothing of this callback, and who has failed
        // looks again when the callback ends.
        return word_.compare_exchange_strong(seen, empty, relaxed, relaxed);
    }

    // Ends a registration. False: request_stop() has claimed the callback, and wait_done() is due.
    [[nodiscard]] bool clear(slot_callback& callback) noexcept {
        // edge stop.done (acquire): what is left is `done`: the callback has returned
        return word_.fetch_sub(address(callback), acquire) == address(callback);
    }

    // After clear() has failed: returns when the callback has returned, or at once inside it.
    // Blocks: until this callback returns; never for another one.
    [[gnu::noinline, gnu::cold]] void wait_done(slot_callback& callback) noexcept {
        if (!is_done()) {
            if (running_request::forget_callback(&callback)) {
                word_.store(running, relaxed);  // relaxed: the requester is this thread
                return;
            }
            if (planted("stop.do_not_wait")) return;
            callback_sleepers().wait_while(word_, running - address(callback));
        }
        word_.store(done, relaxed);  // relaxed: the state is the same; only clear() changed more
    }

    // True once the callback that was here has returned.
    bool is_done() const noexcept {
        // edge stop.done (acquire): the callback has returned
        return (word_.load(acquire) & running) == done;
    }

    // For the request's winner alone: is there anything to claim?
    bool is_empty() const noexcept {
        // edge stop.flag (seq_cst): the flag before the slots; pairs with the finite source's
        return word_.load(seq_cst) == empty;
    }

    // Claims the callback to run it; nullptr if there is none. For the request's winner alone.
    [[nodiscard]] slot_callback* claim() noexcept {
        // edge stop.flag (seq_cst): the flag before the slots; pairs with the finite source's
        std::uintptr_t seen = word_.load(seq_cst);
        while (seen != empty && (seen & stopped) == 0) {
            // edge stop.callback (acquire): the callback is constructed
            if (word_.compare_exchange_weak(seen, running, acquire, relaxed)) return at(seen);
        }
        return nullptr;
    }

    enum class closing { lost, nothing_to_run, callback_to_run };

    // Requests the stop in a slot that is its own flag. `callback` is set if there is one to run.
    [[nodiscard]] closing close(slot_callback*& callback) noexcept {
        std::uintptr_t seen = empty;
        for (;;) {
            const std::uintptr_t next = seen == empty ? done : running;
            // edge stop.callback (acquire), edge stop.requested (release): both ways
            if (word_.compare_exchange_weak(seen, next, acq_rel, acquire)) break;
            if ((seen & stopped) != 0) return closing::lost;
        }
        if (seen == empty) return closing::nothing_to_run;
        callback = at(seen);
        return closing::callback_to_run;
    }

    // The claimed callback has returned. Lifetime: touches nothing after its store.
    void finish() noexcept {
        if (planted("stop.wake_before_done")) callback_sleepers().wake(word_);
        word_.store(done, release);  // edge stop.done (release): the callback has returned
        if (!planted("stop.wake_before_done")) callback_sleepers().wake(word_);
    }

    // For a slot that is its own flag: a stop was requested.
    bool stop_requested() const noexcept {
        // edge stop.requested (acquire): what came before the request is visible
        return (word_.load(acquire) & stopped) != 0;
    }

    // For the destructor of the source: bits that tell, or-ed over its slots, what is in any.
    std::uintptr_t left_over() const noexcept { return word_.load(relaxed); }  // by the last owner
    static bool any_filled(std::uintptr_t bits) noexcept { return (bits & ~(running | done)) != 0; }
    static bool any_running(std::uintptr_t bits) noexcept { return (bits & running & ~done) != 0; }

private:
    static constexpr std::uintptr_t empty = 0;
    static constexpr std::uintptr_t stopped = 1;  // the bit that running and done share
    static constexpr std::uintptr_t done = 1;
    static constexpr std::uintptr_t running = 3;
    static_assert(alignof(slot_callback) > running);

    // Not registered: by a stop, or by a second callback that should not be.
    [[gnu::noinline, gnu::cold]] static bool refuse(std::uintptr_t seen) noexcept {
        COPPICE_CHECK((seen & stopped) != 0,
                      "a second callback was registered on a stop token that takes one");
        return false;
    }

    static std::uintptr_t address(slot_callback& callback) noexcept {
        return reinterpret_cast<std::uintptr_t>(&callback);
    }
    static slot_callback* at(std::uintptr_t word) noexcept {
        return reinterpret_cast<slot_callback*>(word);
    }

    // See the table on top.
    atomic<std::uintptr_t> word_{empty};
};

// What the destructor of a source with slots does while one of its callbacks runs: request_stop()
// shall not touch the source again, and the callback's destructor, should it come later, neither.
inline void die_inside_callback(const void* source) noexcept {
    running_request* const request = running_request::of(source);
    COPPICE_CHECK(request != nullptr,
                  "a stop source was destroyed while its callback runs on another thread");
    void* const callback = request->forget_source();
    if (callback != nullptr) static_cast<slot_callback*>(callback)->source = nullptr;
}

}  // namespace coppice
