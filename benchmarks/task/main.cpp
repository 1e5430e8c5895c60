// bench_task: awaiting a child task, and getting work to a pool from outside.
#include "rivals.hpp"

#include "../harness.hpp"

int main(int argc, char** argv) {
    using namespace bench_task;
    std::vector<bench::workload> workloads;
    workloads.push_back(
        {"co_await of a trivial child task",
         "await",
         2'000'000,
         1000,
         {{"lazy task, frames from malloc", await_malloc}, {"coppice task", await_coppice}}});
    workloads.push_back({"an element of a generator",
                         "element",
                         2'000'000,
                         1000,
                         {{"a coroutine by hand", generate_by_hand},
                          {"coppice generator", generate_coppice},
                          {"the same, 1,000 levels deep", generate_deep_coppice},
                          {"coppice async_generator", generate_async_coppice}}});
#ifdef BENCH_WITH_TBB
    workloads.push_back({"empty jobs from outside, pool of one",
                         "job",
                         200'000,
                         500,
                         {{"oneTBB enqueue", submit_tbb}, {"coppice submit", submit_coppice}}});
    workloads.push_back(
        {"one job at a time, waited for",
         "round trip",
         5'000,
         50,
         {{"oneTBB enqueue", round_trip_tbb}, {"coppice run", round_trip_coppice}}});
#endif
    return bench::run(workloads, bench::parse(argc, argv));
}
