// job_inbox: how jobs reach the one thread that runs them, which sleeps meanwhile; for worker.
#pragma once
// A mailbox and a bell. The serving thread sleeps only after the mailbox has agreed, and the push
// that finds it asleep rings the bell, once for each sleep:
//
//   bell 0   not rung since the thread last woke
//   bell 1   rung: the thread clears it when it wakes, before it falls asleep again
//
// The bell carries nothing; jobs are handed over by the mailbox.
// Model: tests/model/job_inbox_model.cpp.

#include <coppice/base/atomic.hpp>
#include <coppice/base/futex.hpp>
#include <coppice/io/mailbox.hpp>

namespace coppice::io {

// Something that blocks, for the serving thread.
struct job : immovable {
    explicit job(void (*function)(job*) noexcept) noexcept : run(function) {}
    void (*run)(job*) noexcept;  // may end the job
    job* next = nullptr;         // the inbox's
};

// Threads: run() by any, serve() by one, end() by a job. Lifetime: until serve() has returned, and
// every run().
class job_inbox : immovable {
public:
    // Cost: a compare-exchange, and a system call if the thread sleeps. No allocation.
    void run(job& work) noexcept {
        // The job may run, and end, before this returns.
        if (jobs_.push(work) != mailbox<job>::pushed::wake_the_loop) return;
        if (planted("job_inbox.rings_no_bell")) return;
        bell_.store(1, relaxed);  // relaxed: the job is handed over by the mailbox
        futex_wake_one(bell_);
    }
    // Runs jobs, one after the other in the order they came, until one of them calls end().
    void serve() noexcept {
        while (!ended_) {
            for (job* j = jobs_.take(); j != nullptr;) {
                job* const next = j->next;
                j->run(j);  // may end j
                j = next;
            }
            if (ended_ || !jobs_.sleep()) continue;
            if (planted("job_inbox.clears_the_bell_asleep")) bell_.store(0, relaxed);
            // relaxed: take() follows
            while (bell_.load(relaxed) == 0) futex_wait(bell_, std::uint32_t{0});
            bell_.store(0, relaxed);  // relaxed: nobody rings before the next sleep()
        }
    }
    // serve() returns after the jobs that were there before this one.
    void end() noexcept { ended_ = true; }

private:
    mailbox<job> jobs_;              // filled by any thread
    atomic<std::uint32_t> bell_{0};  // rung by any thread, cleared by the serving one
    bool ended_ = false;             // the serving thread's
};

}  // namespace coppice::io
