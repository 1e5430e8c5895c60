// Asio: experimental::channel between coroutines of one context, concurrent_channel between two.
#include "rivals.hpp"

#include <asio.hpp>
#include <asio/experimental/channel.hpp>
#include <asio/experimental/concurrent_channel.hpp>

namespace bench_sync {

namespace {

using signature = void(asio::error_code, std::uint64_t);

template <class Channel>
asio::awaitable<void> send(Channel& to, std::size_t size) {
    for (std::size_t i = 0; i != size; ++i)
        co_await to.async_send(asio::error_code(), i, asio::use_awaitable);
}
template <class Channel>
asio::awaitable<void> receive(Channel& from, std::size_t size, std::uint64_t& sum) {
    for (std::size_t i = 0; i != size; ++i) sum += co_await from.async_receive(asio::use_awaitable);
}

std::uint64_t on_one_context(std::size_t size, std::size_t capacity) {
    asio::io_context context(1);
    asio::experimental::channel<signature> between(context, capacity);
    std::uint64_t sum = 0;
    asio::co_spawn(context, receive(between, size, sum), asio::detached);
    asio::co_spawn(context, send(between, size), asio::detached);
    context.run();
    return bench::hash().add(sum).value();
}

}  // namespace

std::uint64_t one_thread_asio(std::size_t size) {
    return on_one_context(size, slots);
}
std::uint64_t rendezvous_asio(std::size_t size) {
    return on_one_context(size, 0);
}
std::uint64_t two_threads_asio(std::size_t size) {
    asio::io_context ours(1);
    asio::io_context theirs(1);
    asio::experimental::concurrent_channel<signature> between(ours, slots);
    return on_two_threads(
        size,
        [&](std::size_t n) {
            asio::co_spawn(theirs, send(between, n), asio::detached);
            theirs.run();
        },
        [&](std::size_t n) {
            std::uint64_t sum = 0;
            asio::co_spawn(ours, receive(between, n, sum), asio::detached);
            ours.run();
            return sum;
        });
}

}  // namespace bench_sync
