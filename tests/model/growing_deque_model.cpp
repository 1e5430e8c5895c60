// The growing deque: items are taken once while buffers change; counted buffers are freed once.
#include "model.hpp"

#include <coppice/pool/internal/growing_deque.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* header = "include/coppice/pool/internal/growing_deque.hpp";

struct item {
    plain<int> payload;
    atomic<int> taken{0};
    void take() {
        model::require(payload.read() == 42, "an item was read before it was written");
        model::require(taken.fetch_add(1, relaxed) == 0, "an item was taken twice");
    }
};

// The owner pushes four items into a deque for one, which grows twice. Thieves steal.
template <template <class> class Buffers, int Thieves>
struct grows : model::test<grows<Buffers, Thieves>, 1 + Thieves> {
    growing_deque<item, Buffers, 1, 4> deque;
    item items[4];

    void thread(unsigned index) {
        if (index == 0) {
            for (item& i : items) {
                i.payload.write(42);
                while (!deque.push(&i)) {
                    if (item* const mine = deque.pop()) mine->take();
                }
            }
            while (item* const mine = deque.pop()) mine->take();
        } else {
            for (int tries = 0; tries != 2; ++tries) {
                const stolen<item> got = deque.steal();
                if (got.outcome == steal_outcome::taken) got.item->take();
            }
        }
    }
    void after() {
        for (item& i : items) model::require(i.taken.load(relaxed) == 1, "an item was lost");
    }
};

}  // namespace

int main() {
    model::report report("growing_deque");
    report.holds<grows<kept_buffers, 1>>("kept buffers, a thief", {100'000});
    report.holds<grows<kept_buffers, 2>>("kept buffers, two thieves", {100'000});
    report.holds<grows<counted_buffers, 1>>("counted buffers, a thief", {100'000});
    report.holds<grows<counted_buffers, 2>>("counted buffers, two thieves", {100'000});
    report.dies_weakened<grows<kept_buffers, 2>>(header, "deque.grow", {100'000});
    report.dies_planted<grows<counted_buffers, 2>>("deque.ignore_readers", {100'000});
    report.survives_weakened<grows<counted_buffers, 2>>(
        header, "deque.left",
        "the edge keeps a thief's loads of a buffer before its end; relacy runs each thread's "
        "loads "
        "in order, so that the exchanges alone keep them there",
        {50'000});
    report.dies_weakened<grows<kept_buffers, 2>>(header, "deque.publish", {100'000});
    report.dies_weakened<grows<kept_buffers, 2>>(header, "deque.last", {100'000});
    return report.finish();
}
