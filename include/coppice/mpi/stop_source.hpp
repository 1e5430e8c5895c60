// stop_source: a stop that any process of a communicator requests, and that reaches all of them.
#pragma once
//   mpi::stop_source stop(world);                                  // in every process
//   co_await work() | ex::write_env(ex::prop(get_stop_token, stop.get_token()));
//   stop.request_stop();                                           // in any process
//
// A process that requests a stop sends each other one a message. All listen for these messages as
// long as the source exists. At its end the processes agree how many have requested a stop, and
// each waits for the messages that are still on their way.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/exec/scope.hpp>
#include <coppice/mpi/communicator.hpp>
#include <coppice/mpi/internal/service.hpp>
#include <coppice/stop/inplace.hpp>
#include <coppice/task/task.hpp>

namespace coppice::mpi {

// The part of a stop source that a process has. Use it for a stop of the whole job, or of the
// processes of a part of it. Once requested, a stop stays; make another source for the next one.
//
// If the environment watches for failures, and a process of the job fails, the stop is requested in
// all others: a process cannot hear a request any longer.
//
// Lifetime: the environment outlives it, and it outlives the use of its tokens. Cost: while it
// exists, the environment looks for messages at least once in 1 ms; a stop costs the process that
// requests it a message to each other one.
class stop_source : immovable {
public:
    // Collective. Blocks: as communicator::duplicate(). Errors: std::system_error; std::bad_alloc,
    // after which the process has started nothing, and may make a source again, for which the
    // others wait. Threads: any but the environment's own.
    explicit stop_source(const communicator& over);
    // Collective. Requests no stop. Blocks: until all processes have come as far, or one has
    // failed. Threads: as the constructor.
    ~stop_source();

    // Returns the token of this process. Threads: any.
    inplace_stop_token get_token() const noexcept { return source_.get_token(); }
    // Returns true once a stop was requested here, or a request of another process has come.
    // Threads: any.
    bool stop_requested() const noexcept { return source_.stop_requested(); }

    // Requests the stop in all processes, and returns true; does nothing and returns false if it
    // was requested before. Runs the callbacks of this process on this thread. Those of another one
    // run on the environment's thread there, soon: up to 1 ms late if it has long been idle, and
    // later if it waits in duplicate() or for a window. So callbacks must be short, and must not
    // block. Two processes may both request the stop, at the same time.
    //
    // A stop is a request, and no process waits for the others here. Threads: any. Blocks: while
    // the callbacks of this process run. Cost: no allocation.
    bool request_stop() noexcept;

private:
    task<> serve(task<> until_interrupted, task<> tells, task<> until_all_heard);
    task<> listen(inplace_stop_token end);
    task<> tell_and_agree();

    inplace_stop_source source_;           // of the program
    inplace_stop_source interrupt_;        // of this process's request, or its end
    inplace_stop_source all_heard_;        // nothing is on its way any longer
    internal::atomic<bool> asked_{false};  // a stop was requested here
    // Used by the service.
    int heard_ = 0;
    int expected_ = -1;  // the requests of other processes, once they have agreed
    execution::counting_scope scope_;
    internal::service service_{
        serve(listen(interrupt_.get_token()), tell_and_agree(), listen(all_heard_.get_token()))};
    communicator own_;
};

}  // namespace coppice::mpi
