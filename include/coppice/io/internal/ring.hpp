// ring: the only interface between a context and the operating system.
#pragma once
// A ring starts operations and delivers their results. There are three: uring.cpp, epoll.cpp, and
// sim.cpp, which is the epoll ring over a simulated kernel. A context chooses one when it is
// constructed.
// Threads: the loop's, for all calls except wake().

#include <coppice/base/clock.hpp>
#include <coppice/base/internal/namespaces.hpp>
#include <coppice/base/internal/result.hpp>
#include <coppice/io/buffer.hpp>
#include <coppice/io/internal/operation.hpp>
#include <coppice/io/internal/system_calls.hpp>
#include <coppice/io/internal/uring_calls.hpp>

#include <memory>
#include <optional>

namespace coppice::io {

enum class backend;
class simulation;

namespace internal {

class event_loop;

class ring : immovable {
public:
    // After the destructor, the kernel no longer touches the memory of any operation.
    virtual ~ring() = default;
    virtual backend kind() const noexcept = 0;

    // Return the calls that this ring's operating system answers at once, and its clock.
    virtual system_calls& system() noexcept = 0;
    virtual const clock& time() const noexcept = 0;

    // Prepares the ring for the calling thread. Called before anything else, each time a loop
    // starts. Returns true if the ring belonged to another thread; the pending operations of `loop`
    // have then been started again for this thread.
    virtual bool enter(event_loop& loop) noexcept = 0;

    // Takes in an open descriptor. After an error the caller still owns it.
    virtual std::error_code attach(descriptor& d, bool waits) noexcept = 0;
    // Starts an operation on an attached descriptor. Returns true if it ended at once: `result` is
    // set, and complete() will not be called. Otherwise complete() will be called from poll().
    virtual bool start(ring_operation& op) noexcept = 0;
    // Makes the system call of a receive or a send_message on an attached descriptor that has no
    // pending operation in that direction. Returns true if it ended: `result` is set. Otherwise
    // nothing has happened, and nothing is pending.
    virtual bool try_now(ring_operation& op) noexcept = 0;
    // Says how receives into buffers of the context ask for bytes from now on: for one buffer at a
    // time, so that try_now() can receive what comes behind it into the caller's memory, or (false,
    // as at first) in the way that is best for short messages.
    virtual void receive_one_by_one(descriptor&, bool) noexcept {}
    // Ends a pending operation early if that is still possible. It completes from poll(), with
    // -ECANCELED or with its result.
    virtual void cancel(ring_operation& op) noexcept = 0;
    // Returns true if the ring has taken bytes, the end, or an error from the file of an attached
    // descriptor although no operation asked for it.
    virtual bool has_received(int) const noexcept { return false; }
    // Closes the file of a descriptor that has no pending operation.
    virtual void detach(descriptor& d) noexcept = 0;

    // Delivers what has completed, and calls complete() for each operation. Blocks: until something
    // completes, wake() is called, or `until` passes; not at all if `until` has no value.
    virtual void poll(std::optional<time_point> until) noexcept = 0;
    // Passed as `until`: waits for completions without a limit.
    static constexpr time_point forever = time_point::max();
    // Makes the poll() that waits return, or the next one if none waits. Threads: any.
    virtual void wake() noexcept = 0;
    // Returns about how long events have lately been ready before a poll() delivered them, because
    // more were ready than one poll() delivers. Zero if each poll() delivers all, and over
    // io_uring.
    duration backlog() const noexcept { return backlog_; }

protected:
    duration backlog_ = duration::zero();  // set by poll()
};

// Make a ring. Errors: std::system_error if the kernel lacks or forbids what the ring needs.
std::unique_ptr<ring> make_epoll_ring(buffer_pool& buffers);
std::unique_ptr<ring> make_uring_ring(buffer_pool& buffers, uring_calls& calls);
std::unique_ptr<ring> make_sim_ring(buffer_pool& buffers, simulation& world);

}  // namespace internal

}  // namespace coppice::io
