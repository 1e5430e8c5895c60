// further_callbacks: the second and further callbacks of a one-callback slot; for tolerant sources.
#pragma once
// The first callback of a slot is in the slot. The second and further ones of a tolerant source
// come here: they wait in a chain, which the request runs after the slots. The source has two words
// for it. A callback needs no extra words: its two words, `home` and `function`, are free for links
// while it is in no slot.
//
// Callbacks with the same function are of one kind. The newest of a kind is its leader and keeps
// the function. The others are its followers; they are doubly linked, because their word `function`
// is free for a link. The leaders are singly linked: the way on of a leader is its link to the next
// leader or, for the last one, to the source's further_callbacks.
//
// The removal of a callback takes as many steps as the chain has kinds, however many callbacks
// there are: only a leader, or the first follower, which the leader points to, has to search for
// its predecessor. A program has as many kinds as it has types of callbacks.
//
//   a callback       its home: an address and a mark         its function
//   nowhere          -                                       the function
//   leader           its way on, next or last                the function
//   leader with      the first follower, leads               the function
//     followers
//   first follower   the next follower or itself, follows    the way on of its leader
//   later follower   the next follower or itself, follows    the follower before it
//   running          -, running: the requester runs it       the function
//   done             -, done: it has returned, and the       the function
//                    requester does not touch it again
//
// A callback that is added becomes the leader of its kind, and its kind becomes the first. A
// request therefore runs the callbacks kind by kind, the newest kind first. That order is not
// promised.
//
// A callback knows its source only by following the chain to the last leader, which needs the lock.
// So the lock cannot be in the source; the process has one lock for all chains. Critical sections
// go from leader to leader and run no user code.
//
// The word of a source is one of these:
//
//   unused                 there were never further callbacks
//   the newest callback    the head of the chain; with the mark `watched` if its remover must act
//                          for the requester (way_back.hpp)
//   empty                  there were further callbacks
//   farewell               as in a slot (slot.hpp)
//
// Every access happens under the lock, with two exceptions: the requester's look whether there are
// callbacks, and the end of a farewell. A registration writes the word and then looks at the flag;
// the request writes the flag and then looks here. All four are seq_cst (finite_slots.hpp).
// and then looks here. All four are seq_cst (finite.hpp).

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/internal/list.hpp>
#include <coppice/stop/internal/running.hpp>
#include <coppice/stop/internal/slot.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

// The lock of all chains. The test of a model owns and installs it.
#if defined(COPPICE_MODEL)
inline stop_list*& installed_further_lock() {
    static stop_list* installed = nullptr;
    return installed;
}
inline stop_list& further_lock() {
    return *installed_further_lock();
}
#else
struct alignas(64) padded_stop_list {
    stop_list list;
};
// Visible whatever -fvisibility says: of a program and of the shared library.
[[gnu::visibility("default")]] inline constinit padded_stop_list lock_of_further_callbacks;
inline stop_list& further_lock() noexcept {
    return lock_of_further_callbacks.list;
}
#endif

class further_callbacks : immovable {
public:
    // Registers a callback. Returns false if a stop was requested and the caller must run the
    // callback itself. `stopped` must look at the source's flag with seq_cst order.
    template <class Stopped>
    [[nodiscard]] bool add(slot_callback& callback, Stopped stopped) noexcept {
        stop_list& lock = further_lock();
        const stop_list::flags bits = lock.lock();
        bool added = !stopped();
        if (added) {
            link(callback);
            // edge stop.flag (seq_cst): the registration before the flag; pairs with is_empty
            word_.store(address(callback), seq_cst);
            added = !stopped() || planted("further.no_second_look");
            if (!added && !planted("further.stay_linked")) {
                // relaxed, as everything under the lock
                word_.store(word_of(depose(callback)), relaxed);
            }
        }
        lock.unlock(bits);
        return added;
    }

