// futex: sleep on a word, in the kernel or in the model checker; for threads that park.
#pragma once
// A futex sleeps only while the word still holds the expected value, so a wake-up between the check
// and the sleep is not lost. Callers loop, because every wait may return early. For words of eight
// bytes, the low half is compared. These calls are no edges: a sleeper loads what it needs from the
// word after waking, with a named order of its own.

#include <coppice/base/internal/atomic.hpp>

#if !defined(COPPICE_MODEL)

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cerrno>
#include <climits>

namespace coppice::internal {

template <class T>
inline const std::uint32_t* futex_address(const atomic<T>& word) noexcept {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half must come first");
    return reinterpret_cast<const std::uint32_t*>(&word);
}

// Sleeps while the low 32 bits of `word` equal those of `expected`. Blocks: until woken or
// interrupted by a signal; not at all if the values differ. Cost: one system call.
template <class T>
inline void futex_wait(const atomic<T>& word, T expected) noexcept {
    ::syscall(SYS_futex, futex_address(word), FUTEX_WAIT_PRIVATE,
              static_cast<std::uint32_t>(expected), nullptr, nullptr, 0);
}

// Sleeps likewise, but at most until the monotonic time `nanoseconds` (absolute). Returns false if
// that time has come.
template <class T>
inline bool futex_wait_until(const atomic<T>& word, T expected, std::int64_t nanoseconds) noexcept {
    timespec until{};
    until.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
    until.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
    const long outcome =
        ::syscall(SYS_futex, futex_address(word), FUTEX_WAIT_BITSET_PRIVATE,
                  static_cast<std::uint32_t>(expected), &until, nullptr, FUTEX_BITSET_MATCH_ANY);
    return !(outcome == -1 && errno == ETIMEDOUT);
}

// Wakes at most one sleeper. The word may be gone already; only its address is used.
template <class T>
inline void futex_wake_one(const atomic<T>& word) noexcept {
    ::syscall(SYS_futex, futex_address(word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

template <class T>
inline void futex_wake_all(const atomic<T>& word) noexcept {
    ::syscall(SYS_futex, futex_address(word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace coppice::internal

#else  // COPPICE_MODEL

#include <cstdint>
#include <limits>

namespace coppice::internal {

// The simulated kernel's table of sleepers. The test of a model owns one and installs it
// (model.hpp). Its mutex orders waker and sleeper, as the lock of the kernel's bucket does.
class model_futexes {
public:
    static model_futexes*& current() {
        static model_futexes* table = nullptr;
        return table;
    }
    template <class StillEqual>
    void wait(const void* word, StillEqual equal, source_point at) {
        wait_until(word, equal, std::numeric_limits<std::int64_t>::max(), at);
    }
    // Returns false if the time has come.
    template <class StillEqual>
    bool wait_until(const void* word, StillEqual equal, std::int64_t nanoseconds, source_point at) {
        mutex_.lock(at.info);
        const bool come = time >= nanoseconds;
        // Look it up first: a wake-up must find the entry as soon as the mutex is free.
        rl::condition_variable_any& sleepers = entry(word);
        if (!come && equal()) sleepers.wait(mutex_, at.info);
        mutex_.unlock(at.info);
        return !come;
    }
    // The simulated time that has come. A sleep until then ends at once; a sleep until a later time
    // ends only by a wake-up, so a sleeper that should have looked earlier shows as a deadlock.
    std::int64_t time = 0;
    // Lets a time come: sleepers until then wake up, and others go on sleeping.
    void pass_time(std::int64_t nanoseconds, source_point at = {}) {
        mutex_.lock(at.info);
        if (nanoseconds > time) time = nanoseconds;
        for (std::size_t i = 0; i != words_max; ++i) sleepers_[i].notify_all(at.info);
        mutex_.unlock(at.info);
    }

    void wake(const void* word, bool all, source_point at) {
        mutex_.lock(at.info);
        rl::condition_variable_any& sleepers = entry(word);
        if (all) {
            sleepers.notify_all(at.info);
        } else {
            sleepers.notify_one(at.info);
        }
        mutex_.unlock(at.info);
    }

private:
    static constexpr std::size_t words_max = 8;
    rl::condition_variable_any& entry(const void* word) {
        for (std::size_t i = 0; i != words_max; ++i) {
            if (addresses_[i] == nullptr) addresses_[i] = word;
            if (addresses_[i] == word) return sleepers_[i];
        }
        RL_VERIFY(!"a model uses more futex words than model_futexes holds");
        return sleepers_[0];
    }
    rl::mutex mutex_;
    const void* addresses_[words_max]{};
    rl::condition_variable_any sleepers_[words_max];
};

template <class T>
inline void futex_wait(const atomic<T>& word, T expected, source_point at = {}) {
    model_futexes::current()->wait(
        &word, [&word, expected, at] { return word.load(relaxed, at) == expected; }, at);
}
template <class T>
inline bool futex_wait_until(const atomic<T>& word, T expected, std::int64_t nanoseconds,
                             source_point at = {}) {
    return model_futexes::current()->wait_until(
        &word, [&word, expected, at] { return word.load(relaxed, at) == expected; }, nanoseconds,
        at);
}
template <class T>
inline void futex_wake_one(const atomic<T>& word, source_point at = {}) {
    model_futexes::current()->wake(&word, false, at);
}
template <class T>
inline void futex_wake_all(const atomic<T>& word, source_point at = {}) {
    model_futexes::current()->wake(&word, true, at);
}

}  // namespace coppice::internal

#endif
