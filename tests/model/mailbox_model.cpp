// The mailbox model: two threads push, and a loop sleeps and takes. Nothing is lost, and the loop
// does not sleep on.
#include "model.hpp"

#include <coppice/io/internal/mailbox.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
constexpr const char* header = "include/coppice/io/internal/mailbox.hpp";

struct item {
    item* next = nullptr;
    plain<int> payload;
};

template <int Pushers>
struct pushers_and_loop : model::test<pushers_and_loop<Pushers>, Pushers + 1> {
    io::internal::mailbox<item> box;
    item items[Pushers];
    atomic<std::uint32_t> bell{0};  // stands for the eventfd
    int taken = 0;

    void thread(unsigned index) {
        if (index < Pushers) {
            items[index].payload.write(42);
            if (box.push(items[index]) == io::internal::mailbox<item>::pushed::wake_the_loop) {
                bell.store(1, relaxed);
                futex_wake_one(bell);
            }
            return;
        }
        while (taken != Pushers) {
            for (item* i = box.take(); i != nullptr;) {
                item* const next = i->next;
                model::require(i->payload.read() == 42, "an item was seen before it was written");
                ++taken;
                i = next;
            }
            if (taken != Pushers && box.sleep()) {
                while (bell.load(relaxed) == 0) futex_wait(bell, std::uint32_t{0});
                bell.store(0, relaxed);
            }
        }
    }
    void after() { model::require(taken == Pushers, "an item was lost"); }
};

}  // namespace

int main() {
    model::report report("mailbox");
    report.holds<pushers_and_loop<1>>("one pusher reaches the loop", {50'000});
    report.holds<pushers_and_loop<2>>("two pushers reach the loop", {200'000});
    report.dies_weakened<pushers_and_loop<2>>(header, "mailbox.hand_over", {50'000});
    report.dies_planted<pushers_and_loop<2>>("mailbox.sleep_unasked", {50'000});
    return report.finish();
}
