// A slot that holds one stop callback; used by the single and the finite source.
#pragma once
// The word of a slot and who moves it:
//
//   empty    nothing registered
//   address  a callback is registered
//   watched  the address and a mark: as before, but its removal concerns the requester
//   leaving  a watched callback was removed, and its remover tells the requester
//   farewell the remover waits for the requester, which is on its way here
//   running  a stop was requested, and the callback that was here runs on the requester's thread
//   done     a stop was requested, and nothing is left to wait for; final. Above the lowest bits
//   may
//            be the address of the request, while another slot is watched
//
//   empty    -> address   fill              the thread that constructs the callback
//   address  -> empty     clear, take_back  the thread that destroys it, when no stop came first
//   address  -> running   claim, close      the one thread whose request_stop() won
//   empty    -> done      close             the same, in a source whose slot is also its flag
//   running  -> done      finish, settle    the same, when the callback has returned or is gone
//   address  -> watched   watch             the requester, or who removes a watched callback
//   watched  -> leaving   clear, take_back  as above
//   watched  -> running   meet              the requester
//   leaving  -> empty     leave             the thread that has cleared it
//   leaving  -> farewell  wait_for_farewell the same
//   farewell -> done      meet              the requester
//
// Of the ways out of `address` and `watched`, clear against claim and meet are contested. If claim
// wins, the callback's destructor waits for `done`, unless it runs inside the callback itself. The
// store of `done` is the requester's last touch of the slot and of the callback: both may be gone
// after it. Why a slot is watched is in way_back.hpp. Only one callback may be registered at a
// time; a second one stops the process, unless the source is a tolerant one (further.hpp).
//
// clear subtracts the address, whatever the word is by then: addresses have the three lowest bits
// clear, so a state that has taken their place stays readable in these bits, and whoever asks for
// the state looks at them alone. Who has subtracted from `running` or `done` puts the word right
// before it leaves. The subtraction beats a compare-exchange (docs/decisions/0007) because the
// processor has nothing to compare with what its last locked instruction stored.

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/running.hpp>
#include <coppice/stop/sleepers.hpp>
#include <coppice/stop/way_back.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

// What every callback of a slot starts with. Owned by the thread that constructs and destroys the
// callback; the requester reads `function` after claim.
struct slot_callback : immovable {
    using execute_function = void(slot_callback*) noexcept;
    slot_callback(execute_function* run, const void* source) noexcept
        : function(reinterpret_cast<std::uintptr_t>(run)),
          home(source != nullptr ? reinterpret_cast<std::uintptr_t>(source) : elsewhere) {}

    // In `home`: the callback is in no slot. Alone, it is nowhere; see further.hpp for the rest.
    static constexpr std::uintptr_t elsewhere = 2;

    // For the owner; relaxed: it has written it, or looks again (further.hpp).
    std::uintptr_t where() const noexcept { return home.load(relaxed); }
    void go_nowhere() noexcept { home.store(elsewhere, relaxed); }
    // The stop was requested before the registration.
    [[gnu::noinline, gnu::cold]] void run_late() noexcept {
        go_nowhere();
        execute();
    }
    // Lifetime: *this may be gone afterwards.
    [[gnu::always_inline]] void execute() noexcept {
        reinterpret_cast<execute_function*>(function.read())(this);
    }
    template <class Source>
    static const Source& source_at(std::uintptr_t where) noexcept {
        return *reinterpret_cast<const Source*>(where);
    }

    // What runs the callback. A link, in between, while the callback is a follower in a chain of
    // further callbacks (further.hpp); guarded by their lock then.
    plain<std::uintptr_t> function;
    atomic<std::uintptr_t> home;  // the source while the callback is in a slot; else see above
};

class callback_slot {  // immovable as its atomic is; no base, for its size in a source
public:
    // Registers. False: a stop was requested, or the slot is taken; `seen` is what is in it.
    [[nodiscard]] bool fill(slot_callback& callback, std::uintptr_t& seen) noexcept {
        seen = empty;
        // seq_cst is for the finite source's flag; alone, the slot needs the release.
        // edge stop.callback (release): the callback is constructed; pairs with claim and close
        return word_.compare_exchange_strong(seen, address(callback), seq_cst, acquire);
    }

    // What fill() has found: a callback that is registered. Else the stop was requested.
    static bool is_taken(std::uintptr_t seen) noexcept { return (seen & states) == 0; }
    [[gnu::noinline, gnu::cold]] static void check_free(std::uintptr_t seen) noexcept {
        COPPICE_CHECK(!is_taken(seen),
                      "a second callback was registered on a stop token that takes one");
    }

