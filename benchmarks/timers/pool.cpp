// coppice: the timers of a pool, used by one thread and by two, under the locks that were compared
// for them (docs/decisions/0018-timers-on-pools.md).
#include "rivals.hpp"

#include "../harness.hpp"

#include <coppice/pool/internal/pool_timers.hpp>

#include <thread>
#include <vector>

namespace bench_timers {

namespace {

using namespace coppice::internal;

struct entry : pool_timer {
    entry() noexcept : pool_timer(nullptr, any_node) {}
};

void arm(entry& e, timer_shard& shard, std::int64_t ns, wheel_user user) {
    e.shard = &shard;
    e.due = pool_timers::tick_of(ns);
    e.phase.write(timer_phase::idle);
    e.stopped.write(false);
    bench::keep(shard.arm(e, 0, user));
}

class pool_timer_set final : public timer_set {
public:
    pool_timer_set(std::size_t waiting, pool_lock lock, bool beside)
        : user_(lock == pool_lock::biased ? wheel_user::owner : wheel_user::other),
          mine_(bias_of(lock)),
          others_(bias_of(lock)),
          waiting_(waiting) {
        for (entry& e : waiting_) arm(e, mine_, times_.next(), user_);
        if (!beside) return;
        timer_shard& shard = lock == pool_lock::one_for_all ? mine_ : others_;
        other_ = std::thread([this, &shard] {
            while (!stops_.load(relaxed)) use(shard, other_entry_, 100, other_times_);
        });
    }
    ~pool_timer_set() override {
        stops_.store(true, relaxed);
        if (other_.joinable()) other_.join();
        for (entry& e : waiting_) bench::keep(mine_.cancel(e, user_));
    }
    std::uint64_t arm_and_cancel(std::size_t size) override {
        times when;
        return use(mine_, one_, size, when);
    }

private:
    static biased_lock::initially bias_of(pool_lock lock) {
        return lock == pool_lock::biased ? biased_lock::initially::biased
                                         : biased_lock::initially::shared;
    }
    std::uint64_t use(timer_shard& shard, entry& e, std::size_t size, times& when) const {
        bench::hash sum;
        for (std::size_t i = 0; i != size; ++i) {
            const std::int64_t ns = when.next();
            arm(e, shard, ns, user_);
            bench::keep(shard.cancel(e, user_));
            sum.add(static_cast<std::uint64_t>(ns));
        }
        return sum.value();
    }

    const wheel_user user_;
    timer_shard mine_;
    timer_shard others_;
    times times_;
    times other_times_;
    std::vector<entry> waiting_;
    entry one_;
    entry other_entry_;
    atomic<bool> stops_{false};
    std::thread other_;
};

}  // namespace

std::unique_ptr<timer_set> make_pool(std::size_t waiting, pool_lock lock, bool beside) {
    return std::make_unique<pool_timer_set>(waiting, lock, beside);
}

}  // namespace bench_timers
