// select: takes the result of one of several operations, and loses nothing of the others.
// [serve]
#include <coppice/coppice.hpp>

#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <variant>

using namespace coppice;
using namespace std::chrono_literals;
namespace ex = coppice::execution;

namespace {

// Prints orders until they end, or until none has come for a second. An order that comes just as
// the second ends stays in the channel.
task<int> serve(channel<std::string>& orders, channel<int>& urgent, io::timer& timer) {
    int served = 0;
    for (;;) {
        auto got = co_await coppice::select(orders.receive(), urgent.receive(), timer.wait_for(1s));
        if (auto* order = std::get_if<0>(&got)) {
            if (!*order) co_return served;  // closed and drained
            std::printf("order: %s\n", (*order)->c_str());
        } else if (auto* number = std::get_if<1>(&got)) {
            std::printf("urgent: %d\n", number->value());
        } else {
            co_return served;  // no order for a second
        }
        ++served;
    }
}
// [/serve]

task<> ask(channel<std::string>& orders, channel<int>& urgent) {
    co_await orders.send("bread");
    co_await urgent.send(7);
    co_await orders.send("milk");
    orders.close();
}

}  // namespace

int main() {
    const auto shop = [](io::context& loop) -> task<int> {
        channel<std::string> orders(0);
        channel<int> urgent(0);
        io::timer timer(loop);
        const auto served =
            co_await ex::when_all(serve(orders, urgent, timer), ask(orders, urgent));
        co_return served;
    };
    std::printf("served: %d\n", io::run(shop).value_or(0));
}
