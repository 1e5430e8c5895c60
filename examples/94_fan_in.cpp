// Fan-in: several producers compute in parallel, and one map collects what they find.
#include <coppice/coppice.hpp>

#include <cstdio>
#include <map>

using namespace coppice;
namespace ex = coppice::execution;

using totals = std::map<int, int>;  // how many numbers have so many divisors

int divisors(int n) {
    int count = 0;
    for (int d = 1; d <= n; ++d) count += n % d == 0 ? 1 : 0;
    return count;
}

// Computes on the pool, and is back on the loop after each co_await: only the loop's thread touches
// `found`, which needs no lock.
task<> produce(int from, int to, thread_pool& pool, totals& found) {
    for (int n = from; n != to; ++n) {
        const int count =
            co_await (ex::schedule(pool.get_scheduler()) | ex::then([n] { return divisors(n); }));
        ++found[count];
    }
}

int main() {
    thread_pool pool;
    totals found;
    io::run(ex::when_all(produce(1, 100, pool, found), produce(100, 200, pool, found),
                         produce(200, 300, pool, found)));
    std::printf("below 300 there are %d primes\n", found[2]);
}
