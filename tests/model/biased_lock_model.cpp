// The model of biased_lock: the owner and other threads exclude each other, biased or not.
#include "model.hpp"

#include <coppice/base/internal/biased_lock.hpp>

namespace {

using namespace coppice::internal;

constexpr const char* header = "include/coppice/base/internal/biased_lock.hpp";

// The owner enters as often as it takes to restore the bias while the others come and go.
template <int Others, bool Membarrier = true>
struct owner_and_others : model::test<owner_and_others<Others, Membarrier>, 1 + Others> {
    static constexpr int entries = 3;
    biased_lock lock{biased_lock::initially::biased};
    plain<int> value{0};

    void before() {
        this->fences.light_is_free = Membarrier;
        value.write(0);
    }
    void add() { value.write(value.read() + 1); }
    void thread(unsigned index) {
        if (index == 0) {
            for (int i = 0; i != entries; ++i) {
                const bool by_bias = lock.enter_as_owner();
                add();
                lock.leave_as_owner(by_bias);
            }
        } else {
            lock.lock();
            add();
            lock.unlock();
        }
    }
    void after() { model::require(value.read() == entries + Others, "an addition was lost"); }
};

// A lock without an owner.
struct shared_lock : model::test<shared_lock, 2> {
    biased_lock lock{biased_lock::initially::shared};
    plain<int> value{0};
    void before() { value.write(0); }
    void thread(unsigned) {
        lock.lock();
        value.write(value.read() + 1);
        lock.unlock();
    }
    void after() { model::require(value.read() == 2, "an addition was lost"); }
};

}  // namespace

int main() {
    model::report report("biased_lock");
    report.holds<owner_and_others<1>>("the owner and another thread", {100'000});
    report.holds<owner_and_others<2>>("the owner and two others", {200'000});
    report.holds<owner_and_others<2, false>>("the same without membarrier", {100'000});
    report.holds<shared_lock>("a lock without an owner", {50'000});
    report.dies_weakened<owner_and_others<1>>(header, "biased_lock.revoke", {100'000});
    report.dies_weakened<owner_and_others<1>>(header, "biased_lock.inside", {100'000});
    report.dies_weakened<owner_and_others<2>>(header, "biased_lock.lock", {100'000});
    report.dies_planted<owner_and_others<1>>("biased_lock.no_wait", {100'000});
    return report.finish();
}
