// workers: a few threads of the process for blocking calls: look-ups of names, and files on epoll.
#pragma once
// All contexts of the process share two groups of threads, one for names and one for files, so that
// slow names never delay a file. A job that finds no idle thread starts one, up to the limit.
// Beyond the limit, jobs wait in a queue and run in the order in which they came. A thread that has
// been idle for a while ends. One mutex guards everything; its cost is negligible next to a
// blocking call.
//
// The process's groups are never destroyed, because a thread may still be inside getaddrinfo when
// the process exits. The child of a fork() starts with groups without threads. What the parent's
// threads were doing is lost there, so a context that had look-ups or file operations under way is
// of no use in the child.
//
// When the call of a file operation is over, the operation is posted back to its loop. An operation
// that is given up before its turn comes back without its call. An operation whose call has begun
// cannot be stopped, because the kernel uses its memory; the loop waits for it.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/intrusive.hpp>
#include <coppice/io/internal/operation.hpp>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <system_error>

namespace coppice::io::internal {

struct of_workers;  // the tag of the queue of jobs

// A blocking call for a worker.
struct job : list_hook<of_workers> {
    explicit job(void (*function)(job*) noexcept) noexcept : run(function) {}
    void (*run)(job*) noexcept;  // called on a worker; may destroy the job
};

struct worker_limits {
    std::size_t threads_max = 8;                   // at least 1
    duration idle_max = std::chrono::seconds(10);  // a thread that has no job for this long ends
};

// A group of threads that run jobs. Threads: any, for all members. Every signal is blocked on the
// workers.
class workers : immovable {
public:
    explicit workers(const worker_limits& limits = {}) noexcept : limits_(limits) {}
    // Blocks: until the jobs are done and the threads have ended.
    ~workers();

    // Runs the job once on a worker. Errors: there is no thread, and the system gives none; the job
    // will not run. Cost: takes a lock; may start a thread.
    [[nodiscard]] std::error_code run(job& work) noexcept;
    // Takes a job back. Returns true if it has not begun, and will not; false if it has begun or is
    // over. Lifetime: the job must still exist. Cost: takes a lock.
    [[nodiscard]] bool withdraw(job& work) noexcept;
    // Returns how many threads exist now.
    std::size_t threads() noexcept;

private:
    friend struct process_workers;
    bool start_thread() noexcept;
    void serve() noexcept;

    const worker_limits limits_;
    std::mutex mutex_;  // guards the members below
    // a job has come, a thread has ended, or the destructor waits
    std::condition_variable changed_;
    intrusive_list<job, of_workers> queue_;
    std::size_t queued_ = 0;   // jobs in the queue
    std::size_t idle_ = 0;     // threads that wait for a job or have just been started
    std::size_t threads_ = 0;  // all threads
    bool ending_ = false;
};

// Return the process's groups.
workers& name_workers() noexcept;
workers& file_workers() noexcept;

// A ring_operation on a file, in a form that a worker can run.
class file_operation : public ring_operation, job {
public:
    file_operation(void (*function)(operation*) noexcept, opcode what) noexcept
        : ring_operation(function, what), job(&call), back_(*this) {}
    // Hands the call to a worker. Threads: the loop's. Errors: the call will not be made.
    [[nodiscard]] std::error_code start_call() noexcept { return file_workers().run(*this); }
    // Gives the operation up: it comes back in the next turn if its call has not begun. Threads:
    // the loop's.
    void give_up() noexcept;

private:
    struct way_back : operation {
        explicit way_back(file_operation& f) noexcept : operation(&arrive), file(f) {}
        static void arrive(operation* op) noexcept;
        file_operation& file;
    };
    static void call(job* j) noexcept;
    int blocking_call() noexcept;

    way_back back_;
};

}  // namespace coppice::io::internal
