// The second and further callbacks of a slot that takes one; used by tolerant sources.
#pragma once
// A slot's first callback is in the slot. Who finds it taken, in a tolerant source, comes here: a
// chain of all further callbacks of the source, newest first, run after the slots. The source has
// two words for it, and a callback needs none: while it is in no slot, it uses its own two again.
//
//   home      nowhere                  not registered; or its source has died inside it
//             next, or the source's    linked
//             further_callbacks, last
//             running                  taken by the requester, which runs it
//             done                     that has returned; the requester's last touch
//
// The chain does not tell a callback where its source is unless it is walked to its end, and that
// needs the lock. So the lock is not in the source: the process has one for all chains. Critical
// sections walk the chain and run no foreign code.
//
// The word of a source: unused; the newest callback; that and a mark: watched (way_back.hpp);
// empty: there were callbacks; farewell, as in a slot. Everything but the requester's look whether
// there is anything, and the end of a farewell, happens under the lock. Who registers writes the
// word and then looks at the flag, the request writes the flag and then looks here; all are seq_cst
// (finite.hpp).

#include <coppice/base/atomic.hpp>
#include <coppice/base/check.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/stop/list.hpp>
#include <coppice/stop/running.hpp>
#include <coppice/stop/slot.hpp>

#include <cstddef>
#include <cstdint>

namespace coppice::internal {

// The lock of all chains. In a model, its test owns it.
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
inline constinit padded_stop_list lock_of_further_callbacks;
inline stop_list& further_lock() noexcept {
    return lock_of_further_callbacks.list;
}
#endif

class further_callbacks : immovable {
public:
    // Registers. False: a stop was requested, the caller runs the callback itself. `stopped` looks
    // at the source's flag, seq_cst.
    template <class Stopped>
    [[nodiscard]] bool add(slot_callback& callback, Stopped stopped) noexcept {
        stop_list& lock = further_lock();
        const stop_list::flags bits = lock.lock();
        bool added = !stopped();
        if (added) {
            const std::uintptr_t newest = word_.load(relaxed);  // relaxed, as all under the lock
            link(callback, newest);
            // edge stop.flag (seq_cst): the registration before the flag; pairs with is_empty
            word_.store(address(callback), seq_cst);
            added = !stopped() || planted("further.no_second_look");
            if (!added) word_.store(newest, relaxed);
        }
        lock.unlock(bits);
        return added;
    }

    // Ends the registration of a callback that is in no slot. Blocks: while it runs on another
    // thread.
    [[gnu::noinline, gnu::cold]] static void remove(slot_callback& callback) noexcept {
        // edge stop.done (acquire): the callback has returned
        std::uintptr_t seen = callback.home.load(acquire);
        if (is_linked(seen)) {
            stop_list& lock = further_lock();
            const stop_list::flags bits = lock.lock();
            // edge stop.done (acquire): the callback has returned, which needs no lock
            seen = callback.home.load(acquire);
            if (is_linked(seen)) {
                chain_of(callback).unlink(callback, lock, bits);
                return;
            }
            lock.unlock(bits);
        }
        if (seen != running) return;
        running_request* const request = running_request::forget_callback(&callback);
        if (request != nullptr) {
            request->further()->hand_on(*request);
        } else if (!planted("further.do_not_wait")) {
            callback_sleepers().wait_while(callback.home, running);
        }
    }

    // What follows is the requester's.

    bool is_empty() const noexcept {
        // edge stop.flag (seq_cst): the flag before the further callbacks; pairs with add
        return !has_callback(word_.load(seq_cst));
    }
    // Claims the newest callback to run it; nullptr if there is none.
    [[nodiscard]] slot_callback* claim() noexcept {
        if (is_empty()) return nullptr;
        stop_list& lock = further_lock();
        const stop_list::flags bits = lock.lock();
        slot_callback* const callback = pop();
        lock.unlock(bits);
        return callback;
    }
    // The callback has returned. Lifetime: touches nothing after its store.
    static void finish(slot_callback& callback) noexcept {
        callback.home.store(done, release);  // edge stop.done (release): the callback has returned
        callback_sleepers().wake(callback.home);
    }

    // Marks the chain, if there is one; see way_back.hpp, also for the next.
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
        watcher_.write(nullptr);  // it is here
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

