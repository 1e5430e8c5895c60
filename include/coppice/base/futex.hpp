// Sleeping on a word: the kernel's futex, or the model checker's wait set; used by whoever parks.
#pragma once
// A futex sleeps only while the word still holds the expected value, so a wake that comes between
// the check and the sleep is not lost. Callers loop: every wait may return early. Words of eight
// bytes are waited on by their low half. No edge rides on these calls: what a sleeper needs to see,
// it loads from the word with its own named order after waking.

#include <coppice/base/atomic.hpp>

#if !defined(COPPICE_MODEL)

#include <cerrno>
#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace coppice::internal {

template <class T>
inline const std::uint32_t* futex_address(const atomic<T>& word) noexcept {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half must come first");
    return reinterpret_cast<const std::uint32_t*>(&word);
}

// Sleeps while the low 32 bits of `word` equal those of `expected`. Blocks: until woken, a signal,
// or at once if the value differs. Cost: one system call.
template <class T>
inline void futex_wait(const atomic<T>& word, T expected) noexcept {
    ::syscall(SYS_futex, futex_address(word), FUTEX_WAIT_PRIVATE,
              static_cast<std::uint32_t>(expected), nullptr, nullptr, 0);
}

// The same, at most until the monotonic time `nanoseconds` (absolute). False: the time has come.
template <class T>
inline bool futex_wait_until(const atomic<T>& word, T expected, std::int64_t nanoseconds) noexcept {
    timespec until{};
    until.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000);
    until.tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000);
    const long outcome = ::syscall(SYS_futex, futex_address(word), FUTEX_WAIT_BITSET_PRIVATE,
                                   static_cast<std::uint32_t>(expected), &until, nullptr,
                                   FUTEX_BITSET_MATCH_ANY);
    return !(outcome == -1 && errno == ETIMEDOUT);
}

// Wakes at most one sleeper. The word may already be gone: only its address is used.
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

#include <utility>

namespace coppice::internal {

// The simulated kernel's table of sleepers. A model's test owns one and installs it (model.hpp).
// Its mutex orders waker and sleeper, as the kernel's bucket lock does.
class model_futexes {
public:
    static model_futexes*& current() {
        static model_futexes* table = nullptr;
        return table;
    }
    template <class StillEqual>
    void wait(const void* word, StillEqual equal, source_point at) {
        mutex_.lock(at.info);
        // Looked up first: the wake must find the entry as soon as the mutex is free.
        rl::condition_variable_any& sleepers = entry(word);
        if (equal()) sleepers.wait(mutex_, at.info);
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
inline void futex_wake_one(const atomic<T>& word, source_point at = {}) {
    model_futexes::current()->wake(&word, false, at);
}
template <class T>
inline void futex_wake_all(const atomic<T>& word, source_point at = {}) {
    model_futexes::current()->wake(&word, true, at);
}

}  // namespace coppice::internal

#endif
