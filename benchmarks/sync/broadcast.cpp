// One sender whose items go to several receivers, all on one loop.
#include "rivals.hpp"

#include <coppice/channel.hpp>
#include <coppice/execution.hpp>
#include <coppice/io.hpp>
#include <coppice/task.hpp>

#include <deque>
#include <utility>

namespace bench_sync {

namespace {

using namespace coppice;
namespace ex = coppice::execution;
using broadcast = broadcast_channel<std::uint64_t>;
using numbers = channel<std::uint64_t>;

// From is a channel, or a receiver of a broadcast.
template <class From>
task<> receive_all(From& from, std::uint64_t& sum) {
    while (const auto item = co_await from.receive()) sum += *item;
}
// Runs `send` when the receivers wait, one for each of `from`.
template <class From, class Send>
std::uint64_t to_each(std::deque<From>& from, Send send) {
    std::uint64_t sum = 0;
    io::run([&](io::context& loop) -> task<> {
        ex::counting_scope scope;
        for (From& each : from) {
            ex::spawn(receive_all(each, sum) | ex::upon_error([](auto&&) noexcept {}),
                      scope.get_token(), ex::prop(ex::get_scheduler, loop.get_scheduler()));
        }
        co_await loop.get_scheduler().schedule();
        co_await send();
        co_await scope.join();
    });
    return bench::hash().add(sum).value();
}

std::uint64_t by_broadcast(std::size_t size, std::size_t receivers) {
    broadcast all(slots);
    std::deque<broadcast::receiver> from;
    for (std::size_t i = 0; i != receivers; ++i) from.push_back(all.subscribe());
    return to_each(from, [&]() -> task<> {
        for (std::size_t i = 0; i != size; ++i) all.send(i);
        all.close();
        co_return;
    });
}
std::uint64_t by_channels(std::size_t size, std::size_t receivers) {
    std::deque<numbers> to;
    for (std::size_t i = 0; i != receivers; ++i) to.emplace_back(slots);
    return to_each(to, [&]() -> task<> {
        for (std::size_t i = 0; i != size; ++i) {
            for (numbers& each : to) co_await each.send(i);
        }
        for (numbers& each : to) each.close();
    });
}

}  // namespace

std::uint64_t broadcast_to_two(std::size_t size) {
    return by_broadcast(size, 2);
}
std::uint64_t broadcast_to_four(std::size_t size) {
    return by_broadcast(size, 4);
}
std::uint64_t channels_to_two(std::size_t size) {
    return by_channels(size, 2);
}
std::uint64_t channels_to_four(std::size_t size) {
    return by_channels(size, 4);
}

}  // namespace bench_sync
