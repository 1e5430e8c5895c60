// The sim ring: readiness.hpp over a simulated kernel.
#include "simulated_world.hpp"

namespace coppice::io {

using namespace internal;

namespace {

class sim_kernel : immovable {
public:
    static constexpr backend kind = backend::sim;
    static constexpr int events_max = 64;

    explicit sim_kernel(simulation& s) noexcept : world_(s.inside()) {}

    system_calls& system() noexcept { return world_; }
    const clock& time() const noexcept { return world_; }
    int watch(descriptor& d) noexcept { return world_.watch(d); }
    int wait(ready_event* ready, std::optional<time_point> until) noexcept {
        return world_.wait(ready, events_max, until);
    }
    void wake() noexcept { world_.wake(); }
    void mark() noexcept { world_.mark(); }
    static void hear(const void*) noexcept {}

    long accept(int fd) noexcept { return world_.accept(fd); }
    long connect(int fd, const sockaddr* to, socklen_t size) noexcept {
        return world_.connect(fd, endpoint::from(to, size));
    }
    long connect_outcome(int fd) noexcept { return world_.connect_outcome(fd); }
    long receive(int fd, std::byte* data, std::size_t size) noexcept {
        return world_.receive(fd, {data, size});
    }
    long receive_message(int fd, msghdr& message) noexcept {
        return world_.receive_message(fd, message);
    }
    long send(int fd, const std::byte* data, std::size_t size) noexcept {
        return world_.send(fd, {data, size});
    }
    long send_message(int fd, const msghdr& message) noexcept {
        return world_.send_message(fd, message);
    }
    long read(int fd, std::byte* data, std::size_t size) noexcept {
        return world_.read_signal(fd, {data, size});
    }
    int start_file_operation(ring_operation& op) noexcept {
        return world_.start_file_operation(op);
    }
    void cancel_file_operation(ring_operation& op) noexcept { world_.cancel_file_operation(op); }

private:
    simulation::world& world_;
};

}  // namespace

namespace internal {

std::unique_ptr<ring> make_sim_ring(buffer_pool& buffers, simulation& world) {
    return std::make_unique<readiness_ring<sim_kernel>>(buffers, world);
}

}  // namespace internal

}  // namespace coppice::io