    // Takes a registration back that shall go on if that fails: request_stop() has claimed it then.
    enum class taking { taken, was_watched, claimed };
    [[nodiscard, gnu::noinline, gnu::cold]] taking take_back(slot_callback& callback) noexcept {
        std::uintptr_t seen = address(callback);
        // Relaxed: whoever finds the slot empty reads nothing of this callback, and who has failed
        // looks again when the callback ends.
        if (word_.compare_exchange_strong(seen, empty, relaxed, relaxed)) return taking::taken;
        if (seen != (address(callback) | leaving)) return taking::claimed;
        // edge stop.watch (acquire): the request that watches
        if (word_.compare_exchange_strong(seen, leaving, acquire, relaxed)) {
            return taking::was_watched;
        }
        return taking::claimed;
    }

    // Ends a registration. False: end_late() is due.
    [[nodiscard]] bool clear(slot_callback& callback) noexcept {
        // edge stop.done (acquire), edge stop.watch (acquire): what is left tells which
        return word_.fetch_sub(address(callback), acquire) == address(callback);
    }

    // After clear() has failed, or while the callback runs: what is due.
    enum class ending { nothing, leave_watched, wait_or_hand_over };
    [[nodiscard]] ending end_late() const noexcept {
        // edge stop.done (acquire): the callback has returned
        const std::uintptr_t state = word_.load(acquire) & running;
        if (state == done) [[likely]]
            return ending::nothing;
        return state == leaving ? ending::leave_watched : ending::wait_or_hand_over;
    }
    // Returns when the callback has returned. Blocks: until then; never for another one.
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
    // The callback is gone, or has returned: the word is right again.
    // Relaxed: the state is the same, or the requester is this thread.
    void settle() noexcept { word_.store(done, relaxed); }
    // The callback has removed itself, and another slot will be watched for the request.
    void settle(running_request& request) noexcept {
        // relaxed: stop.watch publishes it
        word_.store(reinterpret_cast<std::uintptr_t>(&request) | done, relaxed);
    }
    // That request, or nullptr if it is not written here.
    running_request* watcher() const noexcept {
        const std::uintptr_t word = word_.load(relaxed);  // relaxed: as above
        if ((word & running) != done || (word & ~farewell) == 0) return nullptr;
        return reinterpret_cast<running_request*>(word & ~done);
    }

    // True once the callback that was here has returned.
    bool is_done() const noexcept {
        // edge stop.done (acquire): the callback has returned
        return (word_.load(acquire) & running) == done;
    }
    // For who ends a registration: the callback was claimed and has not returned.
    bool is_running() const noexcept { return word_.load(relaxed) == running; }  // a hint

    // For the request's winner alone: is there anything to claim?
    bool is_empty() const noexcept {
        // edge stop.flag (seq_cst): the flag before the slots; pairs with the finite source's
        return word_.load(seq_cst) == empty;
    }

    // Claims the callback to run it; nullptr if there is none. For the request's winner alone.
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

    // Requests the stop in a slot that is its own flag. `callback` is set if there is one to run.
    [[nodiscard]] closing close(slot_callback*& callback) noexcept {
        std::uintptr_t seen = empty;
        for (;;) {
            const std::uintptr_t next = seen == empty ? done : running;
            // seq_cst is for the tolerant source, whose further callbacks look at this flag.
            // edge stop.callback (acquire), edge stop.requested (release): both ways
            if (word_.compare_exchange_weak(seen, next, seq_cst, acquire)) break;
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

    // What follows is for way_back.hpp.

    // Marks the slot, if it is filled.
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
        // edge stop.left (release): the remover touches the request no more
        word_.store(farewell, release);
        callback_sleepers().wake(word_);
        // edge stop.left (acquire): all that the requester did to the source
        while (word_.load(acquire) == farewell) {
            callback_sleepers().wait_while(word_, farewell);
        }
    }
    // For the requester that has come back.
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
    // Its callback is being removed. Blocks: while its remover is between two steps.
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

    // For a slot that is its own flag: a stop was requested.
    bool stop_requested() const noexcept {
        // edge stop.requested (acquire): what came before the request is visible
        return (word_.load(acquire) & stopped) != 0;
    }
    // The same, for who has registered elsewhere before.
    bool stop_requested_now() const noexcept {
        // edge stop.flag (seq_cst): the registration before the flag
        return (word_.load(seq_cst) & stopped) != 0;
    }

    // For the destructor of the source: bits that tell, or-ed over its slots, what is in any.
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

    // See the table on top.
    atomic<std::uintptr_t> word_{empty};
};

// What the destructor of a source with slots does while one of its callbacks runs: request_stop()
// shall not touch the source again, and the callback's destructor, should it come later, neither.
template <class Callback = slot_callback>
inline void die_inside_callback(const void* source) noexcept {
    running_request* const request = running_request::of(source);
    COPPICE_CHECK(request != nullptr,
                  "a stop source was destroyed while its callback runs on another thread");
    void* const callback = request->forget_source();
    if (callback != nullptr) static_cast<Callback*>(callback)->go_nowhere();
}

}  // namespace coppice::internal
