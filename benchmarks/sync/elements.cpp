// What one element costs: of a generator, of a select, of channels of other kinds.
#include "rivals.hpp"

#include <coppice/channel.hpp>
#include <coppice/generator.hpp>
#include <coppice/io.hpp>
#include <coppice/sync.hpp>
#include <coppice/task.hpp>
#include <coppice/token.hpp>

#include <coroutine>
#include <exception>
#include <variant>

namespace bench_sync {

namespace {

using namespace coppice;

// What programs write by hand: a coroutine that stores a number and suspends.
class numbers_by_hand {
public:
    struct promise_type {
        numbers_by_hand get_return_object() {
            return numbers_by_hand(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(std::uint64_t number) noexcept {
            value = number;
            return {};
        }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
        std::uint64_t value = 0;
    };
    numbers_by_hand(const numbers_by_hand&) = delete;
    numbers_by_hand& operator=(const numbers_by_hand&) = delete;
    ~numbers_by_hand() { frame_.destroy(); }
    bool next() {
        frame_.resume();
        return !frame_.done();
    }
    std::uint64_t value() const { return frame_.promise().value; }

private:
    explicit numbers_by_hand(std::coroutine_handle<promise_type> frame) : frame_(frame) {}
    std::coroutine_handle<promise_type> frame_;
};

[[gnu::noinline]] numbers_by_hand count_by_hand(std::uint64_t size) {
    for (std::uint64_t i = 0; i != size; ++i) co_yield i;
}
[[gnu::noinline]] generator<std::uint64_t> count(std::uint64_t size) {
    for (std::uint64_t i = 0; i != size; ++i) co_yield i;
}
[[gnu::noinline]] async_generator<std::uint64_t> count_async(std::uint64_t size) {
    for (std::uint64_t i = 0; i != size; ++i) co_yield i;
}

void send(channel<std::uint64_t>& to, std::uint64_t item) {
    to.try_send(std::move(item));
}
void send(unbounded_channel<std::uint64_t>& to, std::uint64_t item) {
    to.send(item);
}

// Items are sent in batches and then taken in a task; nothing ever waits.
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

std::uint64_t elements_by_hand(std::size_t size) {
    std::uint64_t sum = 0;
    for (auto numbers = count_by_hand(size); numbers.next();) sum += numbers.value();
    return bench::hash().add(sum).value();
}
std::uint64_t elements_generator(std::size_t size) {
    std::uint64_t sum = 0;
    for (const std::uint64_t i : count(size)) sum += i;
    return bench::hash().add(sum).value();
}
std::uint64_t elements_async_generator(std::size_t size) {
    std::uint64_t sum = 0;
    const auto all = [&]() -> task<> {
        auto numbers = count_async(size);
        while (const auto i = co_await numbers.next()) sum += *i;
    };
    io::run([&](io::context&) { return all(); });
    return bench::hash().add(sum).value();
}

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
