// engine: the thread that makes all calls of MPI, and what it waits for; the base of environment.
#pragma once
// One thread, the owner, initializes MPI, makes every call, and ends MPI. So the room needs no more
// than MPI_THREAD_FUNNELED. Other threads post their requests to it, in order, and the owner keeps
// what has started in a flat array that it passes to MPI_Testsome:
//
//   turn     runs what was posted, tests the array, looks for messages that a probe waits for,
//            ends what has passed its deadline
//   spin     after a turn in which nothing ended, goes on, for spin_time; reads the clock and
//            yields only once in turns_of_span turns; the time begins again if MPI moves data
//   doze     then sleeps between turns, for a part of how long it has waited, and for at most
//            doze_max; a post wakes it
//   sleep    without anything outstanding, sleeps until a post
//
// MPI has nothing to sleep on, so a message for a process that dozes waits for at most doze_max,
// and for at most an eighth of the time that the process has waited for it, beside what the kernel
// needs to wake a thread. Otherwise the pauses would add up in the trees of collectives over a slow
// network (docs/many-nodes.md). MPI may copy a message in one call at one process, and the other
// one sees nothing until then. So the owner spins for longer than a copy of a few MiB takes, unless
// other threads want its processor: then it spins only for spin_time_crowded.
//
// If another process fails, the owner ends all requests with an error, and does not call MPI again.
// What was started stays as it is, in memory that is never freed (lent_memory.hpp). If the owner is
// in a call that waits for another process, the thread of the failure_watch becomes the owner.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/internal/in_flight.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/io/internal/mailbox.hpp>
#include <coppice/mpi/internal/failure_watch.hpp>
#include <coppice/mpi/internal/lent_memory.hpp>
#include <coppice/mpi/internal/namespaces.hpp>
#include <coppice/token/block_latch.hpp>

#include <mpi.h>
#include <sys/types.h>
#include <unistd.h>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

namespace coppice::mpi::internal {

// What the owner runs once it has arrived.
struct operation {
    using function = void (*)(operation*) noexcept;
    explicit operation(function f) noexcept : complete(f) {}
    operation* next = nullptr;
    function complete;
};

class request;

class engine : immovable {
public:
    // Starts the owner, and MPI. Blocks: until MPI is initialized. Errors: std::system_error if MPI
    // cannot be initialized, has ended or was given up after a failure, or is used by a program in
    // a way that leaves no place for the owner; if the watch cannot begin at a process, at all. MPI
    // is then as it was before, or has ended if this has started it. std::bad_alloc: nothing has
    // started. A failure timeout of zero: no watch.
    explicit engine(duration failure_timeout);
    ~engine() { end(); }
    // Ends what can be canceled, waits for the rest, and ends MPI, unless a process has failed. A
    // second call does nothing.
    void end() noexcept;

    // Returns true on the owner.
    bool is_current() const noexcept;
    // Runs the operation on the owner. Threads: any. Blocks: never.
    void post(operation& op) noexcept;
    // Calls f() on the owner, and waits for it. Returns false if a process has failed, before f()
    // is called or while it waits for that process. Threads: any.
    template <class F>
    bool run(F f) noexcept {
        check_process();
        if (is_current()) {
            if (failed_) return false;
            f();
            return true;
        }
        called<F> call(*this, f);
        post(call);
        call.done.wait();
        return call.has_run;
    }
    // Waits for `done` in place of a token that blocks.
    void drive(block_latch& done) noexcept;
    // Returns what MPI_Init_thread has provided.
    int thread_level() const noexcept { return level_; }
    // Returns the rank in the world of a process that has failed, or -1. Threads: any.
    int failed_rank() const noexcept {
        // relaxed: a caller that got the error sees it, because it was written before
        return failed_rank_.load(relaxed);
    }
    // Ends everything with an error. Returns when the owner has done so, or is about to end. Called
    // once, by the failure_watch, which becomes the owner if need be.
    void fail(int rank) noexcept;
    // Ends what other processes of the communicator wait for, because this one cannot take part:
    // makes all environments of the job fail soon, or revokes the communicator. Returns false if
    // this one neither watches for failures nor recovers. Threads: any.
    bool report_failure(MPI_Comm over) noexcept;

