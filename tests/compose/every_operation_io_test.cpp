// The operations of loops, stopped in every way: sockets, names, timers, signals.
#include <coppice/io/simulation.hpp>

#include "../io/rings.hpp"
#include "../io/slow_names.hpp"
#include "every_operation.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include <array>
#include <vector>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::test;
using namespace std::chrono_literals;

// Listens, but its queue of connections is full: further connections get no answer.
class silent_address : immovable {
public:
    silent_address() {
        const io::endpoint any = io::loopback(0);
        sockaddr_storage at{};
        socklen_t size = sizeof at;
        if (::bind(listener_, any.data(), any.size()) != 0) std::abort();
        ::listen(listener_, 0);
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size);
        ::connect(only_, reinterpret_cast<const sockaddr*>(&at), size);
        pollfd queued{listener_, POLLIN, 0};
        ::poll(&queued, 1, -1);
        address = io::endpoint::from(reinterpret_cast<const sockaddr*>(&at), size);
    }
    ~silent_address() {
        ::close(only_);
        ::close(listener_);
    }
    io::endpoint address = io::loopback(0);

private:
    int listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int only_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

class every_operation_of_io : public testing::TestWithParam<io::backend> {
protected:
    every_operation_of_io() {
        if (real) {
            loop.emplace(GetParam());
        } else {
            loop.emplace(world);
        }
        acceptor.emplace(*loop, io::loopback(0));
    }
    void check(waiting_operation op) {
        on_loop{*loop}(stop_in_every_way(*loop, std::move(op), real));
    }
    // Unix sockets, because bytes that the other side does not read fill a buffer of known size.
    task<> connect_near_pair() {
        const std::string name = "@coppice-every-operation-pair-" + std::to_string(::getpid());
        io::local::acceptor listening(*loop, *io::endpoint::unix_path(name));
        writing.emplace(*loop);
        co_await writing->connect(listening.local());
        reading.emplace(co_await listening.accept());
    }
    task<> connect_pair() {
        co_await near->connect(acceptor->local());
        far.emplace(co_await acceptor->accept());
    }
    void make_pair() {
        near.emplace(*loop);
        on_loop{*loop}(connect_pair());
    }
    // Sends until the other side's buffer is full.
    task<> fill() {
        for (bool full = false; !full;) {
            full = co_await times_out(
                any_operation(ex::then(writing->send(lot), [](std::size_t) noexcept {})));
        }
    }
    // Receives until it is stopped.
    task<> drain() {
        for (;;) (void)co_await reading->receive_pooled();
    }
    // Checks an operation that waits while the peer does not read, and ends when the peer reads.
    template <class Make>
    void check_sending(const char* name, Make make) {
        on_loop{*loop}(connect_near_pair());
        on_loop{*loop}(fill());
        check(waits(name, make, [this] { return drain(); }));
    }
    template <class Make>
    void check_receiving(const char* name, Make make) {
        make_pair();
        check(waits(name, make, [this]() -> task<> { co_await near->send_all(bytes_of("x")); }));
    }

    const bool real = GetParam() != io::backend::sim;
    io::simulation world{7, io::simulated_faults::none()};
    std::optional<io::context> loop;
    std::optional<io::tcp::acceptor> acceptor;
    std::optional<io::tcp::socket> near, far;
    std::optional<io::local::socket> writing, reading;
    std::array<std::byte, 64> memory{};
    std::array<io::mutable_buffer, 1> pieces{io::mutable_buffer(memory)};
    // More than the buffers of two sockets hold. A simulated connection holds less than 70 KiB.
    const std::vector<std::byte> lot = std::vector<std::byte>(real ? 16u << 20 : 256u << 10);
    std::array<io::const_buffer, 1> lots{io::const_buffer(lot)};
};
INSTANTIATE_TEST_SUITE_P(rings, every_operation_of_io, test::all_rings, test::ring_name);

TEST_P(every_operation_of_io, receives_end_by_every_kind_of_stop) {
    check_receiving("stream::receive", [this] { return far->receive(memory); });
    check_receiving("stream::receive of pieces", [this] { return far->receive(pieces); });
    check_receiving("stream::receive_pooled", [this] { return far->receive_pooled(); });
}

TEST_P(every_operation_of_io, sends_end_by_every_kind_of_stop) {
    check_sending("stream::send", [this] { return writing->send(lot); });
    check_sending("stream::send of pieces", [this] { return writing->send(lots); });
    check_sending("stream::send_all", [this] { return writing->send_all(lot); });
    check_sending("stream::send_all of pieces", [this] { return writing->send_all(lots); });
}