    // Ends the registration of a callback that is in no slot. Blocks: while the callback runs on
    // another thread.
    [[gnu::noinline, gnu::cold]] static void remove(slot_callback& callback) noexcept {
        // edge stop.done (acquire): the callback has returned
        std::uintptr_t seen = callback.home.load(acquire);
        if (is_linked(seen)) {
            stop_list& lock = further_lock();
            const stop_list::flags bits = lock.lock();
            // edge stop.done (acquire): the callback has returned, which needs no lock
            seen = callback.home.load(acquire);
            if (is_linked(seen) && !pass_over(callback)) {
                chain_of(callback).unlink(callback, lock, bits);
                return;
            }
            lock.unlock(bits);
            if (is_linked(seen)) return;
        }
        if (seen != running) return;
        running_request* const request = running_request::forget_callback(&callback);
        if (request != nullptr) {
            request->further()->hand_on(*request);
        } else if (!planted("further.do_not_wait")) {
            callback_sleepers().wait_while(callback.home, running);
        }
    }

    // The following functions are called by the requester.

    bool is_empty() const noexcept {
        // edge stop.flag (seq_cst): the flag before the further callbacks; pairs with add
        return !has_callback(word_.load(seq_cst));
    }
    // Claims the first callback, to run it. Returns nullptr if there is none.
    [[nodiscard]] slot_callback* claim() noexcept { return is_empty() ? nullptr : claim_first(); }
    // Marks the callback as returned. Lifetime: touches nothing after its store.
    static void finish(slot_callback& callback) noexcept {
        callback.home.store(done, release);  // edge stop.done (release): the callback has returned
        callback_sleepers().wake(callback.home);
    }

    // Marks the chain as watched. Returns false if it is empty. See way_back.hpp, also for meet().
    [[nodiscard]] bool watch(running_request& request) noexcept {
        if (is_empty()) return false;
        stop_list& lock = further_lock();
        const stop_list::flags bits = lock.lock();
        const bool marked = mark(request);
        lock.unlock(bits);
        return marked;
    }
    [[nodiscard]] met meet(slot_callback*& callback) noexcept {
        stop_list& lock = further_lock();
        const stop_list::flags bits = lock.lock();
        met found = met::nothing;
        watcher_.write(nullptr);  // the request that watched the chain has arrived here
        if (word_.load(relaxed) == farewell) {
            found = met::farewell;
        } else {
            callback = pop();
            if (callback != nullptr) found = met::callback;
        }
        lock.unlock(bits);
        return found;
    }

    // Lifetime: touches nothing after its store.
    void say_farewell() noexcept {
        // edge stop.left (release): all that the requester did to the source
        word_.store(empty, release);
        callback_sleepers().wake(word_);
    }

    // Called by the destructor of the source, before that of its slots. If it runs inside one of
    // the callbacks here, neither request_stop() nor a later destructor of that callback may touch
    // the source again. The slots do the same for their callbacks.
    bool was_used() const noexcept {
        return word_.load(relaxed) != unused;
    }  // relaxed: the last owner looks
    [[gnu::noinline, gnu::cold]] void check_end(const void* source,
                                                std::uintptr_t slots) const noexcept {
        COPPICE_CHECK(!has_callback(word_.load(relaxed)),
                      "a stop source was destroyed while a callback was registered: destroy the "
                      "callback first");
        if (callback_slot::any_running(slots)) return;
        running_request* const request = running_request::of(source);
        if (request == nullptr) return;
        void* const callback = request->forget_source();
        if (callback != nullptr) static_cast<slot_callback*>(callback)->go_nowhere();
    }

private:
    static constexpr std::uintptr_t unused = 0;
    static constexpr std::uintptr_t empty = 1;
    static constexpr std::uintptr_t watched = 2;  // or-ed to the newest callback
    static constexpr std::uintptr_t farewell = 5;
    // States of a callback's home; all have the bit slot_callback::elsewhere. Beside an address:
    static constexpr std::uintptr_t next = 2;
    static constexpr std::uintptr_t last = 6;
    static constexpr std::uintptr_t leads = 3;
    static constexpr std::uintptr_t follows = 7;
    // Without an address:
    static constexpr std::uintptr_t running = 3;
    static constexpr std::uintptr_t done = 7;
    static constexpr std::uintptr_t states = 7;

