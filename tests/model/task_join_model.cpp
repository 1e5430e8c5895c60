// The join of waiting tasks: the parent continues once, after all its children, and sees what they
// did.
#include "model.hpp"

#include <coppice/base/internal/fork_deque.hpp>
#include <coppice/task/internal/task_join.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::execution::internal;

constexpr const char* header = "include/coppice/task/internal/task_join.hpp";

// Thread 0 is the main line and the worker; the other threads steal. A child notes in a plain field
// what it did.
template <int Thieves>
struct parent_of_three : model::test<parent_of_three<Thieves>, 1 + Thieves> {
    static constexpr std::size_t children = 3;
    struct quiet_team : fork_team {
        void published() noexcept override {}
        bool help(fork_deque&, const fork_slot&, std::uint32_t, bool) noexcept override {
            return false;
        }
    };
    quiet_team team;
    fork_deque deque{team, 0};
    task_join* join = nullptr;
    plain<int> did[children];
    atomic<int> parents{0};

    void child(int i) { did[i].write(did[i].read() + 1); }
    void parent() {
        for (plain<int>& each : did) model::require(each.read() == 1, "a child has not ended");
        model::require(parents.fetch_add(1, relaxed) == 0, "the parent went on twice");
    }
    template <int I>
    static void elsewhere(void* frame, fork_slot&) noexcept {
        auto& self = *static_cast<parent_of_three*>(frame);
        self.child(I);
        if (self.join->ended_elsewhere()) self.parent();
    }
    void before() {
        for (plain<int>& each : did) each.write(0);
    }
    void thread(unsigned index) {
        if (index != 0) {
            taken_call taken;
            for (int tries = 0; tries != 3; ++tries) {
                if (deque.steal(taken, index) == fork_steal::taken) {
                    taken.run();
                } else {
                    deque.ask();
                }
            }
            return;
        }
        task_join here;
        join = &here;
        fork_slot* slots[children] = {};
        slots[2] = deque.push(&elsewhere<2>, this);
        slots[1] = deque.push(&elsewhere<1>, this);
        child(0);
        std::int32_t away = 0;
        for (int i = 1; i != static_cast<int>(children); ++i) {
            if (deque.pop(slots[i])) {
                child(i);
            } else {
                deque.let_go(slots[i]);
                ++away;
            }
        }
        if (here.main_line_ended(away)) parent();
        // The join lives until the parent continues.
        while (parents.load(acquire) == 0) spin_hint();
    }
    void after() { model::require(parents.load(relaxed) == 1, "the parent never went on"); }
};

}  // namespace

int main() {
    model::report report("task_join");
    report.holds<parent_of_three<1>>("one thief", {100'000});
    report.holds<parent_of_three<2>>("two thieves", {100'000});
    report.dies_weakened<parent_of_three<2>>(header, "task_join.ended", {100'000});
    return report.finish();
}
