// workers: a few threads of the process for calls that block: names, and files on epoll.
#pragma once
// All contexts of the process share two groups, one for names and one for files, so that names that
// are slow never hold up a file. A job that finds no idle thread starts one, up to the limit;
// beyond it jobs wait in a queue, and run in the order they came. A thread that has been idle for a
// while ends. A mutex guards it all: next to a call that blocks it costs nothing.
//
// The groups of the process are never destroyed: a thread may still be inside getaddrinfo when the
// process exits. The child of a fork() begins with groups without threads; what the parent's
// threads were doing is lost there, so a context that had names or files under way is of no use in
// the child.
//
// A file operation is posted back to its loop when its call is over. One that is given up before
// its turn comes back without its call; one whose call has begun cannot be stopped, since the
// kernel uses its memory: it is waited for.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/io/operation.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <system_error>

namespace coppice::io {

namespace internal {

struct of_workers;  // the tag of the queue of jobs

// A call that blocks, for a worker.
struct job : list_hook<of_workers> {
    explicit job(void (*function)(job*) noexcept) noexcept : run(function) {}
    void (*run)(job*) noexcept;  // called on a worker; may end the job
};

struct worker_limits {
    std::size_t threads_max = 8;                   // at least 1
    duration idle_max = std::chrono::seconds(10);  // a thread without a job for so long ends
};

// Threads: all members by any. Every signal is blocked on the workers.
class workers : immovable {
public:
    explicit workers(const worker_limits& limits = {}) noexcept : limits_(limits) {}
    // Blocks: until the jobs are done and the threads have ended.
    ~workers();

    // Runs the job on a worker, once. Errors: the job will not run, since there is no thread and
    // the system gives none. Cost: takes a lock; may start a thread.
    [[nodiscard]] std::error_code run(job& work) noexcept;
    // Takes a job back. True: it has not begun, and will not. False: it has begun, or is over.
    // Lifetime: the job still exists. Cost: takes a lock.
    [[nodiscard]] bool withdraw(job& work) noexcept;
    // Threads that exist now.
    std::size_t threads() noexcept;

private:
    friend struct process_workers;
    bool start_thread() noexcept;
    void serve() noexcept;

    const worker_limits limits_;
    std::mutex mutex_;                 // guards what follows
    std::condition_variable changed_;  // a job has come, a thread has ended, or the end is near
    intrusive_list<job, of_workers> queue_;
    std::size_t queued_ = 0;   // jobs in the queue
    std::size_t idle_ = 0;     // threads that wait for a job, or have just been started
    std::size_t threads_ = 0;  // all threads
    bool ending_ = false;
};

// Those of the process.
workers& name_workers() noexcept;
workers& file_workers() noexcept;

}  // namespace internal

// A ring_operation on a file, in a form that a worker can run.
class file_operation : public ring_operation, internal::job {
public:
    file_operation(void (*function)(operation*) noexcept, opcode what) noexcept
        : ring_operation(function, what), internal::job(&call), back_(*this) {}
    // Has the call made by a worker. Threads: the loop's. Errors: it will not be made.
    [[nodiscard]] std::error_code start_call() noexcept {
        return internal::file_workers().run(*this);
    }
    // Nobody wants it any more: comes back in the next turn if its call has not begun. Threads: the
    // loop's.
    void give_up() noexcept;

private:
    struct way_back : operation {
        explicit way_back(file_operation& f) noexcept : operation(&arrive), file(f) {}
        static void arrive(operation* op) noexcept;
        file_operation& file;
    };
    static void call(internal::job* j) noexcept;
    int blocking_call() noexcept;

    way_back back_;
};

}  // namespace coppice::io
