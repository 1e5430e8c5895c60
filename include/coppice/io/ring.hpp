// ring: the only seam between a context and the operating system.
#pragma once
// A ring starts operations and delivers their results. It has three forms: uring.cpp, epoll.cpp,
// and sim.cpp, which is the epoll ring over a simulated kernel. A context chooses one at its start.
// All calls but wake() come from the loop's thread.

#include <coppice/base/clock.hpp>
#include <coppice/base/internal.hpp>
#include <coppice/base/result.hpp>
#include <coppice/io/buffer.hpp>
#include <coppice/io/operation.hpp>
#include <coppice/io/system_calls.hpp>
#include <coppice/io/uring_calls.hpp>

#include <memory>
#include <optional>

namespace coppice::io {

enum class backend { automatic, uring, epoll, sim };  // automatic: uring if it is there, else epoll
class simulation;

class context;

namespace internal {

class ring : immovable {
public:
    // The kernel touches no operation's memory any more when this returns.
    virtual ~ring() = default;
    virtual backend kind() const noexcept = 0;

    // What this ring's operating system does at once, and its time.
    virtual system_calls& system() noexcept = 0;
    virtual const clock& time() const noexcept = 0;

    // The calling thread is about to use the ring; called before anything else, each time a loop
    // starts. True: the ring was another thread's, and what is pending in `loop` has been started
    // anew for this one.
    virtual bool enter(context& loop) noexcept = 0;

    // Takes an open descriptor in. The error leaves the descriptor the caller's.
    virtual std::error_code attach(descriptor& d, bool waits) noexcept = 0;
    // Starts an operation on an attached descriptor. True: it ended at once and `result` is set;
    // complete() will not be called. False: complete() will be called from poll().
    virtual bool start(ring_operation& op) noexcept = 0;
    // Ends a pending operation early if that is still possible: it completes from poll(), with
    // -ECANCELED or with its result.
    virtual void cancel(ring_operation& op) noexcept = 0;
    // Whether the ring has taken bytes, the end or an error from an attached descriptor's file that
    // no operation asked for.
    virtual bool has_received(int) const noexcept { return false; }
    // The descriptor has no pending operation left: closes its file.
    virtual void detach(descriptor& d) noexcept = 0;

    // Delivers what has completed, calling complete() for each. Blocks: until something completes,
    // wake() is called or `until` passes; not at all without a time to wait for.
    virtual void poll(std::optional<time_point> until) noexcept = 0;
    // Waits for completions without a deadline.
    static constexpr time_point forever = time_point::max();
    // Makes the poll() that waits, or the next one, return. Threads: any.
    virtual void wake() noexcept = 0;
};

}  // namespace internal

// Errors: std::system_error when the kernel lacks or forbids what the ring needs.
std::unique_ptr<internal::ring> make_epoll_ring(buffer_pool& buffers);
std::unique_ptr<internal::ring> make_uring_ring(buffer_pool& buffers, internal::uring_calls& calls);
std::unique_ptr<internal::ring> make_sim_ring(buffer_pool& buffers, simulation& world);

}  // namespace coppice::io
