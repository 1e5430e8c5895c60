// The threads of io/internal/workers.hpp, and the calls that they make on files.
#include <coppice/io/internal/workers.hpp>

#include <coppice/base/internal/check.hpp>
#include <coppice/io/context.hpp>

#include <pthread.h>
#include <signal.h>
#include <unistd.h>
#include <cerrno>
#include <exception>
#include <memory>
#include <new>
#include <thread>

namespace coppice::io {

using namespace internal;

workers::~workers() {
    std::unique_lock lock(mutex_);
    ending_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return threads_ == 0; });
}

std::error_code workers::run(job& work) noexcept {
    const std::lock_guard lock(mutex_);
    queue_.push_back(work);
    ++queued_;
    if (queued_ <= idle_) {
        changed_.notify_one();
    } else if (threads_ < limits_.threads_max && !start_thread() && threads_ == 0) {
        decltype(queue_)::erase(work);
        --queued_;
        return std::make_error_code(std::errc::resource_unavailable_try_again);
    }
    return {};
}

bool workers::withdraw(job& work) noexcept {
    const std::lock_guard lock(mutex_);
    if (!work.linked()) return false;
    decltype(queue_)::erase(work);
    --queued_;
    return true;
}

std::size_t workers::threads() noexcept {
    const std::lock_guard lock(mutex_);
    return threads_;
}

// Blocks every signal on a worker, because signals are the program's. A new thread inherits the
// mask that the calling thread has during the call.
bool workers::start_thread() noexcept {
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = false;
    try {
        std::thread([this] { serve(); }).detach();
        ++threads_;
        ++idle_;
        started = true;
    } catch (const std::exception&) {  // there is no thread, or no memory for one
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

// The thread counts as idle when this begins and when it ends.
void workers::serve() noexcept {
    std::unique_lock lock(mutex_);
    for (;;) {
        const bool wanted = changed_.wait_for(lock, limits_.idle_max,
                                              [this] { return ending_ || !queue_.empty(); });
        job* const work = queue_.pop_front();
        if (work == nullptr) {
            if (wanted && !ending_) continue;
            break;
        }
        --queued_;
        --idle_;
        lock.unlock();
        work->run(work);  // may destroy the job
        lock.lock();
        ++idle_;
    }
    --idle_;
    --threads_;
    // Under the lock: the destructor may return as soon as this thread has released it.
    if (ending_) changed_.notify_all();
}

// ---- The groups of the process ------------------------------------------------------------------

namespace internal {

// Never destroyed, because threads may be inside a call when the process exits.
struct process_workers {
    process_workers() noexcept { ::pthread_atfork(&before_fork, &in_parent, &in_child); }

    static process_workers& get() noexcept {
        alignas(process_workers) static std::byte place[sizeof(process_workers)];
        static process_workers& all = *::new (static_cast<void*>(place)) process_workers;
        return all;
    }
    static void before_fork() noexcept {
        get().names.mutex_.lock();
        get().files.mutex_.lock();
    }
    static void in_parent() noexcept {
        get().files.mutex_.unlock();
        get().names.mutex_.unlock();
    }
    // In a child, the threads belong to the parent, and so do the jobs that they would have run.
    static void in_child() noexcept {
        for (workers* const w : {&get().files, &get().names}) {
            while (w->queue_.pop_front() != nullptr) {
            }
            w->queued_ = w->idle_ = w->threads_ = 0;
            std::construct_at(&w->changed_);  // threads of the parent wait in the old one
            w->mutex_.unlock();
        }
    }

    workers names;
    workers files;
};

workers& name_workers() noexcept {
    return process_workers::get().names;
}

workers& file_workers() noexcept {
    return process_workers::get().files;
}

}  // namespace internal

// ---- Files ------------------------------------------------------------------------------------

void file_operation::call(job* j) noexcept {
    file_operation& self = *static_cast<file_operation*>(j);
    self.result = self.blocking_call();
    self.on->owner->post(self.back_);  // the loop may destroy self before this returns
}

void file_operation::give_up() noexcept {
    if (!file_workers().withdraw(*this)) return;  // the kernel uses its memory, or the call is over
    result = -ECANCELED;
    on->owner->post(back_);
}

int file_operation::blocking_call() noexcept {
    for (;;) {
        const auto at = static_cast<off_t>(offset);
        const long outcome = code == opcode::read_at    ? ::pread(on->fd, data, size, at)
                             : code == opcode::write_at ? ::pwrite(on->fd, data, size, at)
                                                        : ::fsync(on->fd);
        if (outcome >= 0) return static_cast<int>(outcome);
        if (errno != EINTR) return -errno;
    }
}

void file_operation::way_back::arrive(operation* op) noexcept {
    ring_operation& file = static_cast<way_back*>(op)->file;
    file.on->owner->finish(file);
}

}  // namespace coppice::io