TEST_P(every_operation_of_io, accepts_end_by_every_kind_of_stop) {
    io::tcp::socket client(*loop);
    check(waits(
        "acceptor::accept", [this] { return acceptor->accept(); },
        [&]() -> task<> { co_await client.connect(acceptor->local()); }));
    const std::string name = "@coppice-every-operation-" + std::to_string(::getpid());
    io::local::acceptor listening(*loop, *io::endpoint::unix_path(name));
    io::local::socket other(*loop);
    check(waits(
        "acceptor::accept on a Unix endpoint", [&] { return listening.accept(); },
        [&]() -> task<> { co_await other.connect(listening.local()); }));
}

TEST_P(every_operation_of_io, connects_end_by_every_kind_of_stop) {
    if (!real) GTEST_SKIP() << "a simulated address always answers";
    const silent_address silent;
    const std::array<io::endpoint, 2> none{silent.address, silent.address};
    const std::array<io::endpoint, 1> one{acceptor->local()};
    io::tcp::socket socket(*loop);
    check(waits_never_again(
        "socket::connect", [&] { return socket.connect(silent.address); },
        [&] { return socket.connect(acceptor->local()); }));
    check(waits_never_again(
        "socket::connect to the first that answers",
        [&] { return socket.connect(std::span<const io::endpoint>(none)); },
        [&] { return socket.connect(std::span<const io::endpoint>(one)); }));
}

TEST_P(every_operation_of_io, name_lookups_end_by_every_kind_of_stop) {
    std::optional<slow_names> names;
    if (real) {
        names.emplace();
    } else {
        world.plant_host("slow", {io::loopback(0)}, 1h);
        world.plant_host("here", {io::loopback(0)});
    }
    io::resolver resolver(*loop);
    io::tcp::socket socket(*loop);
    const std::uint16_t port = acceptor->local().port();
    check(waits_never_again(
        "resolver::resolve", [&] { return resolver.resolve("slow", port); },
        [&] { return resolver.resolve("here", port); }));
    check(waits_never_again(
        "socket::connect by name", [&] { return socket.connect("slow", port); },
        [&] { return socket.connect("here", port); }));
    const std::string slow = "slow:" + std::to_string(port), here = "here:" + std::to_string(port);
    check(waits_never_again(
        "connect to text", [&] { return io::tcp::connect(*loop, slow); },
        [&] { return io::tcp::connect(*loop, here); }));
}

TEST_P(every_operation_of_io, copies_end_by_every_kind_of_stop) {
    make_pair();
    check(waits(
        "copy", [this] { return io::copy(*far, *far); },
        [this]() -> task<> {
            near->shutdown_send();
            co_return;
        }));
    make_pair();
    on_loop{*loop}(connect_near_pair());
    check(waits(
        "copy_both", [this] { return io::copy_both(*far, *writing); },
        [this]() -> task<> {
            near->shutdown_send();
            reading->shutdown_send();
            co_return;
        }));
}

TEST_P(every_operation_of_io, datagrams_end_by_every_kind_of_stop) {
    io::udp::socket receiving(*loop, io::loopback(0));
    io::udp::socket sending(*loop, io::loopback(0));
    const io::endpoint to = receiving.local();
    check(waits(
        "socket::receive_from", [&] { return receiving.receive_from(memory); },
        [&]() -> task<> { co_await sending.send_to(bytes_of("x"), to); }));
}

TEST_P(every_operation_of_io, timers_end_by_every_kind_of_stop) {
    io::timer timer(*loop);
    const auto scheduler = loop->get_scheduler();
    check(waits_never_again(
        "timer::wait_for", [&] { return timer.wait_for(1h); },
        [&] { return timer.wait_for(1ms); }));
    check(waits_never_again(
        "timer::wait_until", [&] { return timer.wait_until(time_point::max()); },
        [&] { return timer.wait_until(loop->now()); }));
    check(waits_never_again(
        "scheduler::schedule_after", [&] { return scheduler.schedule_after(1h); },
        [&] { return scheduler.schedule_after(1ms); }));
    check(waits_never_again(
        "scheduler::schedule_at", [&] { return scheduler.schedule_at(time_point::max()); },
        [&] { return scheduler.schedule_at(loop->now()); }));
}

TEST_P(every_operation_of_io, signals_end_by_every_kind_of_stop) {
    io::signal_set signals(*loop, {SIGUSR1});
    check(waits(
        "signal_set::wait", [&] { return signals.wait(); },
        [&]() -> task<> {
            if (real) {
                ::raise(SIGUSR1);
            } else {
                world.raise(SIGUSR1);
            }
            co_return;
        }));
}

}  // namespace
