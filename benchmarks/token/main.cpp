// bench_token: what each completion token adds to an operation, beside Asio and the paper.
// Source of the workload and of the figures: P0055R1, "Performance for callbacks and callbacks
// only" and "Coroutines offer lower overhead than the callback model" (2015, other machines).
#include "rivals.hpp"

#include "../harness.hpp"

#include <cstdio>

namespace {

void print_paper() {
    std::puts(
        "P0055R1, ns per iteration of a hundred million: coroutine 5.6 to 6.2; callback, default "
        "allocator 6.7 to 6.8;\n"
        "callback, arena 7.0 to 7.5; await 7.9 beside use_future 390 (x 49).\n");
}

// Ten repetitions, including the warm-up: a hundred million operations of each rival.
constexpr std::size_t full = 10'000'000;

}  // namespace

int main(int argc, char** argv) {
    using namespace bench_token;
    const bench::options options = bench::parse(argc, argv);
    std::vector<bench::workload> workloads;
    workloads.push_back({"operations completed from a queue",
                         "operation",
                         full,
                         1000,
                         {
                             {"intrusive callback by hand", intrusive_by_hand},
                             {"the paper's awaiter by hand", awaiter_by_hand},
                             {"await", await_coppice},
                             {"await, by a completion", await_any},
                             {"await, if it might end inside", await_looking},
                             {"await in a task", await_in_task},
                             {"callback, recycled (default)", callback_default},
                             {"callback, arena", callback_arena},
                             {"callback, std::allocator", callback_malloc},
                             {"block, driving", block_coppice},
                             {"use_future", future_coppice},
#ifdef BENCH_WITH_ASIO
                             {"asio callback", callback_asio},
                             {"asio deferred", deferred_asio},
                             {"asio use_awaitable", awaitable_asio},
                             {"asio use_future", future_asio},
#endif
                         }});
    workloads.push_back({"operations that complete inside their initiation",
                         "operation",
                         full,
                         1000,
                         {{"a loop by hand", inline_by_hand},
                          {"await", inline_await},
                          {"callback", inline_callback}}});
    workloads.push_back({"operations completed by another thread",
                         "operation",
                         20'000,
                         100,
                         {
                             {"block", other_thread_block},
                             {"use_future", other_thread_future},
#ifdef BENCH_WITH_ASIO
                             {"asio use_future", other_thread_future_asio},
#endif
                         }});
    if (!options.tiny) print_paper();
    return bench::run(workloads, options);
}
