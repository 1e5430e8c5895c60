// Fork-join: plain functions, loops, and sums in parallel, without grain sizes.
// [top]
#include <coppice/pool.hpp>

#include <cstdio>
#include <stdexcept>
#include <vector>

using namespace coppice;
// [/top]

namespace {

// [fork_join]
long fib(long n) {
    if (n < 2) return n;
    const auto [a, b] = fork_join([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
    return a + b;
}
// [/fork_join]

}  // namespace

int main() {
    thread_pool pool(2);
    std::printf("fib(25) = %ld\n", pool.run([] { return fib(25); }));

    // [loops]
    std::vector<double> squares(1000);
    const double sum = pool.run([&] {
        parallel_for(std::size_t{0}, squares.size(),
                     [&](std::size_t i) { squares[i] = static_cast<double>(i * i); });
        return parallel_reduce(
            std::size_t{0}, squares.size(), 0.0, [&](std::size_t i) { return squares[i]; },
            [](double a, double b) { return a + b; });
    });
    // [/loops]
    std::printf("sum of squares = %.0f\n", sum);

    // [errors]
    try {
        pool.run([] {
            fork_join([] { throw std::runtime_error("the first one thrown, in order"); },
                      [] { throw std::runtime_error("not heard"); });
        });
    } catch (const std::runtime_error& error) {
        std::printf("%s\n", error.what());
    }
    // [/errors]

    // [stop]
    inplace_stop_source source;
    const bool all = pool.run([&] {
        const auto [ran] = fork_join(source.get_token(), [&] {
            return parallel_for(0, 1'000'000'000, [&](int i) {
                if (i == 0) source.request_stop();
            });
        });
        return ran;
    });
    // [/stop]
    std::printf("all of a stopped loop: %s\n", all ? "yes" : "no");
}
