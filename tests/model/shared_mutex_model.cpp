// The model of async_shared_mutex: readers together, writers alone, and waiters that leave.
#include "sync_model.hpp"

#include <coppice/sync/internal/shared_mutex_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

constexpr const char* lock_file = "include/coppice/sync/internal/queue_lock.hpp";

template <lock_kind Kind>
struct request : shared_mutex_request<Kind> {
    using result = int;
    int take() noexcept { return 1; }
    int nothing() noexcept { return 0; }
};
using writer = request<lock_kind::exclusive>;
using reader = request<lock_kind::shared>;

// Two readers and two writers, one of which is stopped.
template <bool Stops>
struct readers_and_writers : stop_test<readers_and_writers<Stops>, 4 + Stops> {
    shared_mutex_core mutex;
    inplace_stop_source stop;
    blocked_wait<reader> readers[2];
    blocked_wait<writer> writers[2];
    plain<int> guarded;
    atomic<int> written{0};

    void before() {
        guarded.write(0);
        written.store(0, relaxed);
    }
    void run(unsigned index) {
        if (index == 4) {
            stop.request_stop();
        } else if (index < 2) {
            require(readers[index].run({{&mutex}}), "a wait ended without a stop");
            static_cast<void>(guarded.read());
            mutex.unlock_shared();
        } else {
            const auto token = index == 2 ? stop.get_token() : inplace_stop_token();
            if (writers[index - 2].run({{&mutex}}, token)) {
                guarded.write(guarded.read() + 1);
                written.fetch_add(1, relaxed);
                mutex.unlock();
            } else {
                require(index == 2 && Stops, "a wait ended without a stop");
            }
        }
    }
    void after() {
        require(guarded.read() == written.load(relaxed), "two writers at once");
        require(mutex.try_lock(lock_kind::exclusive), "the lock was lost");
        mutex.unlock();
    }
};

// A writer waits for a reader, and a second reader for the writer. The writer is stopped: the
// second reader goes on, though the first one keeps its lock.
struct stopped_writer : stop_test<stopped_writer, 3> {
    shared_mutex_core mutex;
    inplace_stop_source stop;
    blocked_wait<writer> waiting_writer;
    blocked_wait<reader> later_reader;

    void before() { require(mutex.try_lock(lock_kind::shared), "the mutex was not free"); }
    void run(unsigned index) {
        if (index == 0) {
            require(!waiting_writer.run({{&mutex}}, stop.get_token()), "wrote beside a reader");
        } else if (index == 1) {
            require(later_reader.run({{&mutex}}), "a wait ended without a stop");
            mutex.unlock_shared();
        } else {
            stop.request_stop();
        }
    }
    void after() {
        mutex.unlock_shared();
        require(mutex.try_lock(lock_kind::exclusive), "the lock was lost");
        mutex.unlock();
    }
};

// While a writer waits, no reader takes the lock past it.
struct no_overtaking : stop_test<no_overtaking, 2> {
    shared_mutex_core mutex;
    struct noted_writer : writer {
        void link(shared_mutex_waiter& w) noexcept {
            writer::link(w);
            linked->store(1, relaxed);
        }
        atomic<int>* linked;
    };
    blocked_wait<noted_writer> waiting_writer;
    atomic<int> linked{0};

    void before() {
        linked.store(0, relaxed);
        require(mutex.try_lock(lock_kind::shared), "the mutex was not free");
    }
    void run(unsigned index) {
        if (index == 0) {
            noted_writer wanted{{{&mutex}}, &linked};
            require(waiting_writer.run(std::move(wanted)), "a wait ended without a stop");
            mutex.unlock();
            return;
        }
        while (linked.load(relaxed) == 0) spin_hint();
        require(!mutex.try_lock(lock_kind::shared), "overtook a writer that waits");
        mutex.unlock_shared();
    }
};

// The last holder destroys the mutex.
struct destroying_writer : stop_test<destroying_writer, 2> {
    manual_lifetime<shared_mutex_core> mutex;
    blocked_wait<writer> waiter;

    void before() {
        mutex.construct();
        require(mutex.get().try_lock(lock_kind::shared), "the mutex was not free");
    }
    void run(unsigned index) {
        if (index == 0) {
            mutex.get().unlock_shared();
        } else {
            require(waiter.run({{&mutex.get()}}), "a wait ended without a stop");
            mutex.get().unlock();
            mutex.destroy();
        }
    }
};

}  // namespace

int main() {
    model::report report("shared_mutex");
    report.holds<readers_and_writers<false>>("writers are alone");
    report.holds<readers_and_writers<true>>("also when a writer is stopped", far);
    report.holds<stopped_writer>("a stopped writer lets readers go", {100'000});
    report.holds<no_overtaking>("a waiting writer goes before later readers", {50'000});
    report.holds<destroying_writer>("the last holder may destroy the mutex", {50'000});
    report.dies_weakened<readers_and_writers<false>>(lock_file, "queue_lock.fast");
    report.dies_weakened<readers_and_writers<false>>(lock_file, "queue_lock.left");
    report.dies_planted<stopped_writer>("shared_mutex.leave_without_granting", {100'000});
    report.dies_planted<no_overtaking>("shared_mutex.overtake", {100'000});
    report.dies_planted<readers_and_writers<true>>("wait.withdraw_granted", far);
    return report.finish();
}
