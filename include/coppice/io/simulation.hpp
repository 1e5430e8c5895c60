// simulation: a deterministic world for a context; virtual time and network, faults from a seed.
#pragma once
// A simulation takes the place of the kernel under a context (backend::sim). Its sockets, files,
// and clock exist only in memory. Time passes only while the loop waits, as calls are made, and in
// pass(), so an hour of timeouts takes no real time. The seed decides everything that a real system
// leaves open: how much a call transfers, whether a call is interrupted or told to try again, how
// long bytes travel, which of several events comes first, and whether a connection is reset. The
// same program with the same seed makes the same calls with the same results, which trace()
// confirms.
//
// The ring above it runs the same code as the epoll ring (src/io/readiness.hpp).
//
// Simulated are: TCP, UDP, and Unix streams between sockets of this world, regular files that start
// empty, hosts that a test plants, and signals that a test raises. A file holds at most 1 GiB, all
// of it in memory. Writing or resizing beyond that fails with file_too_large, and with
// not_enough_memory if there is no memory; the file stays as it was.

#include <coppice/base/clock.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/internal/system_calls.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace coppice::io {

// The calls that a test can make fail.
enum class system_call : std::uint8_t {
    socket,
    bind,
    listen,
    accept,
    connect,
    receive,
    send,
    set_option,
    watch,
    shutdown,
    open,
    file,
    signals,  // making a signal_set
    read,     // reading a signal
    look_up,  // looking up a host
};

// How hostile a simulated world is. Each number is how many of 1000 calls or segments are affected.
struct simulated_faults {
    simulated_faults() noexcept {}   // the defaults: short transfers and delays, but no loss
    unsigned short_transfers = 300;  // a receive or send moves less than it could
    unsigned interrupted = 50;       // a call, or the wait, fails with EINTR
    unsigned try_again = 50;         // a receive, send, or accept fails with EAGAIN needlessly
    unsigned reordered = 300;        // later events overtake an event
    unsigned late_cancels = 300;     // a stop of a file operation comes too late: it is done
    unsigned resets = 0;             // a segment becomes a reset of its connection
    unsigned lost_datagrams = 0;     // a datagram does not arrive
    unsigned doubled_datagrams = 0;  // a datagram arrives twice
    // The longest delay of a segment, a datagram, an answer, and so on.
    internal::duration delay_max = std::chrono::milliseconds(2);

    static simulated_faults none() noexcept;  // no faults and no delay
};

// A simulated world. Threads: its context's. Other threads may wake the context, but then runs are
// not reproducible. Lifetime: must outlive its context.
class simulation : immovable {
public:
    // Makes a world. The seed decides everything that happens: the same seed and program make the
    // same run. Numbers above 1000 mean always. Errors: std::invalid_argument for a negative
    // delay_max.
    explicit simulation(std::uint64_t seed, const simulated_faults& faults = {});
    ~simulation();

    // Makes the n-th system call from now on, counted from 1, fail with an error that suits it.
    // Replaces the previous setting; 0 means none.
    void fail_call(std::uint64_t n) noexcept;
    // Returns which call was made to fail, or nothing if that has not happened yet.
    std::optional<system_call> failed() const noexcept;
    // Returns how many calls that can fail were made so far.
    std::uint64_t calls() const noexcept;

    // Adds a host that a resolver finds: these addresses, in this order, with the port that is
    // asked for. The answer takes `time`, and a delay from the seed on top. A host that was not
    // planted does not exist (EAI_NONAME), except for localhost.
    // Errors: std::bad_alloc.
    void plant_host(std::string_view name, std::vector<endpoint> addresses,
                    internal::duration time = internal::duration::zero());
    // Adds a host whose answer is an error of getaddrinfo, for example EAI_AGAIN.
    void plant_host_failure(std::string_view name, int error,
                            internal::duration time = internal::duration::zero());

    // Sends a signal (1 to 64) to this world's signal_sets after the time `after`, and a delay from
    // the seed on top, so that signals may overtake each other. As on a real system, a signal that
    // comes again before it was received counts once, and a signal that no set receives waits for a
    // set. The process itself gets nothing.
    // Errors: std::bad_alloc.
    void raise(int signal, internal::duration after = internal::duration::zero());

    // Returns a hash of every call, its result, and its time.
    std::uint64_t trace() const noexcept;
    // Returns how many sockets and files are open.
    std::size_t open_descriptors() const noexcept;
    // Lets time pass, as a computation of that length on the loop does. A time of zero or less does
    // nothing. Threads: the loop's.
    void pass(internal::duration time) noexcept;
    // Returns the world's clock.
    const internal::clock& time() const noexcept;
    // Returns the contents of a file of this world. Lifetime: until the file changes.
    std::string_view content(std::string_view path) const;

    // Used by the ring.
    class world;
    world& inside() noexcept { return *world_; }

private:
    std::unique_ptr<world> world_;
};

}  // namespace coppice::io
