// shared_work: waiters start, are stopped, and leave while the work ends; the last one destroys it.
#include "exec_model.hpp"

#include <coppice/task/internal/shared_work.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;
using ex::internal::shared_event;

constexpr const char* file = "include/coppice/task/internal/shared_work.hpp";

// Work that a thread of the test ends. It is destroyed in place.
struct work final : ex::internal::shared_work {
    work(manual_lifetime<work>& place, int& count) noexcept : self(place), destroyed(count) {}
    void finish() noexcept {
        result.construct(1);
        this->end();  // this object may be gone
    }
    void destroy() noexcept override {
        ++destroyed;
        if (this->has_ended()) result.destroy();
        self.destroy();
    }
    manual_lifetime<work>& self;
    int& destroyed;
    manual_lifetime<watched> result;
};

// A waiter that destroys itself when it is completed, unless the test does so at its end.
struct waiter final : ex::internal::shared_wait<inplace_stop_token> {
    using handle = ex::internal::shared_handle<work>;
    waiter(manual_lifetime<waiter>& place, handle of, int& count) noexcept
        : shared_wait(*of), self(place), state(std::move(of)), completions(count) {}
    // Calls started() if it starts the work.
    template <class Started>
    void begin(inplace_stop_token token, Started started) noexcept {
        const shared_event event = this->wait(token, [&]() noexcept {
            if (state->begin()) started();
            note.write(1);
        });
        if (event != shared_event::none) woken(event);
    }
    void woken(shared_event event) noexcept override {
        ++completions;
        if (is_last) require(state->has_ended(), "the last waiter has left work that was running");
        if (event == shared_event::ended) {
            require(note.read() == 1, "completed before it had started");
            require(state->result.get().get() == 1, "an empty result");
        }
        if (!stays) self.destroy();
    }
    manual_lifetime<waiter>& self;
    handle state;
    int& completions;
    bool stays = false;
    bool is_last = false;
    plain<int> note;  // written by the starter, read by whichever completes the waiter
};

template <class Derived, int Threads>
struct shared_test : stop_test<Derived, Threads> {
    manual_lifetime<work> place;
    manual_lifetime<waiter> waiters[2];
    inplace_stop_source sources[2];
    atomic<int> started{0};  // 1: a waiter has started the work; 2: it never will
    int destroyed = 0;
    int completions[2] = {};

    void make() {
        started.store(0, relaxed);
        destroyed = 0;
        waiter::handle first(place.construct(place, destroyed));
        for (int i = 0; i != 2; ++i) {
            completions[i] = 0;
            waiters[i].construct(waiters[i], first, completions[i]);
        }
    }
    void begin(int i) {
        waiters[i].get().begin(sources[i].get_token(),
                               [this]() noexcept { started.store(1, release); });
    }
    void finish() {
        while (started.load(acquire) == 0) spin_hint();
        if (started.load(acquire) == 1) place.get().finish();
    }
    void after() {
        require(completions[0] == 1 && completions[1] == 1, "a waiter was not completed once");
        require(destroyed == 1, "the work was not destroyed once");
    }
};

// Two threads start to wait, and a third ends the work.
struct two_start : shared_test<two_start, 3> {
    void before() { make(); }
    void run(unsigned index) {
        if (index == 2) {
            finish();
        } else {
            begin(static_cast<int>(index));
        }
    }
};

// One thread starts to wait, and another ends the work: either of them may destroy it.
struct one_starts : shared_test<one_starts, 2> {
    void before() {
        make();
        completions[1] = 1;
        waiters[1].destroy();
    }
    void run(unsigned index) {
        if (index == 0) begin(0);
        if (index == 1) finish();
    }
};

// Both wait. One is stopped while the work ends. The waiters stay, so that they can be completed
// twice.
struct one_is_claimed : shared_test<one_is_claimed, 2> {
    void before() {
        make();
        sources[0].~inplace_stop_source();
        ::new (&sources[0]) inplace_stop_source();
        for (int i = 0; i != 2; ++i) {
            waiters[i].get().stays = true;
            begin(i);
        }
    }
    void run(unsigned index) {
        if (index == 0) {
            sources[0].request_stop();
        } else {
            finish();
        }
    }
    void after() {
        for (auto& each : waiters) each.destroy();
        shared_test::after();
    }
};

// Both wait. One is stopped while the work ends.
struct one_is_stopped : shared_test<one_is_stopped, 2> {
    void before() {
        make();
        sources[0].~inplace_stop_source();
        ::new (&sources[0]) inplace_stop_source();
        begin(0);
        begin(1);
    }
    void run(unsigned index) {
        if (index == 0) {
            sources[0].request_stop();
        } else {
            finish();
        }
    }
};

// One starts to wait while it is stopped and the work, which the other has started, ends.
struct stopped_at_start : shared_test<stopped_at_start, 3> {
    void before() {
        make();
        sources[0].~inplace_stop_source();
        ::new (&sources[0]) inplace_stop_source();
        begin(1);
    }
    void run(unsigned index) {
        if (index == 0) begin(0);
        if (index == 1) sources[0].request_stop();
        if (index == 2) finish();
    }
};

// Both are stopped: the last one does not leave, but waits for the work, which ends meanwhile.
struct both_are_stopped : shared_test<both_are_stopped, 3> {
    void before() {
        make();
        for (inplace_stop_source& source : sources) {
            source.~inplace_stop_source();
            ::new (&source) inplace_stop_source();
        }
        begin(0);
        begin(1);
    }
    void run(unsigned index) {
        if (index == 2) {
            finish();
        } else {
            sources[index].request_stop();
        }
    }
};

// The first waiter has started the work, and has left. The last one was stopped before it begins to
// wait, and the work ends meanwhile: it waits for the end.
struct last_is_stopped_before : shared_test<last_is_stopped_before, 2> {
    void before() {
        make();
        for (inplace_stop_source& source : sources) {
            source.~inplace_stop_source();
            ::new (&source) inplace_stop_source();
        }
        begin(0);
        sources[0].request_stop();
        sources[1].request_stop();
        waiters[1].get().is_last = true;
    }
    void run(unsigned index) {
        if (index == 0) begin(1);
        if (index == 1) finish();
    }
};

}  // namespace

int main() {
    report report("shared_work");
    report.holds<two_start>("each waiter is completed once, by the end of the work", far);
    report.holds<one_starts>("either the last waiter or the end destroys the work", far);
    report.holds<one_is_claimed>("two claims complete a waiter once", far);
    report.holds<one_is_stopped>("a stop and the end complete a waiter once", far);
    report.holds<stopped_at_start>("a waiter may be stopped, and the work end, as it starts", far);
    report.holds<both_are_stopped>("the last waiter waits for the end of the work", far);
    report.holds<last_is_stopped_before>("a last waiter that was stopped before it waits does so",
                                         far);
    report.dies_weakened<two_start>(file, "shared_wait.begun", far);
    report.dies_weakened<two_start>(file, "shared_work.let_go", far);
    report.dies_weakened<one_starts>(file, "shared_work.drop", far);
    report.dies_planted<two_start>("shared_work.start_unheld", far);
    report.dies_planted<two_start>("shared_wait.complete_early", far);
    report.dies_planted<one_is_claimed>("shared_wait.claim_twice", far);
    report.dies_planted<last_is_stopped_before>("shared_wait.leave_running", far);
    return report.finish();
}
