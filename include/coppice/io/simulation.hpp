// simulation: a deterministic world for a context; virtual time, a virtual network, seeded faults.
#pragma once
// A simulation stands for the kernel under a context (backend::sim). Its sockets, files and clock
// exist in memory alone. Time passes only as the loop waits and as calls are made, so an hour of
// timeouts takes no time. Everything that a real system leaves open is drawn from the seed: how
// much a call transfers, whether it is interrupted or told to try again, how long bytes travel,
// which of several events comes first, and whether a connection is reset. The same program with the
// same seed runs the same way to the last call, which trace() proves.
//
// The ring above it is the epoll ring's own code (src/io/readiness.hpp).
//
// What is simulated: TCP, UDP and Unix streams between sockets of this world, regular files that
// start empty, hosts that a test plants, and signals that it raises. A file holds at most 1 GiB,
// all of it in memory: to write or resize beyond that is file_too_large, and not_enough_memory if
// the memory is not there; the file stays as it was.

#include <coppice/base/clock.hpp>
#include <coppice/base/lifetime.hpp>
#include <coppice/io/endpoint.hpp>
#include <coppice/io/system_calls.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

namespace coppice::io {

// The calls that a simulation can be told to fail.
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
    signals,  // the making of a signal_set
    read,     // of a signal
    look_up,  // of a host
};

// How hostile a simulated world is. Shares are out of 1000 calls or segments.
struct simulated_faults {
    simulated_faults() noexcept {}   // short transfers and delays, but nothing is lost
    unsigned short_transfers = 300;  // a receive or send moves less than it could
    unsigned interrupted = 50;       // a call, or the wait, ends with EINTR
    unsigned try_again = 50;         // a receive, send or accept says EAGAIN though it could
    unsigned reordered = 300;        // an event is passed by later ones
    unsigned late_cancels = 300;     // a file operation is stopped too late, and done
    unsigned resets = 0;             // a segment becomes a reset of its connection
    unsigned lost_datagrams = 0;     // a datagram does not arrive
    unsigned doubled_datagrams = 0;  // a datagram arrives twice
    // of a segment, a datagram, an answer ...
    internal::duration delay_max = std::chrono::milliseconds(2);

    static simulated_faults none() noexcept;  // and no delay
};

// Threads: its context's; a context may be woken by others, but then runs differ.
// Lifetime: outlives its context.
class simulation : immovable {
public:
    // The seed decides all that happens: the same seed and program run the same. Shares beyond 1000
    // are always. Errors: std::invalid_argument for a negative delay_max.
    explicit simulation(std::uint64_t seed, const simulated_faults& faults = {});
    ~simulation();

    // Makes the n-th system call from now on, counted from 1, fail with an error that suits it.
    // One at a time; 0: none.
    void fail_call(std::uint64_t n) noexcept;
    // Which call was made to fail; nothing if it has not come yet.
    std::optional<system_call> failed() const noexcept;
    // How many calls that can fail were made so far.
    std::uint64_t calls() const noexcept;

    // Lets a resolver find a host: these addresses, in this order, with the port that is asked for.
    // The answer takes `time`, and as much longer as the seed says. A host that nobody planted does
    // not exist (EAI_NONAME), but for localhost. Errors: std::bad_alloc.
    void plant_host(std::string_view name, std::vector<endpoint> addresses,
                    internal::duration time = internal::duration::zero());
    // The same, but the answer is an error of getaddrinfo's, EAI_AGAIN for one.
    void plant_host_failure(std::string_view name, int error,
                            internal::duration time = internal::duration::zero());

    // Sends a signal (1 to 64) to this world's signal_sets `after` this time, and as much later as
    // the seed says, so that signals may pass each other. As on a system, one that comes again
    // before it was received is one; one that no set receives waits for a set. The process gets
    // nothing. Errors: std::bad_alloc.
    void raise(int signal, internal::duration after = internal::duration::zero());

    // A hash of every call, its result and its time.
    std::uint64_t trace() const noexcept;
    // Sockets and files that are open.
    std::size_t open_descriptors() const noexcept;
    const internal::clock& time() const noexcept;
    // What a file of this world holds.
    std::string_view content(std::string_view path) const;

    // For the ring.
    class world;
    world& inside() noexcept { return *world_; }

private:
    std::unique_ptr<world> world_;
};

}  // namespace coppice::io
