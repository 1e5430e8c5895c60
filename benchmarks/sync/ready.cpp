// The cost of taking an item that is there, by a receive or by a select.
#include "rivals.hpp"

#include <coppice/channel.hpp>
#include <coppice/io.hpp>
#include <coppice/sync.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include <variant>

namespace bench_sync {

namespace {

using namespace coppice;

void send(channel<std::uint64_t>& to, std::uint64_t item) {
    to.try_send(std::move(item));
}
void send(unbounded_channel<std::uint64_t>& to, std::uint64_t item) {
    to.send(item);
}

// Items are sent in batches and then taken in a task, which never waits.
template <class Channel>
task<> receive_batches(Channel& from, std::size_t size, std::uint64_t& sum) {
    for (std::size_t done = 0; done < size; done += slots) {
        for (std::uint64_t i = 0; i != slots; ++i) send(from, i);
        for (std::uint64_t i = 0; i != slots; ++i) sum += *co_await from.receive();
    }
}
task<> select_batches(channel<std::uint64_t>& one, channel<std::uint64_t>& two, std::size_t size,
                      std::uint64_t& sum) {
    for (std::size_t done = 0; done < size; done += slots) {
        for (std::uint64_t i = 0; i != slots; ++i) send(i % 2 == 0 ? one : two, i);
        for (std::uint64_t i = 0; i != slots; ++i) {
            auto got = co_await coppice::select(one.receive(), two.receive());
            sum += got.index() == 0 ? *std::get<0>(got) : *std::get<1>(got);
        }
    }
}

}  // namespace

std::uint64_t one_receive(std::size_t size) {
    channel<std::uint64_t> only(slots);
    std::uint64_t sum = 0;
    io::run([&](io::context&) { return receive_batches(only, size, sum); });
    return bench::hash().add(sum).value();
}
std::uint64_t select_of_two(std::size_t size) {
    channel<std::uint64_t> one(slots), two(slots);
    std::uint64_t sum = 0;
    io::run([&](io::context&) { return select_batches(one, two, size, sum); });
    return bench::hash().add(sum).value();
}
std::uint64_t unbounded_receive(std::size_t size) {
    unbounded_channel<std::uint64_t> only;
    std::uint64_t sum = 0;
    io::run([&](io::context&) { return receive_batches(only, size, sum); });
    return bench::hash().add(sum).value();
}

}  // namespace bench_sync
