// A trace of fork-join: what each worker did and when, as a file for ui.perfetto.dev.
//   example_23_trace [FILE]
#include <coppice/pool.hpp>

#include <cstdint>
#include <cstdio>
#include <string>

using namespace coppice;

namespace {

long fib(long n) {
    if (n < 2) return n;
    const auto [a, b] = fork_join([n] { return fib(n - 1); }, [n] { return fib(n - 2); });
    return a + b;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string path = argc > 1 ? argv[1] : "fib.trace.json";
    // [trace]
    thread_pool pool({.threads = 2, .trace_events = 10'000});
    const long result = pool.run([] { return fib(30); });
    pool.write_trace(path);
    // [/trace]
    std::printf("fib(30) = %ld\n", result);

    std::uint64_t runs = 0;
    for (std::size_t i = 0; i != pool.size(); ++i) runs += pool.counts(i).runs;
    std::printf("%s\n", runs < 10'000 ? "few of its calls were stolen" : "many were stolen");
    return 0;
}
