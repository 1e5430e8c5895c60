// sleepers: sleep until a word changes, free for the thread that changes it; for stop sources.
#pragma once
// A stop source has two waits, both rare: for a callback that runs on another thread, and for the
// lock of a list whose holder was preempted. The other side is frequent: the end of each callback
// and of each critical section. That end should be a plain store. It must also be the last access
// to the memory, because the thread that it releases may free the memory.
//
// So the waker cannot look for a waiter's mark in the word after its store, and a look before the
// store would be too early. Instead, sleepers are counted in a place that outlives every source:
//
//   waker:    word.store(new)  light_fence()  count == 0 ? nothing : futex wake, by address only
//   sleeper:  count + 1        heavy_fence()  word == old ? futex wait : done
//
// By the pair of fences (base/internal/asymmetric.hpp), either the sleeper reads the new word, or
// the waker reads a count of at least one and wakes. No wake-up is lost, and no timeout is needed.
// While a thread sleeps, wakers of unrelated words of the same kind make a needless system call.
// Callbacks, which may take long, and locks are therefore counted separately.

#include <coppice/base/internal/asymmetric.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/futex.hpp>
#include <coppice/base/lifetime.hpp>

#include <cstdint>

namespace coppice::internal {

class sleepers : immovable {
public:
    // Waits until the word differs from `value`, and returns the word. What its writer wrote before
    // is visible then. Blocks: until the word changes and wake() is called; spins briefly first.
    template <class T>
    [[gnu::noinline, gnu::cold]] T wait_while(const atomic<T>& word, T value) noexcept {
        for (int pauses = 1; pauses <= pauses_most; pauses *= 2) {
            // edge stop.done (acquire): the callback has returned; a lock's taker acquires there
            const T seen = word.load(acquire);
            if (seen != value) return seen;
            for (int i = 0; i != pauses; ++i) spin_hint();
        }
        return sleep_while(word, value);
    }

    // Waits as wait_while() does, without spinning.
    template <class T>
    [[gnu::noinline, gnu::cold]] T sleep_while(const atomic<T>& word, T value) noexcept {
        T seen = value;
        count_.fetch_add(1, relaxed);  // relaxed: ordered by the fence below
        if (!planted("stop.sleep_unannounced")) {
            heavy_fence();  // edge stop.sleep (heavy): counted before the word is read again
        }
        for (;;) {
            // edge stop.done (acquire): as above
            seen = word.load(acquire);
            if (seen != value) break;
            futex_wait(word, value);
        }
        count_.fetch_sub(1, relaxed);  // relaxed: too high a count only costs a system call
        return seen;
    }

    // Wakes the threads that sleep on the word. Call it after the store that changes the word; it
    // uses only the address. Blocks: never. Cost: two loads while no thread sleeps, otherwise a
    // system call.
    template <class T>
    void wake(const atomic<T>& word) noexcept {
        light_fence();  // edge stop.sleep (light): the store before the count
        if (count_.load(relaxed) != 0) [[unlikely]] {
            if (!planted("stop.forget_wake")) futex_wake_all(word);
        }
    }

    // Spins double their pauses up to this many: some microseconds in total. That is longer than a
    // critical section whose holder runs, and leaves the word to the holder most of the time.
#if defined(COPPICE_MODEL)
    static constexpr int pauses_most = 1;
#else
    static constexpr int pauses_most = 64;
#endif

private:
    // The number of threads that sleep or are about to. Written by sleepers; read by wakers.
    atomic<std::uint32_t> count_{0};
};

#if defined(COPPICE_MODEL)

// The test of a model owns and installs an object of this type.
struct stop_sleepers {
    sleepers callbacks;
    sleepers locks;
    static stop_sleepers*& current() {
        static stop_sleepers* installed = nullptr;
        return installed;
    }
};
inline sleepers& callback_sleepers() {
    return stop_sleepers::current()->callbacks;
}
inline sleepers& lock_sleepers() {
    return stop_sleepers::current()->locks;
}

#else

// Visible whatever -fvisibility says: of a program and of the shared library.
[[gnu::visibility("default")]] inline constinit sleepers sleepers_on_callbacks;
[[gnu::visibility("default")]] inline constinit sleepers sleepers_on_locks;

// Threads that wait for a callback to return.
inline sleepers& callback_sleepers() noexcept {
    return sleepers_on_callbacks;
}
// Threads that wait for the lock of a list of callbacks.
inline sleepers& lock_sleepers() noexcept {
    return sleepers_on_locks;
}

#endif

}  // namespace coppice::internal
