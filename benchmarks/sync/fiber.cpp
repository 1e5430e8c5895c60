// Boost.Fiber: buffered_channel and unbuffered_channel between fibers.
#include "rivals.hpp"

#include <boost/fiber/all.hpp>

namespace bench_sync {

namespace {

namespace fibers = boost::fibers;
using buffered = fibers::buffered_channel<std::uint64_t>;
using unbuffered = fibers::unbuffered_channel<std::uint64_t>;

template <class Channel>
void send(Channel& to, std::size_t n) {
    for (std::size_t i = 0; i != n; ++i) to.push(i);
}
template <class Channel>
std::uint64_t receive(Channel& from, std::size_t n) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i != n; ++i) sum += from.value_pop();
    return sum;
}
template <class Channel>
std::uint64_t on_this_thread(Channel& between, std::size_t size) {
    std::uint64_t sum = 0;
    fibers::fiber receiver([&] { sum = receive(between, size); });
    fibers::fiber sender([&] { send(between, size); });
    sender.join();
    receiver.join();
    return bench::hash().add(sum).value();
}

}  // namespace

std::uint64_t one_thread_fiber(std::size_t size) {
    buffered between(slots);
    return on_this_thread(between, size);
}
std::uint64_t rendezvous_fiber(std::size_t size) {
    unbuffered between;
    return on_this_thread(between, size);
}
std::uint64_t two_threads_fiber(std::size_t size) {
    buffered between(slots);
    return on_two_threads(
        size, [&](std::size_t n) { send(between, n); },
        [&](std::size_t n) { return receive(between, n); });
}

}  // namespace bench_sync
