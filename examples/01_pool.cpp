// Work on a pool: run a function there, get its result or its exception.
#include <coppice/pool.hpp>

#include <cstdio>
#include <stdexcept>

int main() {
    coppice::thread_pool pool(2);

    const int answer = pool.run([] { return 6 * 7; });
    std::printf("answer: %d\n", answer);

    try {
        pool.run([] { throw std::runtime_error("no such luck"); });
    } catch (const std::runtime_error& error) {
        std::printf("error: %s\n", error.what());
    }
}
