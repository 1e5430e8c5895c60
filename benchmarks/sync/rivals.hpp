// The rivals of the sync benchmark; each function does its work `size` times and hashes the result.
#pragma once

#include "../harness.hpp"

#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

namespace bench_sync {

// Slots of every bounded queue.
inline constexpr std::size_t slots = 1024;

// An uncontended lock and unlock; the floor is a pair of compare-and-swaps.
std::uint64_t uncontended_pair(std::size_t size);
std::uint64_t uncontended_coppice(std::size_t size);
std::uint64_t uncontended_std(std::size_t size);

// A lock passes back and forth between two tasks of one loop; two tasks take turns on a loop.
std::uint64_t hand_over_coppice(std::size_t size);
std::uint64_t hand_over_resume(std::size_t size);

// Items go from one task to another on one thread, through 1024 slots.
std::uint64_t one_thread_coppice(std::size_t size);
std::uint64_t one_thread_asio(std::size_t size);
std::uint64_t one_thread_fiber(std::size_t size);
// The same through no slot: each send meets a receive.
std::uint64_t rendezvous_coppice(std::size_t size);
std::uint64_t rendezvous_asio(std::size_t size);
std::uint64_t rendezvous_fiber(std::size_t size);

// Items go from one thread to another, through 1024 slots; tasks on loops, or threads that block.
std::uint64_t two_threads_coppice(std::size_t size);
std::uint64_t two_threads_blocking(std::size_t size);
std::uint64_t two_threads_condition(std::size_t size);
std::uint64_t two_threads_tbb(std::size_t size);
std::uint64_t two_threads_moodycamel(std::size_t size);
std::uint64_t two_threads_asio(std::size_t size);
std::uint64_t two_threads_fiber(std::size_t size);

// The same with one sender and one receiver; the floor is a ring that spins and does nothing else.
std::uint64_t spsc_tasks(std::size_t size);
std::uint64_t spsc_blocking(std::size_t size);
std::uint64_t spsc_plain(std::size_t size);

// A task takes items that are there already, by a receive or by a select of two channels.
std::uint64_t one_receive(std::size_t size);
std::uint64_t select_of_two(std::size_t size);
std::uint64_t unbounded_receive(std::size_t size);

// Each item goes to 2 or 4 receivers that wait on the sender's loop: by a broadcast, or through a
// channel for each of them.
std::uint64_t broadcast_to_two(std::size_t size);
std::uint64_t broadcast_to_four(std::size_t size);
std::uint64_t channels_to_two(std::size_t size);
std::uint64_t channels_to_four(std::size_t size);

// Four senders and four receivers on two threads.
std::uint64_t four_coppice(std::size_t size);
std::uint64_t four_condition(std::size_t size);
std::uint64_t four_tbb(std::size_t size);
std::uint64_t four_moodycamel(std::size_t size);

// Returns the nanoseconds that it takes to stop one wait for a lock, of `size` that wait.
double stop_ns(std::size_t size);

// Runs `send(count)` on a thread and `receive(count)` here; both return the sum of the items.
template <class Send, class Receive>
std::uint64_t on_two_threads(std::size_t size, Send send, Receive receive) {
    std::thread sender([&] { send(size); });
    const std::uint64_t sum = receive(size);
    sender.join();
    return bench::hash().add(sum).value();
}
// Runs `send(n)` on four threads and `receive(n)` on four others, n being a quarter of `size`.
template <class Send, class Receive>
std::uint64_t on_four_threads(std::size_t size, Send send, Receive receive) {
    std::vector<std::thread> threads;
    std::uint64_t sums[4] = {};
    for (std::size_t i = 0; i != 4; ++i) {
        threads.emplace_back([&] { send(size / 4); });
        threads.emplace_back([&, i] { sums[i] = receive(size / 4); });
    }
    for (std::thread& t : threads) t.join();
    return bench::hash().add(sums[0] + sums[1] + sums[2] + sums[3]).value();
}

}  // namespace bench_sync
