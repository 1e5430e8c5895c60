// The model of the seam: the checker behind base/internal/atomic.hpp finds the faults of known
// litmus tests.
#include "model.hpp"

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* here = "tests/model/seam_model.cpp";

// Plain data is handed over by a flag.
struct message_passing : model::test<message_passing, 2> {
    plain<int> data;
    atomic<int> flag{0};
    void thread(unsigned index) {
        if (index == 0) {
            data.write(42);
            flag.store(1, release);  // edge seam.message (release): data is written
        } else {
            // edge seam.message (acquire): sees data
            if (flag.load(acquire) == 1) model::require(data.read() == 42, "the message is whole");
        }
    }
};

// Two threads each raise a flag and read the other's; at least one sees it.
struct dekker_fences : model::test<dekker_fences, 2> {
    atomic<int> raised[2];
    int seen[2];
    void before() {
        for (int i = 0; i != 2; ++i) {
            raised[i].store(0, relaxed);
            seen[i] = 0;
        }
    }
    void thread(unsigned index) {
        raised[index].store(1, relaxed);
        fence(seq_cst);  // edge seam.dekker (seq_cst): either this fence or the other's is first
        seen[index] = raised[1 - index].load(relaxed);
    }
    void after() { model::require(seen[0] + seen[1] >= 1, "both threads missed each other"); }
};

// A counter behind a compare-exchange lock. Weak exchanges may fail spuriously.
struct spin_lock : model::test<spin_lock, 3> {
    atomic<int> locked{0};
    plain<int> counter;
    void before() { counter.write(0); }
    void thread(unsigned) {
        int expected = 0;
        // edge seam.lock (acquire): sees the last holder's write
        while (!locked.compare_exchange_weak(expected, 1, acquire, relaxed)) {
            expected = 0;
            spin_hint();
        }
        counter.write(counter.read() + 1);
        locked.store(0, release);  // edge seam.lock (release): the counter is written
    }
    void after() { model::require(counter.read() == 3, "an increment was lost"); }
};

// Fetch operations count exactly, in any order.
struct fetch_operations : model::test<fetch_operations, 3> {
    atomic<unsigned> bits{0};
    atomic<int> sum{0};
    void thread(unsigned index) {
        bits.fetch_or(1u << index, relaxed);
        sum.fetch_add(2, relaxed);
        sum.fetch_sub(1, relaxed);
        bits.fetch_xor(8u << index, relaxed);
        if (!planted("seam.forget_clear")) bits.fetch_and(~(8u << index), relaxed);
    }
    void after() {
        model::require(bits.load(relaxed) == 7, "a bit was lost");
        model::require(sum.load(relaxed) == 3, "a sum was lost");
    }
};

// A sleeper is woken: the futex compares under the kernel's lock.
struct futex_sleep : model::test<futex_sleep, 2> {
    atomic<std::uint32_t> word{0};
    plain<int> data;
    void thread(unsigned index) {
        if (index == 0) {
            data.write(7);
            word.store(1, release);  // edge seam.futex (release): data is written
            if (!planted("seam.forget_wake")) futex_wake_one(word);
        } else {
            // edge seam.futex (acquire): sees data
            while (word.load(acquire) == 0) futex_wait(word, std::uint32_t{0});
            model::require(data.read() == 7, "woken before the data was there");
        }
    }
};

// A failed exchange acquires, although a successful one only releases.
struct failure_acquires : model::test<failure_acquires, 2> {
    atomic<int> slot{0};
    plain<int> data;
    void thread(unsigned index) {
        if (index == 0) {
            data.write(1);
            slot.store(1, release);  // edge seam.failed (release): data is written
        } else {
            int expected = 0;
            // edge seam.failed (acquire): a failed exchange sees data
            if (!slot.compare_exchange_strong(expected, 2, release, acquire) && expected == 1)
                model::require(data.read() == 1, "a failed exchange did not acquire");
        }
    }
};

}  // namespace

int main() {
    model::report report("seam");
    report.holds<message_passing>("message passing", {.full_search = true});
    report.holds<dekker_fences>("fences order Dekker's flags", {.full_search = true});
    report.holds<spin_lock>("a lock excludes");
    report.holds<fetch_operations>("fetch operations are exact");
    report.holds<futex_sleep>("a sleeper wakes");
    report.holds<failure_acquires>("a failed exchange acquires", {.full_search = true});
    report.dies_weakened<message_passing>(here, "seam.message");
    report.dies_weakened<dekker_fences>(here, "seam.dekker");
    report.dies_weakened<spin_lock>(here, "seam.lock");
    report.dies_planted<fetch_operations>("seam.forget_clear");
    report.dies_planted<futex_sleep>("seam.forget_wake");
    report.dies_weakened<failure_acquires>(here, "seam.failed");
    return report.finish();
}
