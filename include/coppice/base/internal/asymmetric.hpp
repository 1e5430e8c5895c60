// A pair of fences whose frequent side is free; for sleepers and rarely stopped sources.
#pragma once
// Dekker's pattern (write mine, then read yours) needs a full fence on both sides. If one side is
// frequent and the other rare, the rare side can pay for both: membarrier(2) makes every running
// thread of the process execute a full fence. The frequent side then only has to keep its compiler
// from reordering.
//
//   frequent:  write A; light_fence(); read B          rare:  write B; heavy_fence(); read A
//
// Proof, either-or: on the frequent thread, the membarrier falls before its write of A or after it.
// If after, the rare thread's read sees A. If before, the read of B comes after the barrier, hence
// after the write of B, and sees it. Two light fences do not order each other, and the model
// checker's twin below promises no more than that.
//
// If membarrier is missing (an old kernel, a seccomp filter), or until it is registered at
// start-up, light_fence() is a full fence. The two sides cannot disagree about that: light_fence()
// is free only once registration has succeeded, and heavy_fence() first waits for that decision.

#include <coppice/base/internal/atomic.hpp>

#if !defined(COPPICE_MODEL)

namespace coppice::internal {

// Written once, by the first thread that asks; read by all threads. No other data depends on it.
extern atomic<bool> light_fence_is_free;

// The frequent side. Threads: any. Blocks: never. Cost: a load of a constant and a branch.
inline void light_fence() noexcept {
    if (light_fence_is_free.load(relaxed)) [[likely]] {
        asm volatile("" ::: "memory");
    } else {
        fence(seq_cst);
    }
}

// Returns true if light fences are free in this process; never changes. Threads: any. Blocks:
// never.
bool light_fences_are_free() noexcept;

// The frequent side, for a caller that knows the answer already. Cost: nothing at run time.
struct known_to_be_free {};
inline void light_fence(known_to_be_free) noexcept {
    asm volatile("" ::: "memory");
}

// The rare side. Threads: any. Blocks: never. Cost: a system call of some microseconds.
void heavy_fence() noexcept;

}  // namespace coppice::internal

#else  // COPPICE_MODEL

namespace coppice::internal {

// Two words through which a heavy fence orders itself with heavy and light fences; light fences do
// not order each other. The test of a model owns one and installs it (model.hpp).
//   light: publishes in `lights`, then acquires what heavy fences published in `heavies`.
//   heavy: publishes in `heavies`, then acquires what light fences published in `lights`.
class model_fences {
public:
    static model_fences*& current() {
        static model_fences* fences = nullptr;
        return fences;
    }
    // False simulates a system without membarrier. Written before any thread fences.
    bool light_is_free = true;

    void light(source_point at) {
        lights_.fetch_add(1, release, at);
        heavies_.fetch_add(0, acquire, at);
    }
    void heavy(source_point at) {
        heavies_.fetch_add(1, acq_rel, at);
        lights_.fetch_add(0, acq_rel, at);
    }

private:
    atomic<unsigned> lights_{0};
    atomic<unsigned> heavies_{0};
};

inline bool light_fences_are_free() {
    return model_fences::current()->light_is_free;
}
inline void light_fence(source_point at = {}) {
    if (!light_fences_are_free()) return fence(seq_cst, at);
    if (!model_mutation::current().covers(at)) model_fences::current()->light(at);
}
struct known_to_be_free {};
inline void light_fence(known_to_be_free, source_point at = {}) {
    if (light_fences_are_free()) light_fence(at);
}
inline void heavy_fence(source_point at = {}) {
    if (!light_fences_are_free()) return fence(seq_cst, at);
    if (!model_mutation::current().covers(at)) model_fences::current()->heavy(at);
}

}  // namespace coppice::internal

#endif
