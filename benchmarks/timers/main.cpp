// A million timers wait; one more is armed and cancelled, again and again, as deadlines are. Also
// counts the allocations of that.
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/base/internal/atomic.hpp>

#include <new>

namespace {

constinit coppice::internal::atomic<std::size_t> allocated{0};

using namespace bench_timers;

struct named_set {
    const char* name;
    std::unique_ptr<timer_set> timers;
};

}  // namespace

void* operator new(std::size_t size) {
    allocated.fetch_add(1, coppice::internal::relaxed);
    if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}

int main(int argc, char** argv) {
    const bench::options o = bench::parse(argc, argv);
    const std::size_t waiting = o.tiny ? 1000 : 1'000'000;
    named_set sets[] = {
        {"coppice", make_coppice(waiting)},
        {"std::multimap", make_multimap(waiting)},
#if defined(BENCH_WITH_ASIO)
        {"asio::steady_timer", make_asio(waiting)},
#endif
    };
    bench::workload work{"timers: arm and cancel among a million", "timer", 200'000, 1000, {}};
    for (named_set& s : sets) {
        work.rivals.push_back(
            {s.name, [&s](std::size_t n) { return s.timers->arm_and_cancel(n); }});
    }
    const int status = bench::run({work}, o);
    bool none = true;
    for (named_set& s : sets) {
        const std::size_t before = allocated.load(coppice::internal::relaxed);
        bench::keep(s.timers->arm_and_cancel(1000));
        const std::size_t count = allocated.load(coppice::internal::relaxed) - before;
        std::printf("  %-34s %10.3f allocations per timer\n", s.name,
                    static_cast<double>(count) / 1000);
        if (&s == &sets[0]) none = count == 0;
    }
    return none ? status : 1;
}
