// A pair of fences of which the frequent one is free; for sleepers and sources that are rarely hit.
#pragma once
// Dekker's pattern (write mine, then look at yours) needs a full fence on both sides. Where one
// side is frequent and the other rare, the rare side can pay for both: membarrier(2) makes every
// running thread of the process execute a full fence, so the frequent side only has to keep its
// compiler from reordering.
//
//   frequent:  write A; light_fence(); read B          rare:  write B; heavy_fence(); read A
//
// Proof, either-or: the membarrier falls, on the frequent thread, before its write of A or after
// it. After: A is visible to the rare thread's read. Before: the read of B comes later than the
// barrier, hence later than the write of B, and sees it. Two light fences order nothing between
// themselves, and the model checker's twin below promises no more than that.
//
// Where membarrier is missing (an old kernel, a seccomp filter) or before it is registered at
// start-up, light_fence() is a full fence. No side can miss the other's choice: light_fence() is
// free only once registration has succeeded, and heavy_fence() waits for that decision first.

#include <coppice/base/atomic.hpp>

#if !defined(COPPICE_MODEL)

namespace coppice::internal {

// Written once, by the first thread that asks; read by everyone. Nothing rides on it.
extern atomic<bool> light_fence_is_free;

// The frequent side. Threads: any. Blocks: never. Cost: a load of a constant and a branch.
inline void light_fence() noexcept {
    if (light_fence_is_free.load(relaxed)) [[likely]] {
        asm volatile("" ::: "memory");
    } else {
        fence(seq_cst);
    }
}

// Whether light fences are free in this process, once and for all. Threads: any. Blocks: never.
bool light_fences_are_free() noexcept;

// The frequent side, by a caller that has been told so. Cost: nothing at run time.
struct known_to_be_free {};
inline void light_fence(known_to_be_free) noexcept {
    asm volatile("" ::: "memory");
}

// The rare side. Threads: any. Blocks: never. Cost: a system call of some microseconds.
void heavy_fence() noexcept;

}  // namespace coppice::internal

#else  // COPPICE_MODEL

namespace coppice::internal {

// Two words through which heavy and light fences order each other, and light ones do not. A
// model's test owns one and installs it (model.hpp).
//   light: publishes in `lights`, then acquires what heavy fences published in `heavies`.
//   heavy: publishes in `heavies`, then acquires what light fences published in `lights`.
class model_fences {
public:
    static model_fences*& current() {
        static model_fences* fences = nullptr;
        return fences;
    }
    // False: as where membarrier is missing. Written before anybody fences.
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
