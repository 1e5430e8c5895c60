// callback_slot: a word that holds one stop callback; used by the single and the finite source.
#pragma once
// The states of the word, and the threads that change it:
//
//   empty    nothing registered
//   address  a callback is registered
//   watched  address and a mark: a callback is registered, and its remover must act for the
//            requester
//   leaving  a watched callback was removed, and its remover is telling the requester
//   farewell the remover waits for the requester, which is on its way here
//   running  a stop was requested, and the callback of this slot runs on the requester's thread
//   done     a stop was requested, and nothing is left to wait for; final. While another slot is
//            watched, the bits above the lowest may be the address of the request
//
//   empty    -> address   fill              the thread that constructs the callback
//   address  -> empty     clear, take_back  the thread that destroys it, if no stop came first
//   address  -> running   claim, close      the one thread whose request_stop() won
//   empty    -> done      close             the same, in a source whose slot is also its flag
//   running  -> done      finish, settle    the same, when the callback has returned or is gone
//   address  -> watched   watch             the requester, or the remover of a watched callback
//   watched  -> leaving   clear, take_back  the thread that destroys the callback
//   watched  -> running   meet              the requester
//   leaving  -> empty     leave             the thread that has cleared it
//   leaving  -> farewell  wait_for_farewell the same
//   farewell -> done      meet              the requester
//
// The ways out of `address` and `watched` compete: clear against claim and meet. If claim wins, the
// destructor of the callback waits for `done`, unless it runs inside the callback itself. The store
// of `done` is the requester's last access to the slot and to the callback; both may be gone after
// it. way_back.hpp says why a slot is watched. Only one callback may be registered at a time; a
// second one ends the process, unless the source is tolerant (further.hpp).
//
// clear subtracts the address, whatever the word holds by then. The three lowest bits of an address
// are 0, so a state that has replaced it stays readable in those bits, and readers of the state
// look only at them. A thread that has subtracted from `running` or `done` repairs the word before
// it leaves. Subtraction is faster than a compare-exchange (docs/decisions/0007), because the
// processor need not compare with what its last locked instruction stored.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/internal/running.hpp>
#include <coppice/stop/internal/sleepers.hpp>
#include <coppice/stop/internal/way_back.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

// The common part of every callback in a slot. Owned by the thread that constructs and destroys the
// callback; the requester reads `function` after claim.
struct slot_callback : immovable {
    using execute_function = void(slot_callback*) noexcept;
    slot_callback(execute_function* run, const void* source) noexcept
        : function(reinterpret_cast<std::uintptr_t>(run)),
          home(source != nullptr ? reinterpret_cast<std::uintptr_t>(source) : elsewhere) {}

    // Bit of `home`: the callback is in no slot. Alone: it is nowhere. further.hpp has the other
    // values.
    static constexpr std::uintptr_t elsewhere = 2;

    // Called by the owner. Relaxed: the owner wrote the word, or looks again (further.hpp).
    std::uintptr_t where() const noexcept { return home.load(relaxed); }
    void go_nowhere() noexcept { home.store(elsewhere, relaxed); }
    // Runs a callback whose registration came after the stop request.
    [[gnu::noinline, gnu::cold]] void run_late() noexcept {
        go_nowhere();
        execute();
    }
    // Runs the callback. Lifetime: *this may be gone afterwards.
    [[gnu::always_inline]] void execute() noexcept {
        reinterpret_cast<execute_function*>(function.read())(this);
    }
    template <class Source>
    static const Source& source_at(std::uintptr_t where) noexcept {
        return *reinterpret_cast<const Source*>(where);
    }

    // The function that runs the callback. While the callback is a follower in a chain of further
    // callbacks (further.hpp), a link instead; guarded by their lock then.
    plain<std::uintptr_t> function;
    atomic<std::uintptr_t> home;  // the source while the callback is in a slot; otherwise see above
};

class callback_slot {  // immovable because its atomic is; not a base, to keep sources small
public:
    // Registers a callback. Returns false if a stop was requested or the slot is taken; `seen` is
    // what the slot holds.
    [[nodiscard]] bool fill(slot_callback& callback, std::uintptr_t& seen) noexcept {
        seen = empty;
        // seq_cst for the flag of the finite source; the slot itself needs only the release.
        // edge stop.callback (release): the callback is constructed; pairs with claim and close
        return word_.compare_exchange_strong(seen, address(callback), seq_cst, acquire);
    }

    // Returns true if `seen`, from fill(), is a registered callback. Otherwise a stop was
    // requested.
    static bool is_taken(std::uintptr_t seen) noexcept { return (seen & states) == 0; }
    [[gnu::noinline, gnu::cold]] static void check_free(std::uintptr_t seen) noexcept {
        COPPICE_CHECK(!is_taken(seen),
                      "a second callback was registered on a stop token that takes one: use a "
                      "source that takes more");
    }

