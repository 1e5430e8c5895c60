// The time from a schedule to the run, on a thread that sleeps and on a thread that polls.
#include <coppice/contract.hpp>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "workloads.hpp"

#if defined(BENCH_WITH_TBB)
#include <tbb/concurrent_queue.h>
#endif
#if defined(BENCH_WITH_MOODYCAMEL)
#include <concurrentqueue/blockingconcurrentqueue.h>
#endif

namespace bench_contracts {

namespace {

using clock = std::chrono::steady_clock;
using samples = std::vector<double>;

// One thread posts, waits for the run, waits until the other must be idle, and posts again.
class pings {
public:
    pings(std::size_t count, std::chrono::microseconds pause) : count_(count), pause_(pause) {}

    // `Post` makes the other thread call run() once.
    template <class Post>
    samples post(Post make_it_run) {
        samples latencies;
        for (std::size_t i = 0; i != count_; ++i) {
            const auto begin = clock::now();
            const auto idle = begin + pause_;
            while (clock::now() < idle) coppice::internal::spin_hint();
            posted_ = clock::now();
            make_it_run();
            while (answered_.load(coppice::internal::acquire) == i) coppice::internal::spin_hint();
            latencies.push_back(took_);
        }
        return latencies;
    }
    void run() {
        took_ = std::chrono::duration<double, std::nano>(clock::now() - posted_).count();
        answered_.fetch_add(1, coppice::internal::release);
    }
    bool over() const { return answered_.load(coppice::internal::relaxed) == count_; }

private:
    const std::size_t count_;
    const std::chrono::microseconds pause_;
    clock::time_point posted_;  // ordered by the post
    double took_ = 0;           // ordered by answered_
    coppice::internal::atomic<std::size_t> answered_{0};
};

samples parked_contract(pings& p) {
    coppice::blocking_work_contract_group group(64);
    coppice::inplace_stop_source stop;
    coppice::work_contract contract = group.create_contract([&] { p.run(); });
    std::thread worker([&] {
        while (group.execute_next_contract(stop.get_token())) {
        }
    });
    samples s = p.post([&] { contract.schedule(); });
    stop.request_stop();
    worker.join();
    return s;
}
samples polled_contract(pings& p) {
    coppice::work_contract_group group(64);
    coppice::work_contract contract = group.create_contract([&] { p.run(); });
    std::thread worker([&] {
        while (!p.over()) group.execute_next_contract();
    });
    samples s = p.post([&] { contract.schedule(); });
    worker.join();
    return s;
}
// The floor: the thread sleeps on one word, and searches for nothing.
samples parked_futex(pings& p) {
    coppice::internal::atomic<std::uint32_t> word{0};
    std::thread worker([&] {
        while (!p.over()) {
            while (word.load(coppice::internal::acquire) == 0)
                coppice::internal::futex_wait(word, 0u);
            word.store(0, coppice::internal::relaxed);
            p.run();
        }
    });
    samples s = p.post([&] {
        word.store(1, coppice::internal::release);
        coppice::internal::futex_wake_one(word);
    });
    worker.join();
    return s;
}
samples polled_word(pings& p) {
    coppice::internal::atomic<std::uint32_t> word{0};
    std::thread worker([&] {
        while (!p.over()) {
            if (word.load(coppice::internal::acquire) == 0) continue;
            word.store(0, coppice::internal::relaxed);
            p.run();
        }
    });
    samples s = p.post([&] { word.store(1, coppice::internal::release); });
    worker.join();
    return s;
}
samples condition_variable(pings& p) {
    std::mutex mutex;
    std::condition_variable changed;
    bool posted = false;
    std::thread worker([&] {
        while (!p.over()) {
            {
                std::unique_lock lock(mutex);
                changed.wait(lock, [&] { return posted; });
                posted = false;
            }
            p.run();
        }
    });
    samples s = p.post([&] {
        {
            const std::lock_guard lock(mutex);
            posted = true;
        }
        changed.notify_one();
    });
    worker.join();
    return s;
}
#if defined(BENCH_WITH_TBB)
samples parked_tbb(pings& p) {
    tbb::concurrent_bounded_queue<int> queue;
    std::thread worker([&] {
        for (int popped; !p.over();) {
            queue.pop(popped);
            p.run();
        }
    });
    samples s = p.post([&] { queue.push(1); });
    worker.join();
    return s;
}
samples polled_tbb(pings& p) {
    tbb::concurrent_queue<int> queue;
    std::thread worker([&] {
        for (int popped; !p.over();) {
            if (queue.try_pop(popped)) p.run();
        }
    });
    samples s = p.post([&] { queue.push(1); });
    worker.join();
    return s;
}
#endif
#if defined(BENCH_WITH_MOODYCAMEL)
samples parked_moodycamel(pings& p) {
    moodycamel::BlockingConcurrentQueue<int> queue;
    std::thread worker([&] {
        for (int popped; !p.over();) {
            queue.wait_dequeue(popped);
            p.run();
        }
    });
    samples s = p.post([&] { queue.enqueue(1); });
    worker.join();
    return s;
}
samples polled_moodycamel(pings& p) {
    moodycamel::ConcurrentQueue<int> queue;
    std::thread worker([&] {
        for (int popped; !p.over();) {
            if (queue.try_dequeue(popped)) p.run();
        }
    });
    samples s = p.post([&] { queue.enqueue(1); });
    worker.join();
    return s;
}
#endif

struct wake_rival {
    const char* name;
    samples (*run)(pings&);
};

void compare(const char* title, const std::vector<wake_rival>& rivals, std::size_t count,
             std::chrono::microseconds pause, const bench::options& options) {
    std::vector<samples> all(rivals.size());
    for (int i = 0; i != (options.tiny ? 1 : options.repetitions); ++i) {
        for (std::size_t r = 0; r != rivals.size(); ++r) {
            pings p(options.tiny ? 20 : count, pause);
            for (const double s : rivals[r].run(p)) all[r].push_back(s);
        }
    }
    if (!options.tiny) std::printf("%s, ns from the schedule to the run\n", title);
    for (std::size_t r = 0; r != rivals.size(); ++r) {
        if (options.tiny) {
            std::printf("workload %s (%s) hash %016llx\n", title, rivals[r].name,
                        static_cast<unsigned long long>(bench::hash().add(all[r].size()).value()));
            continue;
        }
        std::sort(all[r].begin(), all[r].end());
        const double p50 = all[r][all[r].size() / 2];
        const double p99 = all[r][all[r].size() * 99 / 100];
        std::printf("  %-34s p50 %10.0f  p99 %10.0f\n", rivals[r].name, p50, p99);
        bench::write(options, {title, rivals[r].name, "ns to the run", p50, all[r].front(), p99});
    }
}

}  // namespace

void run_wake(const bench::options& options) {
    compare("wake-up of a parked worker",
            {
                {"blocking_work_contract_group", parked_contract},
                {"a futex alone", parked_futex},
                {"condition_variable", condition_variable},
#if defined(BENCH_WITH_TBB)
                {"tbb::concurrent_bounded_queue", parked_tbb},
#endif
#if defined(BENCH_WITH_MOODYCAMEL)
                {"moodycamel, blocking", parked_moodycamel},
#endif
            },
            500, std::chrono::microseconds(200), options);
    compare("wake-up of a polling worker",
            {
                {"work_contract_group", polled_contract},
                {"a word alone", polled_word},
#if defined(BENCH_WITH_TBB)
                {"tbb::concurrent_queue", polled_tbb},
#endif
#if defined(BENCH_WITH_MOODYCAMEL)
                {"moodycamel", polled_moodycamel},
#endif
            },
            5'000, std::chrono::microseconds(2), options);
}

}  // namespace bench_contracts