    static std::uintptr_t address(const slot_callback& callback) noexcept {
        return reinterpret_cast<std::uintptr_t>(&callback);
    }
    static slot_callback* at(std::uintptr_t word) noexcept {
        return reinterpret_cast<slot_callback*>(word & ~states);
    }
    static bool has_callback(std::uintptr_t word) noexcept { return (word & ~states) != 0; }
    static bool is_linked(std::uintptr_t home) noexcept { return (home & ~states) != 0; }
    // Returns the source's word for a chain whose first leader `way_on` links to.
    static std::uintptr_t word_of(std::uintptr_t way_on) noexcept {
        return (way_on & states) == last ? empty : way_on & ~states;
    }

    [[nodiscard, gnu::noinline, gnu::cold]] slot_callback* claim_first() noexcept {
        stop_list& lock = further_lock();
        const stop_list::flags bits = lock.lock();
        slot_callback* const callback = pop();
        lock.unlock(bits);
        return callback;
    }

    // The rest requires the lock.
    static std::uintptr_t way_on_of(const slot_callback& leader) noexcept {
        const std::uintptr_t home = leader.home.load(relaxed);
        return (home & states) == leads ? at(home)->function.read() : home;
    }
    static void set_way_on(slot_callback& leader, std::uintptr_t way_on) noexcept {
        const std::uintptr_t home = leader.home.load(relaxed);
        if ((home & states) == leads) {
            at(home)->function.write(way_on);
        } else {
            leader.home.store(way_on, relaxed);
        }
    }
    // Called when a follower leaves or becomes a leader: makes the followers behind `former` follow
    // `leader`, whose way on is `way_on`.
    static void lead_rest(slot_callback& leader, const slot_callback& former,
                          std::uintptr_t way_on) noexcept {
        slot_callback* const first = at(former.home.load(relaxed));
        if (first == &former) {
            leader.home.store(way_on, relaxed);
        } else {
            if (!planted("further.lose_way_on")) first->function.write(way_on);
            leader.home.store(address(*first) | leads, relaxed);
        }
    }
    // Takes a leader out, and makes its first follower the leader. Returns the link to the leader
    // that replaced it: to the new one, or the way on if it had no follower.
    [[nodiscard]] static std::uintptr_t depose(const slot_callback& leader) noexcept {
        const std::uintptr_t home = leader.home.load(relaxed);
        if ((home & states) != leads) return home;
        slot_callback& first = *at(home);
        const std::uintptr_t way_on = first.function.read();
        if (planted("further.lose_followers")) return way_on;
        first.function.write(leader.function.read());
        lead_rest(first, first, way_on);
        return address(first) | next;
    }
    // A leader and the one before it; nullptr if there is none.
    struct place {
        slot_callback* before;
        slot_callback* leader;
    };
    // Finds the leader of the callback's kind; for a first follower, its leader.
    place find(const slot_callback& callback) const noexcept {
        const std::uintptr_t function = callback.function.read();
        const std::uintptr_t first = address(callback) | leads;
        place seen{nullptr, at(word_.load(relaxed))};
        while (seen.leader != nullptr) {
            if (seen.leader->function.read() == function || planted("further.one_kind")) break;
            if (seen.leader->home.load(relaxed) == first) break;
            const std::uintptr_t way_on = way_on_of(*seen.leader);
            seen = {seen.leader, (way_on & states) == last ? nullptr : at(way_on)};
        }
        return seen;
    }
    // Makes the callback the first leader; add() sets the word.
    void link(slot_callback& callback) noexcept {
        const std::uintptr_t word = word_.load(relaxed);
        std::uintptr_t way_on = has_callback(word) ? (word & ~states) | next
                                                   : reinterpret_cast<std::uintptr_t>(this) | last;
        const place found = find(callback);
        if (found.leader == nullptr) {
            callback.home.store(way_on, relaxed);
            return;
        }
        // The former leader leaves the chain of leaders and becomes the first follower.
        if (found.before == nullptr) {
            way_on = way_on_of(*found.leader);
        } else {
            set_way_on(*found.before, way_on_of(*found.leader));
        }
        slot_callback& first = *found.leader;
        const std::uintptr_t home = first.home.load(relaxed);
        const bool is_followed = (home & states) == leads;
        if (is_followed) at(home)->function.write(address(first));
        first.home.store((is_followed ? home : address(first)) | follows, relaxed);
        first.function.write(way_on);
        callback.home.store(address(first) | leads, relaxed);
    }
    // Removes a follower that is not the first one. Returns false if the callback is not such a
    // follower.
    [[nodiscard]] static bool pass_over(const slot_callback& callback) noexcept {
        const std::uintptr_t home = callback.home.load(relaxed);
        if ((home & states) != follows) return false;
        const std::uintptr_t before = callback.function.read();
        if ((before & states) != 0) return false;
        if (at(home) != &callback) {
            at(before)->home.store(home, relaxed);
            if (!planted("further.keep_back_link")) at(home)->function.write(before);
        } else if (!planted("further.keep_last")) {
            at(before)->home.store(before | follows, relaxed);
        }
        return true;
    }
    static further_callbacks& chain_of(const slot_callback& callback) noexcept {
        const bool is_first = (callback.home.load(relaxed) & states) == follows;
        std::uintptr_t way_on = is_first ? callback.function.read() : way_on_of(callback);
        while ((way_on & states) != last) way_on = way_on_of(*at(way_on));
        return *reinterpret_cast<further_callbacks*>(way_on & ~states);
    }
    [[nodiscard]] slot_callback* pop() noexcept {
        const std::uintptr_t word = word_.load(relaxed);
        if (!has_callback(word)) return nullptr;
        slot_callback* const callback = at(word);
        word_.store(word_of(depose(*callback)), relaxed);
        callback->home.store(running, relaxed);
        return callback;
    }
    [[nodiscard]] bool mark(running_request& request) noexcept {
        const std::uintptr_t word = word_.load(relaxed);
        if (!has_callback(word)) return false;
        watcher_.write(&request);
        word_.store(word | watched, relaxed);
        return true;
    }
    // Removes a leader, or the first follower of one. Unlocks.
    void unlink(const slot_callback& callback, stop_list& lock, stop_list::flags bits) noexcept {
        const place found = find(callback);
        bool lost_mark = false;
        if (found.leader != &callback) {
            lead_rest(*found.leader, callback, callback.function.read());
        } else {
            const std::uintptr_t way_on = depose(callback);
            if (found.before != nullptr) {
                set_way_on(*found.before, way_on);
            } else {
                const std::uintptr_t mark = word_.load(relaxed) & watched;
                lost_mark = mark != 0 && (way_on & states) == last;
                const bool keeps = !lost_mark && !planted("further.drop_mark");
                word_.store(word_of(way_on) | (keeps ? mark : 0), relaxed);
            }
        }
        const bool say_farewell = lost_mark && !watcher_.read()->cut_off();
        if (say_farewell) word_.store(farewell, relaxed);
        lock.unlock(bits);
        if (!say_farewell) return;
        // edge stop.left (acquire): all that the requester did to the source
        while (word_.load(acquire) == farewell) callback_sleepers().wait_while(word_, farewell);
    }
    // Called when one of the further callbacks has removed itself.
    void hand_on(running_request& request) noexcept {
        request.go_away();
        if (!watch(request)) request.forget_source();
    }

    atomic<std::uintptr_t> word_{unused};       // one of the values listed above
    plain<running_request*> watcher_{nullptr};  // of the mark; guarded by the lock
};

}  // namespace coppice::internal
