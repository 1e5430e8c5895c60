// Sorts on a pool: by a projection, in a stable order, the median only, and a partition.
#include <coppice/parallel.hpp>
#include <coppice/pool.hpp>

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace {

namespace parallel = coppice::parallel;

struct order {
    int number;
    long price;
    bool is_open;
};

}  // namespace

int main() {
    std::vector<order> orders;
    for (int i = 0; i != 100'000; ++i) orders.push_back({i, i * 7'919L % 10'007, i % 3 == 0});
    coppice::thread_pool pool(2);
    // [sorts]
    const auto on_pool = parallel::on(pool);
    parallel::stable_sort(on_pool, orders, std::greater<>(), &order::price);
    std::printf("dearest: %d, then %d\n", orders[0].number, orders[1].number);

    const auto median = orders.begin() + 50'000;
    parallel::nth_element(on_pool, orders, median, std::less<>(), &order::price);
    std::printf("median price: %ld\n", median->price);

    const auto closed = parallel::partition(on_pool, orders, &order::is_open);
    std::printf("closed: %zu of %zu\n", closed.size(), orders.size());

    parallel::sort(on_pool, orders, std::less<>(), &order::number);
    std::printf("number 4711 costs %ld\n", orders[4711].price);
    // [/sorts]
}
