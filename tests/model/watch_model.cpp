// The model of a watch: every waiter sees a new version, with what was written before it was set.
#include "channel_model.hpp"

#include <coppice/sync/internal/watch_core.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
constexpr const char* lock_header = "include/coppice/sync/internal/queue_lock.hpp";

using core = watch_core<int>;

std::uint64_t changed(core& c, std::uint64_t seen) {
    if (const std::uint64_t now = c.version(); now != seen) return now;
    spinning<watch_waiter> w;
    std::uint64_t version = seen;
    c.queue().lock();
    const std::uint64_t now = c.version_inside();
    if (now == seen) {
        w.version = &version;
        c.link(w);
    }
    c.queue().unlock();
    if (now != seen) return now;
    w.wait();
    return version;
}

// Two followers; each value stands for a field that was written before.
struct followers : model::test<followers, 3> {
    core* c = nullptr;
    plain<int> fields[3];

    void before() { c = new core(0); }
    void thread(unsigned index) {
        if (index == 2) {
            for (int i = 1; i != 3; ++i) {
                fields[i].write(i);
                c->set(int(i));
            }
            return;
        }
        for (std::uint64_t seen = 0; seen != 2;) {
            const std::uint64_t now = changed(*c, seen);
            model::require(now > seen, "a version came that was seen before");
            seen = now;
            model::require(fields[now].read() == static_cast<int>(now), "a field was not there");
            model::require(c->get() >= static_cast<int>(now),
                           "the value is older than its version");
        }
    }
    void after() { delete c; }
};

// The waiter destroys the watch.
struct destroying : model::test<destroying, 2> {
    core* c = nullptr;

    void before() { c = new core(0); }
    void thread(unsigned index) {
        if (index == 0) {
            c->set(1);
        } else {
            changed(*c, 0);
            delete c;
        }
    }
};

}  // namespace

int main() {
    model::report report("watch");
    report.holds<followers>("followers see each latest version and its field", {100'000});
    report.holds<destroying>("a waiter may destroy it", {50'000});
    report.dies_weakened<followers>(lock_header, "queue_lock.left", {20'000});
    report.dies_planted<followers>("watch.wake_one", {20'000});
    return report.finish();
}
