// The model of queue_lock: the lock of a queue, the fast path beside it, and the thread that
// destroys.
#include "model.hpp"

#include <coppice/base/lifetime.hpp>
#include <coppice/sync/internal/queue_lock.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace model;

constexpr const char* header = "include/coppice/sync/internal/queue_lock.hpp";
constexpr std::uint64_t unit = queue_lock::unit;

// Threads enter; the lock orders what they do inside.
template <int Threads>
struct enter_and_leave : test<enter_and_leave<Threads>, Threads> {
    queue_lock lock{0};
    plain<int> inside;

    void before() { inside.write(0); }
    void thread(unsigned) {
        for (int i = 0; i != 2; ++i) {
            lock.lock();
            inside.write(inside.read() + 1);
            lock.set_state(lock.state() + unit);
            lock.unlock();
        }
    }
    void after() {
        require(inside.read() == 2 * Threads, "two threads were inside at once");
        require(lock.peek(relaxed) == 2 * Threads * unit, "a state was lost");
    }
};

// One thread changes the state by the fast path, the other inside the lock.
struct fast_beside_lock : test<fast_beside_lock, 2> {
    queue_lock lock{0};
    plain<int> data;
    int changed = 0;

    void before() {
        data.write(0);
        changed = 0;
    }
    void thread(unsigned index) {
        if (index == 0) {
            data.write(1);
            if (lock.try_change(0, unit)) {
                ++changed;
            } else {
                lock.lock();
                if (lock.state() == 0) lock.set_state(unit);
                lock.unlock();
            }
            return;
        }
        for (int i = 0; i != 2; ++i) {
            lock.lock();
            if (lock.state() == unit) require(data.read() == 1, "saw the state without its past");
            lock.unlock();
        }
    }
    void after() { require(lock.peek(relaxed) == unit, "a change was lost"); }
};

// Both by the fast path: what was done under a state is visible to the thread that takes it.
struct fast_and_fast : test<fast_and_fast, 2> {
    queue_lock lock{0};
    plain<int> data;

    void thread(unsigned) {
        for (int i = 0; i != 3; ++i) {
            if (!lock.try_change(0, unit)) continue;
            data.write(i);
            require(lock.try_change(unit, 0), "the state changed under its holder");
        }
    }
};

// A thread that sees the state that another one published destroys the object.
struct destroy_after_state : test<destroy_after_state, 2> {
    manual_lifetime<queue_lock> lock;

    void before() { lock.construct(std::uint64_t(0)); }
    void thread(unsigned index) {
        if (index == 0) {
            lock.get().lock();
            lock.get().set_state(unit);
            lock.get().unlock();
            return;
        }
        // Enters at times, so that the other thread has a sleeper.
        bool gone = false;
        while (!gone) {
            lock.get().lock();
            gone = lock.get().state() == unit;
            lock.get().unlock();
        }
        lock.destroy();
    }
};

}  // namespace

int main() {
    report report("queue_lock");
    report.holds<enter_and_leave<2>>("one thread at a time is inside");
    report.holds<enter_and_leave<3>>("also of three, some of which sleep", {50'000});
    report.holds<fast_beside_lock>("the fast path and the lock exclude each other", {50'000});
    report.holds<fast_and_fast>("the fast path orders what was done under a state", {50'000});
    report.holds<destroy_after_state>("leaving is the last access", {50'000});
    report.dies_weakened<enter_and_leave<2>>(header, "queue_lock.left");
    report.dies_weakened<fast_and_fast>(header, "queue_lock.fast", {50'000});
    report.dies_weakened<fast_beside_lock>(header, "queue_lock.fast", {50'000});
    report.dies_planted<enter_and_leave<3>>("queue_lock.leave_without_waking", {50'000});
    return report.finish();
}
