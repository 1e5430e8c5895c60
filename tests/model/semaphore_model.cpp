// The model of async_semaphore: permits are conserved, and a large request is not overtaken.
#include "sync_model.hpp"

#include <coppice/sync/internal/semaphore_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;

constexpr const char* lock_file = "include/coppice/sync/internal/queue_lock.hpp";

struct request : semaphore_request {
    using result = int;
    int take() noexcept { return 1; }
    int nothing() noexcept { return 0; }
};

// Requests for one or two of two permits. A holder of both is alone.
template <bool Stops>
struct two_permits : stop_test<two_permits<Stops>, 3 + Stops> {
    semaphore_core semaphore{2};
    inplace_stop_source stop;
    blocked_wait<request> waiters[3];
    plain<int> of_both;
    atomic<int> taken{0};

    void before() {
        of_both.write(0);
        taken.store(0, relaxed);
    }
    void run(unsigned index) {
        if (index == 3) {
            stop.request_stop();
            return;
        }
        const std::size_t n = index == 2 ? 1 : 2;
        if (!waiters[index].run({{&semaphore, n}},
                                index == 0 ? stop.get_token() : inplace_stop_token())) {
            require(index == 0 && Stops, "a wait ended without a stop");
            return;
        }
        require(taken.fetch_add(static_cast<int>(n), relaxed) + static_cast<int>(n) <= 2,
                "more permits than there are");
        if (n == 2) of_both.write(of_both.read() + 1);
        taken.fetch_sub(static_cast<int>(n), relaxed);
        semaphore.release(n);
    }
    void after() { require(semaphore.available() == 2, "a permit was lost, or made"); }
};

// While a large request waits, no try takes what it waits for.
struct no_overtaking : stop_test<no_overtaking, 2> {
    semaphore_core semaphore{1};
    struct noted_request : request {
        void link(semaphore_waiter& w) noexcept {
            request::link(w);
            linked->store(1, relaxed);
        }
        atomic<int>* linked;
    };
    blocked_wait<noted_request> large;
    atomic<int> linked{0};

    void before() { linked.store(0, relaxed); }
    void run(unsigned index) {
        if (index == 0) {
            noted_request wanted{{{&semaphore, 2}}, &linked};
            require(large.run(std::move(wanted)), "a wait ended without a stop");
            semaphore.release(2);
            return;
        }
        while (linked.load(relaxed) == 0) spin_hint();
        require(!semaphore.try_acquire(1), "overtook a request that waits");
        semaphore.release(1);
    }
    void after() { require(semaphore.available() == 2, "a permit was lost, or made"); }
};

// A granted waiter destroys the semaphore while the releasing thread may be inside.
struct destroying_waiter : stop_test<destroying_waiter, 2> {
    manual_lifetime<semaphore_core> semaphore;
    blocked_wait<request> waiter;

    void before() { semaphore.construct(std::size_t(0)); }
    void run(unsigned index) {
        if (index == 0) {
            semaphore.get().release(1);
        } else {
            require(waiter.run({{&semaphore.get(), 1}}), "a wait ended without a stop");
            semaphore.destroy();
        }
    }
};

// A large request at the head is stopped: the small one behind it goes on.
struct stopped_head : stop_test<stopped_head, 3> {
    semaphore_core semaphore{1};
    inplace_stop_source stop;
    blocked_wait<request> large;
    blocked_wait<request> small;

    void run(unsigned index) {
        if (index == 0) {
            require(!large.run({{&semaphore, 2}}, stop.get_token()), "got what is not there");
        } else if (index == 1) {
            require(small.run({{&semaphore, 1}}), "a wait ended without a stop");
        } else {
            stop.request_stop();
        }
    }
    void after() { require(semaphore.available() == 0, "a permit was made"); }
};

}  // namespace

int main() {
    model::report report("semaphore");
    report.holds<two_permits<false>>("permits are conserved");
    report.holds<two_permits<true>>("also with a stop", far);
    report.holds<no_overtaking>("a large request is not overtaken", {50'000});
    report.holds<stopped_head>("a stopped request lets the ones behind it go", {100'000});
    report.holds<destroying_waiter>("a waiter may destroy the semaphore", {50'000});
    report.dies_weakened<two_permits<false>>(lock_file, "queue_lock.fast");
    report.dies_weakened<two_permits<false>>(lock_file, "queue_lock.left");
    report.dies_planted<stopped_head>("semaphore.leave_without_granting", {100'000});
    report.dies_planted<no_overtaking>("semaphore.overtake", {100'000});
    report.dies_planted<two_permits<false>>("semaphore.grant_for_free");
    report.dies_planted<two_permits<true>>("wait.withdraw_granted", far);
    return report.finish();
}
