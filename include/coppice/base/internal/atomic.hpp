// The seam between lock-free code and the model checker; every room includes it.
#pragma once
// Every atomic, fence, and shared plain field in coppice is named through this header; tidy_test
// bans std::atomic elsewhere. In a normal build, the names below are std's own, at no cost. With
// COPPICE_MODEL (the `model` preset), the same names belong to the relacy checker. It runs many
// interleavings and lets loads return any value that the C++ memory model allows.
//
// What the seam provides:
//   atomic<T>            std::atomic<T>; every operation spells its memory order
//   plain<T>             shared but not atomic: some edge must order its accesses, and the model
//                        checker reports a data race if none does
//   fence(order)         std::atomic_thread_fence
//   spin_hint()          the processor's pause; a scheduling point under the model
//   thread_yield()       gives up the processor, which the awaited thread may need
//   thread_slot<Tag, T>  one thread_local T per tag; per simulated thread under the model
//   planted("name")      false, at no cost; true under the model while the mutant of that name runs
//
// Mutants. A comment names each release/acquire edge, on the line of its operation or alone on the
// line above: `// edge deque.publish (release): ...`. A model may weaken an edge by name; the seam
// then runs the operations on those lines with relaxed order (tests/model/model.hpp).

#include <coppice/base/version.hpp>

#include <cstddef>
#include <cstdint>

#if !defined(COPPICE_MODEL)

#include <sched.h>
#include <atomic>

namespace coppice::internal {

template <class T>
using atomic = std::atomic<T>;

// Short names of the memory orders; every operation spells one.
using memory_order = std::memory_order;
inline constexpr memory_order relaxed = std::memory_order_relaxed;
inline constexpr memory_order acquire = std::memory_order_acquire;
inline constexpr memory_order release = std::memory_order_release;
inline constexpr memory_order acq_rel = std::memory_order_acq_rel;
inline constexpr memory_order seq_cst = std::memory_order_seq_cst;

// A field that threads share and that is not atomic. A named edge orders its accesses.
template <class T>
class plain {
public:
    constexpr plain() noexcept = default;
    constexpr explicit plain(T value) noexcept : value_(value) {}
    constexpr T read() const noexcept { return value_; }
    constexpr void write(T value) noexcept { value_ = value; }

private:
    T value_{};
};

inline void fence(memory_order order) noexcept {
    std::atomic_thread_fence(order);
}

inline void spin_hint() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

inline void thread_yield() noexcept {
    ::sched_yield();
}

// Visible, and so are Tag and T, whatever -fvisibility says: a program and the shared library have
// one slot.
template <class Tag, class T>
[[gnu::visibility("default")]] inline T& thread_slot() noexcept {
    static thread_local constinit T slot{};
    return slot;
}

// Returns true if a model has planted the mutant of that name; false outside of models.
constexpr bool planted(const char*) noexcept {
    return false;
}

}  // namespace coppice::internal

#else  // COPPICE_MODEL

#include <coppice/base/internal/atomic_model.hpp>

#endif
