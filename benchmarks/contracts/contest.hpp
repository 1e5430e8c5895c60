// The contest of the CppCon 2024 talk on work contracts, in which tasks are due again at once.
#pragma once
// Each of `tasks` tasks runs again and again, on the thread that takes it. A thread of a queue pops
// a task, runs it, and pushes it. A contract runs and schedules itself. The data of a task, its
// count, has a cache line of its own for every rival; for a contract, that is the contract's line.
//
// Contestants and their threads live for a whole table. So the counts of all repetitions add up,
// and each repetition continues the round in which the previous one ended.

#include <coppice/base/internal/atomic.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "../harness.hpp"

namespace bench_contracts {

// The task of the talk: a product of hashes, in a variable that is written to memory each time. The
// text has the length at which one hash takes the time that the talk gives. Rounds: 0, 1, 64, 256.
template <unsigned Rounds>
inline void run_task() {
    static constexpr std::string_view text =
        "a contract is a callable that is made once and run many times; scheduling it sets a bit";
    volatile std::uint64_t product = 1;
    for (unsigned i = 0; i != Rounds; ++i) {
        std::string_view hashed = text;
        bench::keep(hashed);
        product = product * std::hash<std::string_view>()(hashed);
    }
    bench::keep(product);
}

class contestant {
public:
    virtual ~contestant() = default;
    // Runs tasks until `stop`, as thread number `thread`. Returns how many it ran.
    virtual std::uint64_t serve(unsigned thread, const coppice::internal::atomic<bool>& stop) = 0;
    // Ends the contest. Returns how often each task ran: ~0 for a task that was lost or duplicated.
    virtual std::vector<std::uint64_t> finish() = 0;
};
using contestant_ptr = std::unique_ptr<contestant>;

struct contest_rival {
    const char* name;
    // Returns null if the rival does not offer that many rounds.
    contestant_ptr (*make)(unsigned rounds, std::size_t tasks, unsigned threads);
};

// Makes a Contestant<Rounds>(args...) for a number of rounds that is known at run time.
template <template <unsigned> class Contestant, class... Args>
contestant_ptr make_contestant(unsigned rounds, const Args&... args) {
    switch (rounds) {
        case 0:
            return std::make_unique<Contestant<0>>(args...);
        case 1:
            return std::make_unique<Contestant<1>>(args...);
        case 64:
            return std::make_unique<Contestant<64>>(args...);
        default:
            return std::make_unique<Contestant<256>>(args...);
    }
}

// A task of the rivals that are queues.
struct alignas(64) queued_task {
    std::uint64_t runs = 0;
};

// Returns the counts of `tasks`, given the pointers that were left in the queue at the end.
inline std::vector<std::uint64_t> counts_of(const std::vector<queued_task>& tasks,
                                            const std::vector<queued_task*>& left) {
    std::vector<int> there(tasks.size());
    for (const queued_task* t : left) ++there[static_cast<std::size_t>(t - tasks.data())];
    std::vector<std::uint64_t> counts(tasks.size(), ~std::uint64_t{0});
    for (std::size_t i = 0; i != tasks.size(); ++i) {
        if (there[i] == 1 && left.size() == tasks.size()) counts[i] = tasks[i].runs;
    }
    return counts;
}

contestant_ptr make_next(unsigned rounds, std::size_t tasks, unsigned threads);
contestant_ptr make_fused(unsigned rounds, std::size_t tasks, unsigned threads);
contestant_ptr make_batched(unsigned rounds, std::size_t tasks, unsigned threads);
contestant_ptr make_apart(unsigned rounds, std::size_t tasks, unsigned threads);
contestant_ptr make_boost(unsigned rounds, std::size_t tasks, unsigned threads);
contestant_ptr make_tbb(unsigned rounds, std::size_t tasks, unsigned threads);
contestant_ptr make_moodycamel(unsigned rounds, std::size_t tasks, unsigned threads);
contestant_ptr make_moodycamel_tokens(unsigned rounds, std::size_t tasks, unsigned threads);

// Makes 64 busy contracts next to each other, and one far from them.
contestant_ptr make_lone_next();
contestant_ptr make_lone_fused();

}  // namespace bench_contracts