    // For the source's destructor, before that of its slots. If this is one of the callbacks here,
    // request_stop() shall not touch the source again, and the callback's destructor, should it
    // come later, neither. If it is a slot's callback, the slots see to that.
    bool was_used() const noexcept {
        return word_.load(relaxed) != unused;
    }  // the last owner looks
    [[gnu::noinline, gnu::cold]] void check_end(const void* source,
                                                std::uintptr_t slots) const noexcept {
        COPPICE_CHECK(!has_callback(word_.load(relaxed)),
                      "a stop source was destroyed while a callback was registered");
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
    // In a callback's home, besides slot_callback::elsewhere, which is in all of these:
    static constexpr std::uintptr_t last = 4;  // or-ed to the address of the chain
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
    // What the word is when the callback with this home was the newest one, and leaves.
    static std::uintptr_t next_of(std::uintptr_t home) noexcept {
        return (home & last) != 0 ? empty : home & ~states;
    }

    // The rest is under the lock.
    void link(slot_callback& callback, std::uintptr_t newest) const noexcept {
        const std::uintptr_t next =
            has_callback(newest) ? newest & ~states : reinterpret_cast<std::uintptr_t>(this) | last;
        callback.home.store(next | slot_callback::elsewhere, relaxed);
    }
    static further_callbacks& chain_of(const slot_callback& callback) noexcept {
        std::uintptr_t home = callback.home.load(relaxed);
        while ((home & last) == 0) home = at(home)->home.load(relaxed);
        return *reinterpret_cast<further_callbacks*>(home & ~states);
    }
    [[nodiscard]] slot_callback* pop() noexcept {
        const std::uintptr_t word = word_.load(relaxed);
        if (!has_callback(word)) return nullptr;
        slot_callback* const callback = at(word);
        const std::uintptr_t next = next_of(callback->home.load(relaxed));
        word_.store(next, relaxed);
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
    // Unlocks.
    void unlink(slot_callback& callback, stop_list& lock, stop_list::flags bits) noexcept {
        const std::uintptr_t home = callback.home.load(relaxed);
        const std::uintptr_t word = word_.load(relaxed);
        bool lost_mark = false;
        if (at(word) == &callback) {
            lost_mark = (word & watched) != 0 && (home & last) != 0;
            word_.store(next_of(home) | (lost_mark ? 0 : word & watched), relaxed);
        } else {
            slot_callback* before = at(word);
            while (at(before->home.load(relaxed)) != &callback) {
                before = at(before->home.load(relaxed));
            }
            before->home.store(home, relaxed);
        }
        const bool say_farewell = lost_mark && !watcher_.read()->cut_off();
        if (say_farewell) word_.store(farewell, relaxed);
        lock.unlock(bits);
        if (!say_farewell) return;
        // edge stop.left (acquire): all that the requester did to the source
        while (word_.load(acquire) == farewell) callback_sleepers().wait_while(word_, farewell);
    }
    // One of the further callbacks has removed itself.
    void hand_on(running_request& request) noexcept {
        request.go_away();
        if (!watch(request)) request.forget_source();
    }

    atomic<std::uintptr_t> word_{unused};       // see on top
    plain<running_request*> watcher_{nullptr};  // of the mark; guarded by the lock
};

// The slots of a source, and its further callbacks, as way_back.hpp wants them. Source has N slots:
// slot(i).
template <class Source, std::size_t N>
class slot_row {
public:
    // further: nullptr, if the source is not a tolerant one.
    slot_row(const Source& source, further_callbacks* further) noexcept
        : source_(&source), further_(further) {}
    std::size_t size() const noexcept { return N + (further_ != nullptr); }
    static std::size_t after(std::size_t i) noexcept { return i < N ? i + 1 : N; }
    [[gnu::always_inline]] bool pass_on(std::size_t k, std::size_t i,
                                        running_request& request) noexcept {
        for (; k < N; ++k) {
            if (source_->slot(k).watch()) return true;
        }
        further_callbacks* const further = request.further();
        if (further == nullptr) return false;
        settle(i);  // the chain knows its request
        return further->watch(request);
    }
    running_request* watcher(std::size_t k, std::size_t& i) const noexcept {
        running_request* request = nullptr;
        for (i = k; request == nullptr;) request = source_->slot(--i).watcher();
        return request;
    }
    void leave(std::size_t k) noexcept { source_->slot(k).leave(); }
    void wait_for_farewell(std::size_t k) noexcept { source_->slot(k).wait_for_farewell(); }
    met meet(std::size_t k, slot_callback*& callback) noexcept {
        return k == N ? further_->meet(callback) : source_->slot(k).meet(callback);
    }
    void say_farewell(std::size_t k) noexcept {
        if (k == N) {
            further_->say_farewell();
        } else {
            source_->slot(k).say_farewell();
        }
    }
    void settle(std::size_t i, running_request& request) noexcept {
        source_->slot(i).settle(request);
    }
    void settle(std::size_t i) noexcept {
        if (i != N) source_->slot(i).settle();
    }

    [[gnu::always_inline]] static void execute(claimed_callback<slot_callback> next) noexcept {
        next.callback->execute(next.callback);
    }
    [[gnu::always_inline]] claimed_callback<slot_callback> claim_from(std::size_t i) noexcept {
        for (; i != N; ++i) {
            slot_callback* const callback = source_->slot(i).claim();
            if (callback != nullptr) return {callback, i};
        }
        if (further_ == nullptr) return {};
        return {further_->claim(), i};
    }
    [[gnu::always_inline]] void finish(claimed_callback<slot_callback> former) noexcept {
        if (further_ != nullptr && former.i == N) {
            further_->finish(*former.callback);
        } else {
            source_->slot(former.i).finish();
        }
    }

private:
    const Source* source_;
    further_callbacks* further_;
};

// Ends the registration of a callback in slot i that was claimed and has not returned.
// Blocks: until it returns, unless this is inside of it.
template <class Row>
[[gnu::noinline]] void end_running(Row row, std::size_t i, callback_slot& slot,
                                   slot_callback& callback) noexcept {
    running_request* const request = running_request::forget_callback(&callback);
    if (request == nullptr) {
        slot.wait_done();
    } else {
        coppice::internal::hand_over(row, i, *request);
    }
}

// Ends the registration of a callback in slot i, after clear() has failed or while it runs.
// Blocks: while the callback runs on another thread.
template <class Row>
[[gnu::noinline]] void end_late(Row row, std::size_t i, callback_slot& slot,
                                slot_callback& callback) noexcept {
    const callback_slot::ending due = slot.end_late();
    if (due == callback_slot::ending::nothing) {
        slot.settle();
    } else if (due == callback_slot::ending::leave_watched) {
        coppice::internal::leave_watched(row, i);
    } else {
        coppice::internal::end_running(row, i, slot, callback);
    }
}

}  // namespace coppice::internal