    // Withdraws a registration, which stays valid if this fails because request_stop() has claimed
    // it.
    enum class taking { taken, was_watched, claimed };
    [[nodiscard, gnu::noinline, gnu::cold]] taking take_back(slot_callback& callback) noexcept {
        std::uintptr_t seen = address(callback);
        // Relaxed: a thread that finds the slot empty reads nothing of this callback, and a thread
        // that fails here looks again when the callback ends.
        if (word_.compare_exchange_strong(seen, empty, relaxed, relaxed)) return taking::taken;
        if (seen != (address(callback) | leaving)) return taking::claimed;
        // edge stop.watch (acquire): the request that watches
        if (word_.compare_exchange_strong(seen, leaving, acquire, relaxed)) {
            return taking::was_watched;
        }
        return taking::claimed;
    }

    // Ends a registration. Returns false if end_late() must finish that.
    [[nodiscard]] bool clear(slot_callback& callback) noexcept {
        // edge stop.done (acquire), edge stop.watch (acquire): what is left tells which
        return word_.fetch_sub(address(callback), acquire) == address(callback);
    }

    // Says what remains to be done after clear() has failed, or while the callback runs.
    enum class ending { nothing, leave_watched, wait_or_hand_over };
    [[nodiscard]] ending end_late() const noexcept {
        // edge stop.done (acquire): the callback has returned
        const std::uintptr_t state = word_.load(acquire) & running;
        if (state == done) [[likely]]
            return ending::nothing;
        return state == leaving ? ending::leave_watched : ending::wait_or_hand_over;
    }
    // Blocks: until this callback has returned, and never for another one.
    [[gnu::noinline, gnu::cold]] void wait_done() noexcept {
        if (!planted("stop.do_not_wait")) {
            // edge stop.done (acquire): the callback has returned
            std::uintptr_t seen = word_.load(acquire);
            while ((seen & running) == running) {
                seen = callback_sleepers().wait_while(word_, seen);
            }
        }
        settle();
    }
    // Sets the word to `done` when the callback is gone or has returned. Relaxed: the state stays
    // the same, or the requester is this thread.
    void settle() noexcept { word_.store(done, relaxed); }
    // Called when the callback has removed itself, and another slot is to be watched for the
    // request.
    void settle(running_request& request) noexcept {
        // relaxed: stop.watch publishes it
        word_.store(reinterpret_cast<std::uintptr_t>(&request) | done, relaxed);
    }
    // Returns that request, or nullptr if it is not stored here.
    running_request* watcher() const noexcept {
        const std::uintptr_t word = word_.load(relaxed);  // relaxed: as above
        if ((word & running) != done || (word & ~farewell) == 0) return nullptr;
        return reinterpret_cast<running_request*>(word & ~done);
    }

    // Returns true once the callback of this slot has returned.
    bool is_done() const noexcept {
        // edge stop.done (acquire): the callback has returned
        return (word_.load(acquire) & running) == done;
    }
    // Returns true if the callback was claimed and has not returned. May be stale. Called to end a
    // registration.
    bool is_running() const noexcept { return word_.load(relaxed) == running; }  // a hint

    // Returns true if there is nothing to claim. Called by the winning request only.
    bool is_empty() const noexcept {
        // edge stop.flag (seq_cst): the flag before the slots; pairs with the finite source's
        return word_.load(seq_cst) == empty;
    }

    // Claims the callback, to run it. Returns nullptr if there is none. Called by the winning
    // request only.
    [[nodiscard]] slot_callback* claim() noexcept {
        // edge stop.flag (seq_cst): the flag before the slots; pairs with the finite source's
        std::uintptr_t seen = word_.load(seq_cst);
        while (seen != empty && (seen & states) == 0) {
            // edge stop.callback (acquire): the callback is constructed
            if (word_.compare_exchange_weak(seen, running, acquire, relaxed)) return at(seen);
        }
        return nullptr;
    }

    enum class closing { lost, nothing_to_run, callback_to_run };

    // Requests the stop in a slot that is its own flag. Sets `callback` if there is one to run.
    [[nodiscard]] closing close(slot_callback*& callback) noexcept {
        std::uintptr_t seen = empty;
        for (;;) {
            const std::uintptr_t next = seen == empty ? done : running;
            // seq_cst for the tolerant source, whose further callbacks look at this flag.
            // edge stop.callback (acquire), edge stop.requested (release): both ways
            if (word_.compare_exchange_weak(seen, next, seq_cst, acquire)) break;
            if ((seen & stopped) != 0) return closing::lost;
        }
        if (seen == empty) return closing::nothing_to_run;
        callback = at(seen);
        return closing::callback_to_run;
    }

    // Marks the claimed callback as returned. Lifetime: touches nothing after its store.
    void finish() noexcept {
        if (planted("stop.wake_before_done")) callback_sleepers().wake(word_);
        word_.store(done, release);  // edge stop.done (release): the callback has returned
        if (!planted("stop.wake_before_done")) callback_sleepers().wake(word_);
    }

