// Tasks and senders: start on a pool, compose, wait.
#include <coppice/coppice.hpp>

#include <cstdio>
#include <stdexcept>

using namespace coppice;
namespace ex = coppice::execution;

namespace {

// [tasks]
task<int> square(int n) {
    co_return n* n;
}

task<int> sum_of_squares(int most) {
    int sum = 0;
    for (int n = 1; n <= most; ++n) sum += co_await square(n);
    co_return sum;
}

task<int> careful(int n) {
    try {
        if (n < 0) throw std::invalid_argument("negative");
        co_return co_await sum_of_squares(n);
    } catch (const std::invalid_argument&) {
        co_return 0;
    }
}
// [/tasks]

}  // namespace

int main() {
    thread_pool pool(2);
    // [compose]
    auto work = ex::starts_on(pool.get_scheduler(), careful(10)) |
                ex::then([](int sum) { return sum * 2; });
    const auto [doubled] = this_thread::sync_wait(std::move(work)).value();
    // [/compose]
    std::printf("%d\n", doubled);
    std::printf("%d\n", std::get<0>(this_thread::sync_wait(careful(-1)).value()));
}
