// Locks and channels: a limit on concurrency, a pipeline with back-pressure, and select.
// [top]
#include <coppice/coppice.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <variant>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
// [/top]

namespace {

// [lock]
// Two tasks share an account. Each holds it while it waits for its bank.
struct account {
    async_mutex mutex;
    int balance = 100;
};
task<bool> withdraw(io::context& loop, account& from, int amount) {
    const auto guard = co_await from.mutex.lock();
    if (from.balance < amount) co_return false;
    co_await loop.get_scheduler().schedule_after(1ms);  // asks the bank; the other task waits
    from.balance -= amount;
    co_return true;
}
// [/lock]

// [limit]
// However many requests there are, at most two are in flight.
task<> ask(io::context& loop, async_semaphore& limit, int& now, int& most) {
    const auto permit = co_await limit.acquire();
    most = std::max(most, ++now);
    co_await loop.get_scheduler().schedule_after(1ms);
    --now;
}  // the permit goes to the next request
// [/limit]

// [pipeline]
// The producer is at most four items ahead. It closes the channel, and the consumer sees the end.
task<> produce(channel<int>& to) {
    for (int i = 1; i <= 10; ++i) co_await to.send(i * i);
    to.close();
}
task<int> consume(channel<int>& from) {
    int sum = 0;
    while (const std::optional<int> item = co_await from.receive()) sum += *item;
    co_return sum;
}
// [/pipeline]

// [select]
// Returns an order or a news item, whichever comes first, or "silence" after half a second.
task<std::string> next(channel<int>& orders, channel<std::string>& news, io::timer& timer) {
    auto got = co_await select(orders.receive(), news.receive(), timer.wait_for(500ms));
    switch (got.index()) {
        case 0:
            co_return "order " + std::to_string(*std::get<0>(got));
        case 1:
            co_return "news: " + *std::get<1>(std::move(got));
        default:
            co_return "silence";
    }
}
// [/select]

task<> run(io::context& loop) {
    account shared;
    const auto [first, second] =
        co_await ex::when_all(withdraw(loop, shared, 70), withdraw(loop, shared, 70));
    std::printf("%s, %s, %d left\n", first ? "paid" : "refused", second ? "paid" : "refused",
                shared.balance);

    async_semaphore limit(2);
    int now = 0;
    int most = 0;
    co_await ex::when_all(ask(loop, limit, now, most), ask(loop, limit, now, most),
                          ask(loop, limit, now, most), ask(loop, limit, now, most));
    std::printf("at most %d at once\n", most);

    channel<int> squares(4);
    const int sum = co_await ex::when_all(consume(squares), produce(squares));
    std::printf("the squares sum to %d\n", sum);

    channel<int> orders(1);
    channel<std::string> news(1);
    io::timer timer(loop);
    news.try_send("rain");
    std::puts((co_await next(orders, news, timer)).c_str());
    orders.try_send(7);
    std::puts((co_await next(orders, news, timer)).c_str());
    std::puts((co_await next(orders, news, timer)).c_str());
}

}  // namespace

int main() {
    io::run(run);
}
