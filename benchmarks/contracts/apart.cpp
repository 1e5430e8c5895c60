// The control of the contest: each thread has tasks of its own, so its count shows how fast the
// machine lets it run.
#include "contest.hpp"

namespace bench_contracts {

namespace {

template <unsigned Rounds>
class apart_contestant : public contestant {
public:
    apart_contestant(std::size_t tasks, unsigned threads) : tasks_(tasks), next_(threads) {
        for (std::size_t i = 0; i != threads; ++i) next_[i].task = first(i);
    }
    std::uint64_t serve(unsigned thread, const coppice::internal::atomic<bool>& stop) override {
        const std::size_t begin = first(thread), end = first(thread + 1);
        std::size_t i = next_[thread].task;
        std::uint64_t ran = 0;
        for (; !stop.load(coppice::internal::relaxed); ++ran) {
            ++tasks_[i].runs;
            run_task<Rounds>();
            i = i + 1 == end ? begin : i + 1;
        }
        next_[thread].task = i;
        return ran;
    }
    std::vector<std::uint64_t> finish() override {
        std::vector<std::uint64_t> counts;
        for (const queued_task& t : tasks_) counts.push_back(t.runs);
        return counts;
    }

private:
    struct alignas(64) place {
        std::size_t task = 0;
    };
    std::size_t first(std::size_t thread) const { return tasks_.size() * thread / next_.size(); }

    std::vector<queued_task> tasks_;
    std::vector<place> next_;
};

}  // namespace

contestant_ptr make_apart(unsigned rounds, std::size_t tasks, unsigned threads) {
    return make_contestant<apart_contestant>(rounds, tasks, threads);
}

}  // namespace bench_contracts
