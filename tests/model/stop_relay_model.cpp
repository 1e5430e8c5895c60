// The stop_relay model: a stop from another thread against the end of an operation on its loop.
#include "stop_model.hpp"

#include <coppice/io/internal/mailbox.hpp>
#include <coppice/io/internal/stop_relay.hpp>

namespace coppice::protocol_model {

using namespace coppice::internal;
namespace {

constexpr unsigned loop_thread = 0;

struct item {
    explicit item(void (*function)(item*) noexcept) noexcept : complete(function) {}
    void (*complete)(item*) noexcept;
    item* next = nullptr;
};

// A loop of one operation, which ends on the loop's own thread, by a completion or by a timer.
struct loop {
    bool is_current() const noexcept { return thread_slot<loop, const loop*>() == this; }
    void post(item& i) noexcept { static_cast<void>(box.push(i)); }
    void take_posted() noexcept {
        for (item* i = box.take(); i != nullptr;) {
            item* const next = i->next;
            i->complete(i);
            i = next;
        }
    }
    io::internal::mailbox<item> box;
};

struct request : io::internal::stop_relay<loop, item> {
    using relay = io::internal::stop_relay<loop, item>;
    void listen(loop& l, inplace_stop_token token) noexcept {
        relay::listen(l, token, &interrupt, &complete);
    }
    static void interrupt(relay& r) noexcept {
        request& self = static_cast<request&>(r);
        require(!self.completed, "an operation was interrupted after it had completed");
        self.interrupted = true;
    }
    static void complete(relay& r) noexcept { static_cast<request&>(r).finish(); }
    void finish() noexcept {
        require(!completed, "an operation completed twice");
        completed = true;
    }
    bool interrupted = false;
    bool completed = false;
};

// The operation ends by itself in the second turn, or at once when it is interrupted. It is
// destroyed as soon as it has completed, as a coroutine's frame would be.
template <int Stoppers>
struct stop_and_end : stop_test<stop_and_end<Stoppers>, 1 + Stoppers> {
    loop context;
    inplace_stop_source source;
    manual_lifetime<request> storage;  // the model checker sees accesses after the destruction

    void run(unsigned index) {
        if (index != loop_thread) {
            source.request_stop();
            return;
        }
        thread_slot<loop, const loop*>() = &context;
        request& op = storage.construct();
        op.listen(context, source.get_token());
        context.take_posted();
        // It ends: by itself, or because it was interrupted.
        if (op.settle()) {
            op.finish();
        } else {
            while (!op.completed) context.take_posted();
        }
        storage.destroy();
        thread_slot<loop, const loop*>() = nullptr;
    }
    void after() {
        context.take_posted();  // an item of a destroyed operation would run here
    }
};

// The loop's own thread stops: the callback runs in the middle of a turn.
struct stop_on_the_loop : stop_test<stop_on_the_loop, 2> {
    loop context;
    inplace_stop_source source;

    void run(unsigned index) {
        if (index != loop_thread) {
            source.request_stop();
            return;
        }
        thread_slot<loop, const loop*>() = &context;
        request op;
        op.listen(context, source.get_token());
        const bool mine = source.request_stop();
        require(!mine || op.interrupted, "a stop on the loop did not interrupt at once");
        if (op.settle()) {
            op.finish();
        } else {
            while (!op.completed) context.take_posted();
        }
        thread_slot<loop, const loop*>() = nullptr;
    }
    void after() { require(!context.box.has_mail(), "an item was left in the mailbox"); }
};

}  // namespace
}  // namespace coppice::protocol_model

int main() {
    using namespace coppice::protocol_model;
    model::report report("stop_relay");
    report.holds<stop_and_end<1>>("an operation outlives the stop that was posted to it",
                                  {100'000});
    report.holds<stop_and_end<2>>("two stop requests are one", {100'000});
    report.holds<stop_on_the_loop>("a stop on the loop's own thread acts at once", {100'000});
    report.dies_planted<stop_and_end<1>>("stop_relay.settle_early", {100'000});
    return report.finish();
}
