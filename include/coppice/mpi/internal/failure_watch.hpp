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
// calls MPI again. If the owner does not come back from its call, the watch takes its place:
//
//   outside   the owner is in no call that may wait for another process
//   inside    it is in such a call
//   taken     the watch is the owner; the thread that was it sleeps when its call returns
//
// What MPI may access, or the thread that was the owner, is in this object. After a failure it is
// never destroyed.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/mpi/internal/namespaces.hpp>

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
    // Makes the communicator, and starts to watch. Collective. Returns what MPI has returned.
    int begin() noexcept;
    // Calls `f`, a call of MPI that may wait for another process. Does not return if the watch has
    // become the owner.
    template <class F>
    int call(F f) noexcept {
        // edge failure_watch.place (release): what the owner has done
        place_.store(inside, release);
        const int returned = f();
        std::uint32_t expected = inside;
        // relaxed: success takes back what this thread has written
        if (place_.compare_exchange_strong(expected, outside, relaxed, relaxed)) return returned;
        while (true) ::pause();
    }
    // Returns true if all processes have called it. Blocks: never.
    bool have_all_come() noexcept;
    // Waits until the previous process ends too. Returns false if it has failed instead.
    bool end() noexcept;

    // Returns true if the job has other processes. Threads: any, once begin() has returned.
    bool has_others() const noexcept { return size_ > 1; }
    // Makes the watch declare this process failed. Threads: any.
    void report_failure() noexcept { is_reported_.store(true, relaxed); }  // publishes nothing
    // Makes the caller the owner if the owner is inside a call. Threads: the watch's.
    bool take_place() noexcept {
        std::uint32_t expected = inside;
        // edge failure_watch.place (acquire): sees what the owner has done
        return place_.compare_exchange_strong(expected, taken, acquire, relaxed);
    }

    // How the owner has ended, for the destructor of the engine.
    enum class ending : std::uint32_t { works, finalizes, done, done_by_watch, timed_out };
    void set_ending(ending e) noexcept;
    // Blocks: until the owner has ended, and for MPI_Finalize only as long as the timeout.
    ending wait_for_end() noexcept;
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
    static constexpr std::uint32_t outside = 0, inside = 1, taken = 2;   // of place_
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
    atomic<std::uint32_t> place_{outside};
    atomic<std::uint32_t> ending_{0};  // an `ending`; written by the owner
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