    // The following functions are for way_back.hpp.

    // Marks the slot as watched. Returns false if it is not filled.
    [[nodiscard]] bool watch() noexcept {
        // edge stop.flag (seq_cst): the flag before the slots; pairs with the finite source's
        std::uintptr_t seen = word_.load(seq_cst);
        while (seen != empty && (seen & states) == 0) {
            // edge stop.watch (release): the request that watches
            if (word_.compare_exchange_weak(seen, seen | leaving, release, relaxed)) return true;
        }
        return false;
    }
    // Lifetime: touches nothing after its store.
    void leave() noexcept {
        // edge stop.left (release): the mark was passed on
        word_.store(empty, release);
        callback_sleepers().wake(word_);
    }
    void wait_for_farewell() noexcept {
        // edge stop.left (release): the remover does not touch the request again
        word_.store(farewell, release);
        callback_sleepers().wake(word_);
        // edge stop.left (acquire): all that the requester did to the source
        while (word_.load(acquire) == farewell) {
            callback_sleepers().wait_while(word_, farewell);
        }
    }
    // Called by the requester that has come back.
    [[nodiscard, gnu::always_inline]] met meet(slot_callback*& callback) noexcept {
        // edge stop.left (acquire): the mark was passed on
        std::uintptr_t seen = word_.load(acquire);
        if ((seen & states) == leaving && seen != leaving) {
            // edge stop.callback (acquire): the callback is constructed
            if (word_.compare_exchange_strong(seen, running, acquire, acquire)) {
                callback = at(seen & ~leaving);
                return met::callback;
            }
        }
        return (seen & states) == leaving || seen == farewell ? meet_remover() : met::nothing;
    }
    // The callback of this slot is being removed. Blocks: while its remover is between two steps.
    [[nodiscard, gnu::noinline, gnu::cold]] met meet_remover() const noexcept {
        for (;;) {
            // edge stop.left (acquire): the mark was passed on
            const std::uintptr_t seen = word_.load(acquire);
            if (seen == farewell) return met::farewell;
            if (seen != leaving || planted("stop.pass_leaving")) return met::nothing;
            callback_sleepers().wait_while(word_, leaving);
        }
    }
    // Lifetime: touches nothing after its store.
    void say_farewell() noexcept {
        // edge stop.left (release): all that the requester did to the source
        word_.store(done, release);
        callback_sleepers().wake(word_);
    }

    // Returns true if a stop was requested. For a slot that is its own flag.
    bool stop_requested() const noexcept {
        // edge stop.requested (acquire): what came before the request is visible
        return (word_.load(acquire) & stopped) != 0;
    }
    // Returns the same. For a thread that has registered a callback elsewhere before.
    bool stop_requested_now() const noexcept {
        // edge stop.flag (seq_cst): the registration before the flag
        return (word_.load(seq_cst) & stopped) != 0;
    }

    // Called by the destructor of the source: returns bits that tell, or-ed over all slots, what
    // they hold.
    std::uintptr_t left_over() const noexcept { return word_.load(relaxed); }  // by the last owner
    static bool any_filled(std::uintptr_t bits) noexcept { return (bits & ~(running | done)) != 0; }
    static bool any_running(std::uintptr_t bits) noexcept { return (bits & running & ~done) != 0; }

private:
    static constexpr std::uintptr_t empty = 0;
    static constexpr std::uintptr_t stopped = 1;  // the bit that running and done share
    static constexpr std::uintptr_t done = 1;
    static constexpr std::uintptr_t leaving = 2;  // or-ed to an address: watched
    static constexpr std::uintptr_t running = 3;
    static constexpr std::uintptr_t farewell = 5;
    static constexpr std::uintptr_t states = 3;  // the bits that no address has
    static_assert(alignof(slot_callback) > farewell && alignof(running_request) > farewell);

    static std::uintptr_t address(slot_callback& callback) noexcept {
        return reinterpret_cast<std::uintptr_t>(&callback);
    }
    static slot_callback* at(std::uintptr_t word) noexcept {
        return reinterpret_cast<slot_callback*>(word);
    }

    // One of the states listed above.
    atomic<std::uintptr_t> word_{empty};
};

// Called by the destructor of a source with slots while one of its callbacks runs. Neither
// request_stop() nor a later destructor of that callback may touch the source again.
template <class Callback = slot_callback>
inline void die_inside_callback(const void* source) noexcept {
    running_request* const request = running_request::of(source);
    COPPICE_CHECK(request != nullptr,
                  "a stop source was destroyed while its callback runs on another thread: wait for "
                  "the callback first");
    void* const callback = request->forget_source();
    if (callback != nullptr) static_cast<Callback*>(callback)->go_nowhere();
}

}  // namespace coppice::internal
