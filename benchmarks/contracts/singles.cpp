// The cost of one schedule, one creation, and one wait, beside that of queues.
#include <coppice/contract.hpp>

#include "contest.hpp"
#include "workloads.hpp"

#if defined(BENCH_WITH_BOOST)
#include <boost/lockfree/queue.hpp>
#endif
#if defined(BENCH_WITH_TBB)
#include <tbb/concurrent_queue.h>
#endif
#if defined(BENCH_WITH_MOODYCAMEL)
#include <concurrentqueue/concurrentqueue.h>
#endif

namespace bench_contracts {

namespace {

std::uint64_t hash_of(std::size_t size, std::uint64_t runs) {
    return bench::hash().add(size).add(runs).value();
}

template <class Group>
std::uint64_t schedule_and_execute(std::size_t size) {
    std::uint64_t runs = 0;
    Group group(64);
    coppice::work_contract contract = group.create_contract([&] { ++runs; });
    for (std::size_t i = 0; i != size; ++i) {
        contract.schedule();
        group.execute_next_contract();
    }
    return hash_of(size, runs);
}
std::uint64_t reschedule(std::size_t size) {
    std::uint64_t runs = 0;
    coppice::work_contract_group group(64);
    const coppice::work_contract contract = group.create_contract(
        [&](coppice::work_contract_token& token) { ++runs, token.schedule(); },
        coppice::initial_state::scheduled);
    for (std::size_t i = 0; i != size; ++i) group.execute_next_contract();
    return hash_of(size, runs);
}
// One task through a queue.
template <class Push, class Pop>
std::uint64_t push_and_pop(std::size_t size, Push push, Pop pop) {
    queued_task task;
    for (std::size_t i = 0; i != size; ++i) {
        push(&task);
        queued_task* popped = nullptr;
        pop(popped);
        ++popped->runs;
    }
    return hash_of(size, task.runs);
}

std::uint64_t create_and_release(std::size_t size) {
    std::uint64_t runs = 0;
    coppice::work_contract_group group(64);
    for (std::size_t i = 0; i != size; ++i) {
        coppice::work_contract contract = group.create_contract([] {}, [&] { ++runs; });
        contract.release();
        group.execute_next_contract();
    }
    return hash_of(size, runs);
}
// The alternative: a task on the heap that is run once and destroyed.
std::uint64_t allocate_and_run(std::size_t size) {
    std::uint64_t runs = 0;
    for (std::size_t i = 0; i != size; ++i) {
        auto task = std::make_unique<std::function<void()>>([&] { ++runs; });
        bench::keep(task.get());
        (*task)();
    }
    return hash_of(size, runs);
}

bench::workload one_execution() {
    bench::workload w{"one schedule and execute, one thread", "execution", 1'000'000, 100, {}};
    w.rivals.push_back(
        {"schedule, execute_next_contract", schedule_and_execute<coppice::work_contract_group>});
    w.rivals.push_back(
        {"the same, blocking group", schedule_and_execute<coppice::blocking_work_contract_group>});
    w.rivals.push_back({"token.schedule, execute_next", reschedule});
#if defined(BENCH_WITH_BOOST)
    w.rivals.push_back({"boost::lockfree::queue", [](std::size_t size) {
                            boost::lockfree::queue<queued_task*> queue(64);
                            return push_and_pop(
                                size, [&](queued_task* t) { queue.push(t); },
                                [&](queued_task*& t) { queue.pop(t); });
                        }});
#endif
#if defined(BENCH_WITH_TBB)
    w.rivals.push_back({"tbb::concurrent_queue", [](std::size_t size) {
                            tbb::concurrent_queue<queued_task*> queue;
                            return push_and_pop(
                                size, [&](queued_task* t) { queue.push(t); },
                                [&](queued_task*& t) { queue.try_pop(t); });
                        }});
#endif
#if defined(BENCH_WITH_MOODYCAMEL)
    w.rivals.push_back({"moodycamel", [](std::size_t size) {
                            moodycamel::ConcurrentQueue<queued_task*> queue(64);
                            return push_and_pop(
                                size, [&](queued_task* t) { queue.enqueue(t); },
                                [&](queued_task*& t) { queue.try_dequeue(t); });
                        }});
    w.rivals.push_back({"moodycamel, tokens", [](std::size_t size) {
                            moodycamel::ConcurrentQueue<queued_task*> queue(64);
                            moodycamel::ProducerToken producer(queue);
                            moodycamel::ConsumerToken consumer(queue);
                            return push_and_pop(
                                size, [&](queued_task* t) { queue.enqueue(producer, t); },
                                [&](queued_task*& t) { queue.try_dequeue(consumer, t); });
                        }});
#endif
    return w;
}

}  // namespace

bool run_singles(const bench::options& options) {
    return bench::run({one_execution(),
                       {"create, release and run the release, one thread",
                        "contract",
                        300'000,
                        100,
                        {{"create_contract, release", create_and_release},
                         {"std::function on the heap", allocate_and_run}}}},
                      options) == 0;
}

}  // namespace bench_contracts
