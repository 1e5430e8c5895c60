// The model checker's half of atomic.hpp, the only header that includes it; not installed.
#pragma once
// Wraps relacy (Debian's relacy-dev) so that library code compiles unchanged. relacy.hpp itself is
// not included, because it redefines `new`, `assert`, and the memory orders as macros.
//
// Differences from the normal build, each stricter or documented:
//   - A compare_exchange whose failure order is stronger than relacy accepts for its success order
//     runs with a relaxed failure order and an acquire fence after a failure, which means the same.
//   - Operations on the lines of a weakened edge run relaxed; see model_mutation.

#include <cstring>
#include <new>
#include <source_location>
#include <string_view>
#include <type_traits>

#include <relacy/atomic.hpp>
#include <relacy/atomic_fence.hpp>
#include <relacy/backoff.hpp>
#include <relacy/base.hpp>
#include <relacy/context.hpp>
#include <relacy/context_base_impl.hpp>
#include <relacy/stdlib/condition_variable.hpp>
#include <relacy/stdlib/event.hpp>
#include <relacy/stdlib/mutex.hpp>
#include <relacy/stdlib/semaphore.hpp>
#include <relacy/test_suite.hpp>
#include <relacy/var.hpp>
#undef $

namespace coppice::internal {

// The place of an operation in the source, taken at the call, so that edges are found by line.
struct source_point {
    rl::debug_info info;
    source_point(std::source_location at = std::source_location::current())
        : info(at.function_name(), at.file_name(), at.line()) {}
};

// The planted fault of the running model, if any. Written by the model's driver between runs.
struct model_mutation {
    static constexpr std::size_t lines_max = 64;
    struct line {
        const char* file;  // from the project's root; the compiler may put more in front
        unsigned number;
    };
    const char* planted = nullptr;  // the name given to planted()
    std::size_t line_count = 0;     // lines whose operations run relaxed
    line lines[lines_max];
    bool touched = false;  // an operation was weakened, or planted() returned true

    static model_mutation& current() {
        static model_mutation mutation;
        return mutation;
    }
    bool covers(const source_point& at) {
        for (std::size_t i = 0; i != line_count; ++i) {
            if (lines[i].number == static_cast<unsigned>(at.info.line_) &&
                std::string_view(at.info.file_).ends_with(lines[i].file)) {
                touched = true;
                return true;
            }
        }
        return false;
    }
};

using memory_order = rl::memory_order;
inline constexpr memory_order relaxed = rl::mo_relaxed;
inline constexpr memory_order acquire = rl::mo_acquire;
inline constexpr memory_order release = rl::mo_release;
inline constexpr memory_order acq_rel = rl::mo_acq_rel;
inline constexpr memory_order seq_cst = rl::mo_seq_cst;

inline memory_order weakened(memory_order order, const source_point& at) {
    return model_mutation::current().covers(at) ? relaxed : order;
}

inline void fence(memory_order order, source_point at = {}) {
    if (!model_mutation::current().covers(at)) rl::atomic_thread_fence(order, at.info);
}

template <class T>
class atomic {
public:
    // The library's objects have constexpr constructors, and the checker's have none. A model
    // constructs no object at compile time.
    constexpr atomic() noexcept {
        if (!std::is_constant_evaluated()) new (&value_) rl::atomic<T>();
    }
    constexpr atomic(T value) noexcept {
        if (!std::is_constant_evaluated()) new (&value_) rl::atomic<T>(value);
    }
    ~atomic() { value_.~atomic_of(); }
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;

    T load(memory_order order, source_point at = {}) const {
        return value_.load(weakened(order, at), at.info);
    }
    void store(T value, memory_order order, source_point at = {}) {
        value_.store(value, weakened(order, at), at.info);
    }
    T exchange(T value, memory_order order, source_point at = {}) {
        return value_.exchange(value, weakened(order, at), at.info);
    }
    T fetch_add(T value, memory_order order, source_point at = {}) {
        return value_.fetch_add(value, weakened(order, at), at.info);
    }
    T fetch_sub(T value, memory_order order, source_point at = {}) {
        return value_.fetch_sub(value, weakened(order, at), at.info);
    }
    T fetch_and(T value, memory_order order, source_point at = {}) {
        return value_.fetch_and(value, weakened(order, at), at.info);
    }
    T fetch_or(T value, memory_order order, source_point at = {}) {
        return value_.fetch_or(value, weakened(order, at), at.info);
    }
    T fetch_xor(T value, memory_order order, source_point at = {}) {
        return value_.fetch_xor(value, weakened(order, at), at.info);
    }
    bool compare_exchange_strong(T& expected, T desired, memory_order success, memory_order failure,
                                 source_point at = {}) {
        return exchanged(expected, desired, weakened(success, at), weakened(failure, at), at,
                         [this, &expected, desired, at](memory_order ok, memory_order lost) {
                             return value_.compare_exchange_strong(expected, desired, ok, at.info,
                                                                   lost, at.info);
                         });
    }
    bool compare_exchange_weak(T& expected, T desired, memory_order success, memory_order failure,
                               source_point at = {}) {
        return exchanged(expected, desired, weakened(success, at), weakened(failure, at), at,
                         [this, &expected, desired, at](memory_order ok, memory_order lost) {
                             return value_.compare_exchange_weak(expected, desired, ok, at.info,
                                                                 lost, at.info);
                         });
    }

private:
    template <class Exchange>
    static bool exchanged(T&, T, memory_order success, memory_order failure, const source_point& at,
                          Exchange exchange) {
        const bool allowed = failure == relaxed || success == seq_cst ||
                             ((success == acq_rel || success == acquire) && failure == acquire);
        if (allowed) return exchange(success, failure);
        if (exchange(success, relaxed)) return true;
        rl::atomic_thread_fence(failure == seq_cst ? rl::mo_seq_cst : rl::mo_acquire, at.info);
        return false;
    }

    using atomic_of = rl::atomic<T>;
    union {
        mutable atomic_of value_;
    };
};

template <class T>
class plain {
public:
    plain() = default;
    explicit plain(T value, source_point at = {}) { write(value, at); }
    // Destruction writes, so the checker reports a thread that still reads.
    ~plain() { write(T{}); }
    plain(const plain&) = delete;
    plain& operator=(const plain&) = delete;
    T read(source_point at = {}) const { return value_(at.info).load(); }
    void write(T value, source_point at = {}) { value_(at.info).store(value); }

private:
    mutable rl::var<T> value_;
};

inline void spin_hint(source_point at = {}) {
    rl::yield(1, at.info);
}
inline void thread_yield(source_point at = {}) {
    rl::yield(1, at.info);
}

// One slot per simulated thread. The driver clears nothing: a slot must be T{} again when a run
// ends.
template <class Tag, class T>
inline T& thread_slot() {
    static T slots[16]{};
    return slots[rl::ctx().threadx_->index_];
}

inline bool planted(const char* name) {
    model_mutation& mutation = model_mutation::current();
    if (mutation.planted == nullptr || std::strcmp(mutation.planted, name) != 0) return false;
    mutation.touched = true;
    return true;
}

}  // namespace coppice::internal
