// The parts of io/simulation.hpp: sockets, files, network, and time; shared with sim.cpp.
#pragma once
// Everything that happens later, from the arrival of a segment to the end of a file operation, is
// an event with a time. wait() lets time pass from event to event until something that is watched
// becomes ready. As with epoll, readiness is an edge: an event at a socket pokes it, and wait()
// reports the state of the poked sockets.

#include <coppice/base/internal/atomic.hpp>
#include <coppice/io/internal/operation.hpp>
#include <coppice/io/simulation.hpp>

#include "readiness.hpp"

#include <deque>
#include <map>
#include <string>
#include <system_error>
#include <vector>

namespace coppice::io {

using namespace internal;

// The random draws of one simulation (splitmix64).
class dice {
public:
    explicit dice(std::uint64_t seed) noexcept : state_(seed) {}
    std::uint64_t next() noexcept {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }
    // Returns 0 to count - 1.
    std::uint64_t below(std::uint64_t count) noexcept { return count == 0 ? 0 : next() % count; }
    bool chance(unsigned of_1000) noexcept { return of_1000 != 0 && below(1000) < of_1000; }

private:
    std::uint64_t state_;
};

inline std::error_code system_error(int error) noexcept {
    return {error, std::system_category()};
}

class simulation::world final : public system_calls, public clock {
public:
    using bytes = std::vector<std::byte>;
    // Limit of a file in bytes. Its contents are in memory, with the zeros before a write far
    // beyond its end.
    static constexpr std::uint64_t file_size_max = std::uint64_t{1} << 30;

    world(std::uint64_t seed, const simulated_faults& faults);
    ~world();

    time_point now() const noexcept override {
        return time_point(duration(shown_.load(relaxed)));  // relaxed: only the time
    }

    // system_calls
    result<int> socket(int family, int type, int protocol) noexcept override;
    std::error_code bind(int fd, const endpoint& at) noexcept override;
    std::error_code listen(int fd, int backlog) noexcept override;
    result<endpoint> local(int fd) noexcept override;
    result<endpoint> remote(int fd) noexcept override;
    std::error_code set_option(int fd, int level, int name, const void* value,
                               socklen_t size) noexcept override;
    std::error_code get_option(int fd, int level, int name, void* value,
                               socklen_t size) noexcept override;
    std::error_code shutdown(int fd, shutdown_direction how) noexcept override;
    bool is_quiet(int fd) noexcept override;
    result<std::size_t> send_file(int, int, std::uint64_t, std::size_t) noexcept override {
        // Makes the caller read and send instead, which the simulation can delay and split.
        return system_error(EAGAIN);
    }
    std::chrono::sys_seconds wall_time() noexcept override;
    result<int> open(const char* path, int flags, unsigned mode) noexcept override;
    result<std::uint64_t> file_size(int fd) noexcept override;
    std::error_code resize(int fd, std::uint64_t size) noexcept override;
    std::error_code replace(const char* from, const char* to) noexcept override;
    void remove(const char* path) noexcept override;
    void close(int fd) noexcept override;
    result<received_signals*> receive_signals(std::span<const int> signals) noexcept override;
    std::optional<duration> look_up_delay(const std::string& host) noexcept override;
    int look_up(const std::string& host, std::uint16_t port,
                std::vector<endpoint>& found) noexcept override;

    // For the ring: results in the form that readiness.hpp expects.
    int watch(descriptor& d) noexcept;
    int wait(ready_event* ready, int most, std::optional<time_point> until) noexcept;
    void wake() noexcept;
    void mark() noexcept { poked_.push_back(mark_identity); }
    long accept(int fd) noexcept;
    long connect(int fd, const endpoint& to) noexcept;
    long connect_outcome(int fd) noexcept;
    long receive(int fd, std::span<std::byte> into) noexcept;
    long receive_message(int fd, msghdr& message) noexcept;
    long send(int fd, std::span<const std::byte> from) noexcept;
    long send_message(int fd, const msghdr& message) noexcept;
    long read_signal(int fd, std::span<std::byte> into) noexcept;
    int start_file_operation(ring_operation& op) noexcept;
    void cancel_file_operation(ring_operation& op) noexcept;

private:
    friend simulation;

