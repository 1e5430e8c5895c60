// Timers of a loop and of a pool. A million timers wait; one more is armed and canceled, again and
// again, as deadlines are. Also counts the allocations that this makes.
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/base/internal/atomic.hpp>

#include <new>
#include <vector>

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
    named_set pools[] = {
        {"a wheel per worker, biased lock", make_pool(0, pool_lock::biased, false)},
        {"the same among a million", make_pool(waiting, pool_lock::biased, false)},
        {"a wheel per worker, plain lock", make_pool(0, pool_lock::plain, false)},
    };
    bench::workload on_a_pool{"timers on a pool: arm and cancel", "timer", 200'000, 1000, {}, true};
    for (named_set& s : pools) {
        on_a_pool.rivals.push_back(
            {s.name, [&s](std::size_t n) { return s.timers->arm_and_cancel(n); }});
    }
    const auto beside = [&](const char* name, pool_lock lock) {
        return bench::rival{
            name, [lock](std::size_t n) { return make_pool(0, lock, true)->arm_and_cancel(n); }};
    };
    const bench::workload two_threads{
        "timers on a pool: arm and cancel, two threads",
        "timer",
        200'000,
        1000,
        {beside("a wheel per worker, biased lock", pool_lock::biased),
         beside("a wheel per worker, plain lock", pool_lock::plain),
         beside("one wheel for all, plain lock", pool_lock::one_for_all)}};
    const bench::workload awaits{
        "timers on a pool: a turn of a task",
        "turn",
        100'000,
        1000,
        {{"without a limit", [](std::size_t n) { return await_turns(n, false); }},
         {"under a timeout", [](std::size_t n) { return await_turns(n, true); }}}};
    std::vector<bench::figure> figures;
    const int status = bench::run({work, on_a_pool, two_threads, awaits}, o, figures);
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
