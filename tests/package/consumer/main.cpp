// Uses an installed coppice as a user's project does: all of it by one include, and linked code.
#include <coppice/coppice.hpp>

#include <cstdio>

int main() {
    coppice::thread_pool pool(2);
    const int answer = pool.run([] { return 42; });
    coppice::io::context context;
    context.run();  // returns at once: nothing is pending
    std::printf("answer %d\n", answer);
    return answer == 42 ? 0 : 1;
}