    // Counts the communicators of the program, which end before this. Threads: any.
    void count_communicators(int change) noexcept {
        communicators_.fetch_add(change, relaxed);  // publishes nothing
    }

    // The rest is called by requests on the owner.
    // Returns true if a request may start before this returns: nothing that was posted before waits
    // to be started, and this turn has not started too many.
    bool may_start_here() noexcept;
    // Returns true if a request should be tested at its start: this turn has not added a handle.
    bool tests_starts() const noexcept { return tests_starts_; }
    bool is_ending() const noexcept { return ending_; }
    bool is_watched() const noexcept { return watch_ != nullptr; }
    bool has_failed() const noexcept { return failed_; }
    // Returns true if the other processes can go on when one fails. Threads: any.
    bool recovers() const noexcept { return recovers_; }
    // Ends all operations on the communicator, in all of its processes, if the engine recovers.
    void revoke(MPI_Comm over) noexcept;
    // Calls `f`, a call of MPI that may wait for another process, and is made by what was posted.
    // After a failure this does not return. The operation is run again then, sees has_failed(), and
    // may be destroyed. So `f` uses only the stack of this thread, and lent memory.
    template <class F>
    int call_waiting(F f) noexcept {
        return watch_ == nullptr ? f() : watch_->call(f);
    }
    lent_memory& lent() noexcept { return *lent_; }
    // Make sure that two handles can be added; false: no memory.
    bool reserve() noexcept {
        const std::size_t wanted = slots_.size() + polled_.size() + kept_ + 2;
        return wanted <= polled_.capacity() || grow(wanted);
    }
    // Keep what reserve() has found for the further steps of a request, and stop keeping it.
    void keep_room() noexcept { kept_ += 2; }
    void give_room_back() noexcept { kept_ -= 2; }
    // Adds a handle of the request that has not completed.
    void add(request& owner, int which, MPI_Request handle) noexcept;
    // Tries the request's start again in every turn.
    void add_polled(request& r) noexcept;
    // Ends the request, which listens for a deadline, soon after that time.
    void expect(time_point deadline) noexcept;
    // Makes the requests that have started listen for a stop, in a later turn. Most have ended by
    // then: to register with a token and to deregister takes longer than a turn.
    void listen_soon() noexcept {
        if (turns_to_listen_ == 0) turns_to_listen_ = turns_unheard;
    }
    void cancel(const request& owner, int which) noexcept;
    // While there are windows, the owner lets MPI serve other processes that access them.
    void count_windows(int change) noexcept { windows_ += change; }

private:
    template <class F>
    struct called : operation {
        called(engine& by, F& to_call) noexcept
            : operation([](operation* op) noexcept {
                  called& self = *static_cast<called*>(op);
                  self.has_run = !self.caller->failed_;
                  if (self.has_run) (*self.called_function)();
                  self.done.set();
              }),
              caller(&by),
              called_function(&to_call) {}
        engine* caller;
        F* called_function;
        bool has_run = false;
        block_latch done;
    };
    // Brings the news of a failure to the owner.
    struct failure : operation {
        explicit failure(engine& e) noexcept
            : operation(
                  [](operation* op) noexcept { static_cast<failure*>(op)->to->fail_requests(); }),
              to(&e) {}
        engine* to;
    };
    // In the order in which they ended.
    struct ended_requests {
        void add(request& r) noexcept;
        bool complete() noexcept;
        request* first = nullptr;
        request** last = &first;
    };
    struct slot {
        request* owner;
        int which;
    };
    // What the program has set for the communicators that MPI makes. They return errors meanwhile.
    struct error_handlers {
        void replace() noexcept;
        void restore() noexcept;
        MPI_Errhandler of_world = MPI_ERRHANDLER_NULL;
        MPI_Errhandler of_self = MPI_ERRHANDLER_NULL;
    };
    // A step of the start that may fail.
    enum class start_step : std::uint8_t {
        none,
        find_mpi,
        use_mpi,
        start_mpi,
        check_level,
        begin_watch
    };
    static constexpr std::int64_t spin_time = 500'000;  // in nanoseconds, as the three below
    static constexpr std::int64_t spin_time_crowded = 100'000;
    static constexpr std::int64_t yield_alone = 1'000;  // a yield to no other thread takes less
    static constexpr std::int64_t doze_max = 1'000'000;
    static constexpr int doze_part = 8;       // of the time since something has ended
    static constexpr int turns_of_span = 32;  // that spin without a look at the clock
    static constexpr int turns_without_pause = 4;
    static constexpr int turns_unheard = 8;  // before requests listen for a stop
    static constexpr int starts_max = 64;    // that complete in place, in one turn

