// The model of a takeover in mpi: there is one owner at a time, also if the call that held the
// first one returns late, and the thread that destroys the environment waits for the last one.
#include "model.hpp"

#include <coppice/mpi/internal/takeover.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using coppice::mpi::internal::takeover;
using ending = takeover::ending;
constexpr const char* header = "include/coppice/mpi/internal/takeover.hpp";

// What the owner uses. It is freed with the environment.
struct environment {
    plain<int> state;
    void use() { state.write(state.read() + 1); }
};

// Words that the mailbox of the engine and the threads' joins carry. They are not what is modeled.
struct flag {
    atomic<int> word{0};
    void set() { word.store(1, release); }
    bool is_set() const { return word.load(acquire) != 0; }
    void wait() const {
        while (!is_set()) thread_yield();
    }
};

// The owner makes two calls. Each returns at once, or when the process that it waits for goes on,
// which is after the end of the environment. The watch has found a failure. The last thread
// destroys the environment.
struct one_takes_over : model::test<one_takes_over, 3> {
    environment* e = nullptr;
    takeover place;
    flag failure, last, answered, owner_ended, watch_ended;

    void before() {
        e = new environment;
        e->state.write(0);
    }
    void thread(unsigned index) {
        if (index == 0) {
            own();
            owner_ended.set();
        } else if (index == 1) {
            watch();
            watch_ended.set();
        } else {
            destroy();
        }
    }
    void own() {
        for (int call = 0; call != 2; ++call) {
            e->use();
            place.enter();
            if (rl::rand(2) == 0) answered.wait();
            if (!place.leave()) return;
            e->use();
        }
        failure.wait();
        e->use();
        place.set_known();
        last.wait();
        e->use();
        place.set_ending(ending::finalizes);
        if (rl::rand(2) == 0) thread_yield();
        place.set_ending(ending::done);
    }
    void watch() {
        failure.set();
        takeover::look found = place.watch_looks();
        for (; found == takeover::look::again; found = place.watch_looks()) thread_yield();
        if (found == takeover::look::known) return;
        e->use();  // the operation fails, and so do all others
        last.wait();
        e->use();
        place.set_ending(ending::done_by_watch);
    }
    void destroy() {
        last.set();
        ending how = place.how_ended();
        for (; how == ending::works || how == ending::finalizes; how = place.how_ended())
            place.sleep_while(how);
        const int used = e->state.read();
        model::require(used == 6 || how == ending::done_by_watch, "an owner was cut off");
        if (how == ending::done) owner_ended.wait();
        watch_ended.wait();
        delete e;
        answered.set();  // what the first owner may still wait for
    }
};

}  // namespace

int main() {
    model::report report("takeover");
    report.holds<one_takes_over>("one owner at a time uses the environment while it is there",
                                 {200'000});
    report.dies_weakened<one_takes_over>(header, "takeover.place", {50'000});
    report.dies_weakened<one_takes_over>(header, "takeover.ending", {50'000});
    report.dies_planted<one_takes_over>("takeover.leave_taken", {50'000});
    report.dies_planted<one_takes_over>("takeover.end_quietly", {50'000});
    return report.finish();
}
