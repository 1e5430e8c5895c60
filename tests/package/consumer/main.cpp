// Uses an installed coppice as a stranger does: the whole of it by one include, and linked code.
#include <coppice/coppice.hpp>

#include <cstdio>

int main() {
    coppice::thread_pool pool(2);
    const int answer = pool.run([] { return 42; });
    coppice::io::context context;
    context.run();  // nothing is pending: it returns
    std::printf("answer %d\n", answer);
    return answer == 42 ? 0 : 1;
}