    // A child of fork() has no owner: a call would wait forever.
    void check_process() const noexcept;
    void serve() noexcept;
    [[noreturn]] void throw_start_failure() const;
    bool initialize() noexcept;
    bool start_mpi() noexcept;
    void work() noexcept;
    void make_current() noexcept;
    void serve_in_place() noexcept;
    void fail_requests() noexcept;
    void end_watch() noexcept;
    bool turn() noexcept;
    bool test() noexcept;
    std::size_t test_some(ended_requests& ended) noexcept;
    std::size_t test_each(ended_requests& ended) noexcept;
    bool look() noexcept;
    void note(std::size_t at, const MPI_Status& status, int error, ended_requests& ended) noexcept;
    void compact() noexcept;
    void expire() noexcept;
    bool grow(std::size_t wanted) noexcept;
    void rest() noexcept;
    bool moves_data(std::int64_t took, bool has_slept) noexcept;
    void sleep_until(std::int64_t nanoseconds) noexcept;
    bool is_idle() const noexcept {
        return handles_.empty() && polled_.empty() && (windows_ == 0 || failed_);
    }
    template <class F>
    void for_each_request(F f) noexcept;

    io::internal::mailbox<operation> mail_;
    // Counts the rings of posts that found the owner asleep. Written by them, read by the owner.
    atomic<std::uint32_t> bell_{0};
    in_flight calls_;  // posts, which may still ring
    // Used by the owner only.
    operation* taken_ = nullptr;    // posted, taken, and not yet run
    operation* running_ = nullptr;  // taken, and running
    std::vector<MPI_Request> handles_;
    std::vector<slot> slots_;  // of the handle with the same index
    std::vector<int> indices_;
    std::vector<MPI_Status> statuses_;
    std::vector<request*> polled_;
    std::size_t kept_ = 0;  // handles of further steps, which have room
    time_point earliest_ = time_point::max();
    int idle_turns_ = 0;                 // of this span
    std::int64_t span_began_ = 0;        // in nanoseconds, as the three below
    std::int64_t shortest_ = spin_time;  // span that moved no data
    std::int64_t idle_since_ = 0;        // 0: the clock was not read yet
    std::int64_t doze_ = 0;              // the last one; 0: none since something has ended
    int starts_left_ = starts_max;
    bool tests_starts_ = true;
    bool is_crowded_ = false;  // other threads have run in a yield of this wait
    int turns_to_listen_ = 0;  // 0: all requests listen
    error_handlers handlers_;
    int windows_ = 0;
    bool ending_ = false;
    bool failed_ = false;  // a process has failed: MPI is not called again
    std::unique_ptr<lent_memory> lent_;
    std::unique_ptr<failure_watch> watch_;  // null: failures are not looked for
    failure news_{*this};
    atomic<int> failed_rank_{-1};  // written by the watch
    atomic<int> communicators_{0};
    const ::pid_t process_ = ::getpid();
    // Written before the constructor returns.
    int level_ = 0;
    start_step failed_step_ = start_step::none;
    std::error_code failure_;  // of that step
    bool has_ended_ = false;   // written by end()
    bool is_ours_ = false;     // we initialized MPI, so we end it
    bool recovers_ = false;    // by MPI's fault tolerance
    block_latch ready_;
    std::thread thread_;
};

}  // namespace coppice::mpi::internal
