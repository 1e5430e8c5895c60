// failure_watch: finds a process of the job that has died or stands still, and tells the others.
#pragma once
// The processes form a ring. In each period, a thread of every process sends a beat to the next
// process. A process that has heard no beat of the previous one for so many of its own periods
// declares that it has failed, and tells all others. It counts its own periods, not time: a machine
// that was suspended with all its processes finds no failure. If the news are lost, the ring brings
// them, because a process that knows of a failure sends no beats.
//
// The thread sends beats by MPI, on a communicator of its own, also while the owner is in a call of
// MPI that waits for other processes. So MPI_THREAD_MULTIPLE is required. After a failure neither
// calls MPI again. If the owner does not come back from its call, the watch takes its place
// (takeover.hpp), and the thread that was the owner sleeps when its call returns.
//
// What MPI may access, or the thread that was the owner, is in this object. After a failure it is
// never destroyed.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/mpi/internal/namespaces.hpp>
#include <coppice/mpi/internal/takeover.hpp>

#include <mpi.h>
#include <unistd.h>
#include <cstdint>
#include <thread>
#include <vector>

namespace coppice::mpi::internal {

class engine;

class failure_watch : immovable {
public:
    // Starts the thread, which waits for begin(). Errors: std::system_error.
    failure_watch(engine& of, duration timeout);
    // Ends the thread if begin() was not called.
    ~failure_watch();

    // These are called by the owner.
    // Makes the communicator, and starts to watch. Collective: it fails at all processes if it
    // fails at one. Returns what MPI has returned, here or at another process.
    int begin() noexcept;
    // Calls `f`, a call of MPI that may wait for another process. Does not return if the watch has
    // become the owner.
    template <class F>
    int call(F f) noexcept {
        takeover_.enter();
        const int returned = f();
        while (!takeover_.leave()) ::pause();
        return returned;
    }
    // Returns true if all processes have called it. Blocks: never.
    bool have_all_come() noexcept;
    // Waits until the previous process ends too. Returns false if it has failed instead.
    bool end() noexcept;

    // Returns true if the job has other processes. Threads: any, once begin() has returned.
    bool has_others() const noexcept { return size_ > 1; }
    // Makes the watch declare this process failed. Threads: any.
    void report_failure() noexcept { is_reported_.store(true, relaxed); }  // publishes nothing
    takeover& owner_place() noexcept { return takeover_; }
    // Returns how the owner has ended, for the destructor of the engine. Blocks: until it has, and
    // for MPI_Finalize only as long as the timeout.
    takeover::ending wait_for_end() noexcept;
    void join() {
        if (thread_.joinable()) thread_.join();
    }
    // Returns true if the owner has called end(), or is about to.
    bool is_ending() const noexcept {
        // edge failure_watch.state (acquire): nothing else to see
        return state_.load(acquire) == ends;
    }

private:
    enum class what : std::int32_t { beat, farewell, failed };
    struct message {
        what kind;
        std::int32_t rank;  // that has failed
    };
    static constexpr std::uint32_t waiting = 0, watching = 1, ends = 2;  // of state_
    static constexpr int silent_max = 4;                                 // periods

    void watch() noexcept;
    bool is_due() noexcept;
    bool has_said_farewell() noexcept;
    void send(what kind) noexcept;
    void listen() noexcept;
    void take_messages() noexcept;
    void tell_others() noexcept;
    void sleep(std::uint32_t state) noexcept;

    engine* engine_;
    duration period_;
    atomic<std::uint32_t> state_{waiting};  // written by the owner; the thread sleeps on it
    takeover takeover_;
    atomic<bool> is_reported_{false};
    // Written by begin(), before the thread watches.
    MPI_Comm over_ = MPI_COMM_NULL;
    int rank_ = 0;
    int size_ = 1;
    // Used by the thread.
    message in_{};
    message out_{};
    message news_{};
    MPI_Request receiving_ = MPI_REQUEST_NULL;
    MPI_Request sending_ = MPI_REQUEST_NULL;
    std::vector<MPI_Request> telling_;
    time_point next_{};
    int silent_ = 0;             // periods since the last beat
    bool has_farewell_ = false;  // of the previous process
    int failed_ = -1;            // the rank; read by the owner after join()
    // Used by the owner.
    MPI_Request meeting_ = MPI_REQUEST_NULL;
    bool has_come_ = false;
    std::thread thread_;
};

}  // namespace coppice::mpi::internal
