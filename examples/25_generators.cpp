// Coroutines with many elements or with many waiters: generator, async_generator, shared_task.
// [top]
#include <coppice/coppice.hpp>

#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <ranges>
#include <string>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;
// [/top]

namespace {

// [generator]
generator<int> fibonacci() {
    for (int a = 0, b = 1;; b += a, a = b - a) co_yield a;
}

void print_some() {
    for (const int n : fibonacci() | std::views::take(10)) std::printf("%d ", n);
    std::puts("");
}
// [/generator]

// [elements_of]
struct tree {
    int value;
    std::unique_ptr<tree> left, right;
};

generator<int> in_order(const tree* t) {
    if (t == nullptr) co_return;
    co_yield coppice::ranges::elements_of(in_order(t->left.get()));
    co_yield t->value;
    co_yield coppice::ranges::elements_of(in_order(t->right.get()));
}
// [/elements_of]

// [async]
async_generator<int> readings(io::timer& timer, int count) {
    for (int i = 1; i <= count; ++i) {
        co_await timer.wait_for(1ms);  // the time that a sensor or a socket would take
        co_yield 10 * i;
    }
}

task<int> sum_of(async_generator<int> numbers) {
    int sum = 0;
    while (const std::optional<int> n = co_await numbers.next()) sum += *n;
    co_return sum;
}
// [/async]

// [stop]
task<> gives_up(io::timer& timer) {
    async_generator<int> numbers = readings(timer, 1000);
    const std::optional<int> first = co_await numbers.next();
    std::printf("the first is %d\n", first.value_or(0));
}  // destroys the body, which is suspended at its co_yield
// [/stop]

// [shared]
shared_task<std::string> configuration(io::timer& timer) {
    std::puts("reads the configuration");
    co_await timer.wait_for(1ms);
    co_return "verbose";
}

task<std::size_t> worker(shared_task<std::string> shared) {
    const std::string& text = co_await shared;  // the same object for every worker
    co_return text.size();
}
// [/shared]

}  // namespace

int main() {
    print_some();
    const tree three{2, std::make_unique<tree>(1), std::make_unique<tree>(3)};
    for (const int n : in_order(&three)) std::printf("%d ", n);
    std::puts("");
    io::run([](io::context& loop) -> task<> {
        io::timer timer(loop);
        std::printf("the sum is %d\n", co_await sum_of(readings(timer, 4)));
        co_await gives_up(timer);
        const shared_task<std::string> shared = configuration(timer);
        const auto [a, b] = co_await ex::when_all(worker(shared), worker(shared));
        std::printf("%zu and %zu characters\n", a, b);
    });
}
