// The models of in_flight: a call publishes work and then uses the object; the end waits for that.
// So it is with a post to the engine of mpi, which may still ring when another thread ends that.
#include "model.hpp"

#include <coppice/base/internal/futex.hpp>
#include <coppice/base/internal/in_flight.hpp>
#include <coppice/io/internal/mailbox.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;

constexpr const char* header = "include/coppice/base/internal/in_flight.hpp";

struct call_and_end : model::test<call_and_end, 2> {
    in_flight calls;
    atomic<int> work{0};
    plain<int> object;  // stands for what the call uses after its work is visible

    void before() { object.write(1); }
    void thread(unsigned index) {
        if (index == 0) {
            const in_flight::entry entry(calls);
            work.store(1, release);
            model::require(object.read() == 1, "the object ended under a call");
        } else {
            while (work.load(acquire) == 0) spin_hint();
            if (!planted("in_flight.forget_to_wait")) calls.wait();
            object.write(0);  // the end of the object
        }
    }
};

// The first thread posts work to the owner, which says when it has run. Then the last thread posts
// the end, waits for the owner, and destroys the engine.
struct post_and_end : model::test<post_and_end, 3> {
    struct item {
        item* next = nullptr;
        atomic<int> has_run{0};
    };
    struct engine {
        io::internal::mailbox<item> mail;
        atomic<std::uint32_t> bell{0};
        in_flight calls;
        plain<int> object;

        void post(item& i) {
            const in_flight::entry call(calls);
            if (mail.push(i) == io::internal::mailbox<item>::pushed::quietly) return;
            bell.fetch_add(1, release);
            futex_wake_one(bell);
            model::require(object.read() == 1, "the engine ended under a post");
        }
        void serve(item& last) {
            while (last.has_run.load(relaxed) == 0) {
                for (item* i = mail.take(); i != nullptr;) {
                    item* const run = i;
                    i = i->next;
                    run->has_run.store(1, release);
                }
                const std::uint32_t rung = bell.load(acquire);
                if (last.has_run.load(relaxed) == 0 && mail.sleep()) futex_wait(bell, rung);
            }
        }
    };
    engine* e = nullptr;
    item work, last;
    atomic<int> owner_ended{0};

    void before() {
        e = new engine;
        e->object.write(1);
    }
    void thread(unsigned index) {
        if (index == 0) {
            e->post(work);
        } else if (index == 1) {
            e->serve(last);
            owner_ended.store(1, release);
        } else {
            while (work.has_run.load(acquire) == 0) thread_yield();
            e->post(last);
            while (owner_ended.load(acquire) == 0) thread_yield();
            if (!planted("in_flight.forget_to_wait")) e->calls.wait();
            e->object.write(0);
            delete e;
        }
    }
};

}  // namespace

int main() {
    model::report report("in_flight");
    report.holds<call_and_end>("the end waits for the call", {.iterations = 100'000});
    report.dies_weakened<call_and_end>(header, "in_flight.over");
    report.dies_planted<call_and_end>("in_flight.forget_to_wait");
    report.holds<post_and_end>("an engine ends after the last post", {.iterations = 200'000});
    report.dies_weakened<post_and_end>(header, "in_flight.over");
    report.dies_planted<post_and_end>("in_flight.forget_to_wait");
    return report.finish();
}
