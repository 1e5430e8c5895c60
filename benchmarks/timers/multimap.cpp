// What programs write by hand: a balanced tree by time.
#include "rivals.hpp"

#include "../harness.hpp"

#include <map>

namespace bench_timers {

namespace {

class multimap_timers final : public timer_set {
public:
    explicit multimap_timers(std::size_t waiting) {
        for (std::size_t i = 0; i != waiting; ++i) tree_.emplace(times_.next(), this);
    }
    std::uint64_t arm_and_cancel(std::size_t size) override {
        bench::hash sum;
        times when;
        for (std::size_t i = 0; i != size; ++i) {
            const std::int64_t ns = when.next();
            tree_.erase(tree_.emplace(ns, this));
            sum.add(static_cast<std::uint64_t>(ns));
        }
        return sum.value();
    }

private:
    times times_;
    std::multimap<std::int64_t, void*> tree_;
};

}  // namespace

std::unique_ptr<timer_set> make_multimap(std::size_t waiting) {
    return std::make_unique<multimap_timers>(waiting);
}

}  // namespace bench_timers
