// coppice's channels.
#include "rivals.hpp"

#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/io.hpp>
#include <coppice/pool.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

namespace bench_sync {

namespace {

using namespace coppice;
namespace ex = coppice::execution;
using numbers = channel<std::uint64_t>;

template <class Channel>
task<> send(Channel& to, std::size_t size) {
    for (std::size_t i = 0; i != size; ++i) co_await to.send(i);
}
template <class Channel>
task<> receive(Channel& from, std::size_t size, std::uint64_t& sum) {
    for (std::size_t i = 0; i != size; ++i) sum += *co_await from.receive();
}

std::uint64_t on_one_loop(std::size_t size, std::size_t capacity) {
    numbers between(capacity);
    std::uint64_t sum = 0;
    io::run([&](io::context&) -> task<> {
        co_await ex::when_all(receive(between, size, sum), send(between, size));
    });
    return bench::hash().add(sum).value();
}

// On two threads.
template <class Channel>
std::uint64_t by_tasks(std::size_t size) {
    Channel between(slots);
    return on_two_threads(
        size, [&](std::size_t n) { io::run([&](io::context&) { return send(between, n); }); },
        [&](std::size_t n) {
            std::uint64_t sum = 0;
            io::run([&](io::context&) { return receive(between, n, sum); });
            return sum;
        });
}
template <class Channel>
std::uint64_t by_blocking(std::size_t size) {
    Channel between(slots);
    return on_two_threads(
        size,
        [&](std::size_t n) {
            for (std::size_t i = 0; i != n; ++i) between.send(i, block);
        },
        [&](std::size_t n) {
            std::uint64_t sum = 0;
            for (std::size_t i = 0; i != n; ++i) sum += *between.receive(block);
            return sum;
        });
}

}  // namespace

std::uint64_t one_thread_coppice(std::size_t size) {
    return on_one_loop(size, slots);
}
std::uint64_t rendezvous_coppice(std::size_t size) {
    return on_one_loop(size, 0);
}

std::uint64_t two_threads_coppice(std::size_t size) {
    return by_tasks<numbers>(size);
}
std::uint64_t two_threads_blocking(std::size_t size) {
    return by_blocking<numbers>(size);
}
std::uint64_t spsc_tasks(std::size_t size) {
    return by_tasks<spsc_channel<std::uint64_t>>(size);
}
std::uint64_t spsc_blocking(std::size_t size) {
    return by_blocking<spsc_channel<std::uint64_t>>(size);
}

std::uint64_t four_coppice(std::size_t size) {
    numbers between(slots);
    std::uint64_t sums[4] = {};
    thread_pool pool({.threads = 2});
    const auto on = [&](task<> work) {
        return ex::starts_on(pool.get_scheduler(), std::move(work));
    };
    this_thread::sync_wait(ex::when_all(
        on(receive(between, size / 4, sums[0])), on(receive(between, size / 4, sums[1])),
        on(receive(between, size / 4, sums[2])), on(receive(between, size / 4, sums[3])),
        on(send(between, size / 4)), on(send(between, size / 4)), on(send(between, size / 4)),
        on(send(between, size / 4))));
    return bench::hash().add(sums[0] + sums[1] + sums[2] + sums[3]).value();
}

}  // namespace bench_sync