    enum class state : std::uint8_t {
        fresh,
        listening,
        connecting,
        connected,
        reset,
        file,
        signals
    };
    struct datagram {
        endpoint from;
        bytes content;
    };
    using identity = std::uint64_t;  // of a socket or file; never used again, unlike descriptors
    static constexpr identity mark_identity = 0;  // in poked_; no socket has it
    struct object {
        identity id = 0;
        int type = SOCK_STREAM;
        int family = AF_INET;
        state is = state::fresh;
        endpoint local, remote;
        descriptor* watched_by = nullptr;
        bool poked = false;
        std::deque<identity> backlog;  // listening: connections that were not accepted yet
        std::size_t backlog_max = 0;
        identity peer = 0;            // connected: the peer; 0: it is gone
        std::deque<std::byte> inbox;  // bytes that have arrived
        std::size_t in_flight = 0;    // bytes on their way here
        std::size_t capacity = 0;     // limit of inbox and in_flight together
        // the time when the last bytes in flight arrive: later bytes must not arrive earlier
        time_point last_arrival{};
        bool ended = false;  // the peer sends nothing more, and all its bytes have arrived
        bool send_shut = false;
        bool receive_shut = false;
        bool sender_waits = false;  // the peer was told that there is no space here
        int error = 0;              // SO_ERROR
        std::deque<datagram> datagrams;
        std::map<std::pair<int, int>, bytes> options;
        bytes* content = nullptr;  // a file's
        // of a signal_set: the signals that it receives; below, those of them that have arrived
        std::uint64_t signals = 0;
        std::uint64_t come = 0;
    };
    struct known_host {
        std::vector<endpoint> addresses;
        int failure = 0;  // an error of getaddrinfo
        duration time = duration::zero();
    };
    // Signal n as a bit.
    static constexpr std::uint64_t bit_of(int signal) noexcept {
        return std::uint64_t{1} << (signal - 1);
    }
    // What one set uses. Lives as long as the world, because an operation may end after its set.
    class signal_source;
    struct event {
        enum class kind : std::uint8_t {
            connection,
            connected,
            refused,
            segment,
            end,
            reset,
            datagram,
            poke,
            file,
            signal
        };
        kind what;
        identity to = 0;
        identity from = 0;
        bytes content;
        endpoint sender;
        ring_operation* op = nullptr;
        int signal = 0;
        bool begun = false;  // of a file operation: it was canceled after the kernel had begun it
    };

    // Begins a call; time passes. Returns 0, or the errno that the call must fail with.
    int begin(system_call call) noexcept;
    long end(system_call call, int fd, long outcome) noexcept;
    object* find(int fd) noexcept;
    object* find_id(identity id) noexcept;
    object& make(int family, int type);
    int give_descriptor(object& o);
    void poke(object& o);
    std::uint32_t readiness(const object& o) const noexcept;
    time_point delayed() noexcept;
    void pass_until(time_point when) noexcept {
        now_ = when;
        shown_.store(when.time_since_epoch().count(), relaxed);  // relaxed: only the time
    }
    // Schedules an event. later_in_order() never lets it overtake an earlier event of the stream.
    void later(event e, time_point when);
    void later_in_order(object& to, event e);
    void happen(event& e) noexcept;
    void arrive_signal(int signal);
    void arrive_connection(event& e);
    void drop(object& o) noexcept;
    void reset_both(object& o);
    object* listener_at(const endpoint& at, int type) noexcept;
    bool bound(const endpoint& at, int type) noexcept;
    long transfer_in(object& o, std::span<std::byte> into) noexcept;
    long transfer_out(object& o, std::span<const std::byte> from);
    void run_file_operation(ring_operation& op, bool begun) noexcept;
    static int resize_content(bytes& content, std::uint64_t size) noexcept;
    static int write_file(bytes& content, std::uint64_t offset,
                          std::span<const std::byte> from) noexcept;
    int report(ready_event* ready, int most) noexcept;
    std::size_t shortened(std::size_t size) noexcept;
    void note(std::uint64_t value) noexcept { trace_ = (trace_ ^ value) * 0x100000001b3; }

    dice dice_;
    simulated_faults faults_;
    time_point now_{std::chrono::seconds(1)};     // the loop's time
    atomic<duration::rep> shown_{1'000'000'000};  // now_, readable by any thread
    std::map<identity, std::unique_ptr<object>> objects_;
    std::vector<identity> descriptors_;  // indexed by descriptor - first_descriptor; 0: free
    std::map<std::pair<time_point, std::uint64_t>, event> events_;
    std::vector<identity> poked_;
    std::map<std::string, bytes, std::less<>> files_;
    std::vector<decltype(files_)::node_type> removed_;  // files without a name; some may be open
    bytes folder_;                                      // the contents of an open folder
    std::map<std::string, known_host, std::less<>> hosts_;
    std::uint64_t signals_ = 0;  // signals that have come while no set received them
    std::vector<std::unique_ptr<signal_source>> signal_sources_;
    identity last_identity_ = 0;
    std::uint64_t last_event_ = 0;
    std::uint16_t last_port_ = 40'000;
    std::uint64_t calls_ = 0;
    std::uint64_t fail_at_ = 0;
    std::optional<system_call> failed_;
    std::uint64_t trace_ = 0xcbf29ce484222325;
    atomic<std::uint32_t> woken_{0};  // set by wake(); publishes nothing
};

}  // namespace coppice::io
