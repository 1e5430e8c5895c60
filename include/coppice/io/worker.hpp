// worker: one thread of a context for calls that block: files where the ring has none, and names.
#pragma once
// Jobs run one after the other, in the order they came. A context makes its worker when the first
// job comes, and joins it at its end, after the job under way.
//
// A file operation is posted back to its loop when its call is over. One that is given up before
// its turn comes back without its call; one whose call has begun cannot be stopped, since the
// kernel uses its memory: it is waited for.

#include <coppice/base/atomic.hpp>
#include <coppice/io/job_inbox.hpp>
#include <coppice/io/operation.hpp>

#include <thread>

namespace coppice::io {

// A ring_operation on a file, in a form that the worker can run.
class file_operation : public ring_operation, job {
public:
    file_operation(void (*function)(operation*) noexcept, opcode what) noexcept
        : ring_operation(function, what), job(&call), back_(*this) {}
    // Nobody wants it any more. Threads: the loop's.
    void give_up() noexcept {
        given_up_.store(true, relaxed);  // relaxed: says only that the call is not worth making
    }

private:
    friend class worker;
    struct way_back : operation {
        explicit way_back(file_operation& f) noexcept : operation(&arrive), file(f) {}
        static void arrive(operation* op) noexcept;
        file_operation& file;
    };
    static void call(job* j) noexcept;
    int blocking_call() noexcept;

    way_back back_;
    atomic<bool> given_up_{false};
};

// Threads: run() by the loop's. Lifetime: ends before its context.
class worker : immovable {
public:
    worker();  // Errors: std::system_error if there can be no thread
    ~worker();
    void run(job& work) noexcept { jobs_.run(work); }
    void run(file_operation& work) noexcept { run(static_cast<job&>(work)); }

private:
    struct last_job : job {
        explicit last_job(worker& w) noexcept : job(&end), owner(w) {}
        static void end(job* j) noexcept { static_cast<last_job*>(j)->owner.jobs_.end(); }
        worker& owner;
    };

    job_inbox jobs_;
    last_job last_{*this};
    std::thread thread_;
};

}  // namespace coppice::io
