// The job_inbox model: jobs cross to the worker's thread and their results back; none is lost.
#include "model.hpp"

#include <coppice/io/job_inbox.hpp>

namespace {

using namespace coppice;
constexpr const char* header = "include/coppice/io/mailbox.hpp";

// A call that blocks, and its way back, as file_operation has them.
struct call : io::job {
    explicit call(io::mailbox<call>& to) : job(&make), back(to) {}
    static void make(job* j) noexcept {
        call& self = *static_cast<call*>(j);
        model::require(self.argument.read() == 42, "a job was run before it was written");
        self.result.write(43);
        (void)self.back.push(self);  // the loop may end it at once
    }
    io::mailbox<call>& back;
    call* next = nullptr;  // of the mailbox
    plain<int> argument;
    plain<int> result;
};
struct last_job : io::job {
    explicit last_job(io::job_inbox& in) : job(&end), inbox(in) {}
    static void end(job* j) noexcept { static_cast<last_job*>(j)->inbox.end(); }
    io::job_inbox& inbox;
};

// The loop hands calls over, one after the other, and ends each when it has come back.
template <int Calls>
struct loop_and_worker : model::test<loop_and_worker<Calls>, 2> {
    io::job_inbox inbox;
    io::mailbox<call> back;
    last_job last{inbox};
    int ended = 0;

    void take() {
        for (call* c = back.take(); c != nullptr;) {
            call* const next = c->next;
            model::require(c->result.read() == 43, "a result was seen before it was there");
            ++ended;
            delete c;
            c = next;
        }
    }
    void thread(unsigned index) {
        if (index == 1) {
            inbox.serve();
            return;
        }
        for (int i = 0; i != Calls; ++i) {
            call* const c = new call(back);
            c->argument.write(42);
            inbox.run(*c);
            take();
        }
        inbox.run(last);
    }
    void after() {
        take();  // what the worker posted last
        model::require(ended == Calls, "a job was lost");
    }
};

// Two loops' threads hand jobs to one worker.
struct two_pushers : model::test<two_pushers, 3> {
    struct counted : io::job {
        counted() : job(&count) {}
        static void count(job* j) noexcept {
            counted& self = *static_cast<counted*>(j);
            model::require(self.payload.read() == 42, "a job was run before it was written");
            if (++*self.run_so_far == 2) self.inbox->end();
        }
        plain<int> payload;
        int* run_so_far = nullptr;
        io::job_inbox* inbox = nullptr;
    };
    io::job_inbox inbox;
    counted jobs[2];
    int ran = 0;

    void thread(unsigned index) {
        if (index == 2) {
            inbox.serve();
            return;
        }
        jobs[index].payload.write(42);
        jobs[index].run_so_far = &ran;
        jobs[index].inbox = &inbox;
        inbox.run(jobs[index]);
    }
    void after() { model::require(ran == 2, "a job was lost or run twice"); }
};

}  // namespace

int main() {
    model::report report("job_inbox");
    report.holds<loop_and_worker<1>>("one call crosses and comes back", {50'000});
    report.holds<loop_and_worker<2>>("two calls cross and come back", {200'000});
    report.holds<two_pushers>("jobs of two threads are run once each", {200'000});
    report.dies_weakened<loop_and_worker<1>>(header, "mailbox.hand_over", {50'000});
    report.dies_planted<loop_and_worker<2>>("mailbox.sleep_unasked", {100'000});
    report.dies_planted<loop_and_worker<1>>("job_inbox.rings_no_bell", {50'000});
    report.dies_planted<loop_and_worker<2>>("job_inbox.clears_the_bell_asleep", {100'000});
    return report.finish();
}
