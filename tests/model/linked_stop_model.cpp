// The model of linked_stop: a thread passes a stop on, another completes, and a third destroys.
#include "exec_model.hpp"

#include <coppice/exec/internal/linked_stop.hpp>
#include <coppice/stop/single.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

// The usual operation: it ends inside its stop callback, unless another thread has completed it. As
// soon as it has completed, another thread destroys it.
template <class Source, class Outer, bool CompletesElsewhere>
struct passed_on
    : stop_test<passed_on<Source, Outer, CompletesElsewhere>, CompletesElsewhere ? 3 : 2> {
    struct operation {
        explicit operation(passed_on& t) noexcept : test(t) {}
        void start() noexcept {
            link.engage(test.outer.get_token());
            callback.construct(link.token(), complete(test));
        }
        void end() noexcept {
            callback.destroy();
            link.reset();
        }
        class complete {
        public:
            explicit complete(passed_on& t) noexcept : test_(&t) {}
            void operator()() noexcept { test_->complete_once(); }

        private:
            passed_on* test_;
        };
        using outer_token = decltype(std::declval<Outer&>().get_token());
        using inner_token = decltype(std::declval<Source&>().get_token());
        passed_on& test;
        ex::internal::linked_stop<Source, outer_token> link;
        manual_lifetime<stop_callback_for_t<inner_token, complete>> callback;
    };
    Outer outer;
    manual_lifetime<operation> op;
    atomic<int> claimed{0};
    atomic<int> completed{0};

    void before() {
        op.construct(*this);
        op.get().start();
    }
    void complete_once() noexcept {
        if (claimed.exchange(1, acq_rel) != 0) return;
        op.get().end();
        completed.store(1, release);  // the receiver allows the operation to be destroyed
    }
    void run(unsigned index) {
        if (index == 0) outer.request_stop();
        if (index == 1) {
            while (completed.load(acquire) == 0) spin_hint();
            op.destroy();
        }
        if (index == 2) complete_once();
    }
    void after() { require(completed.load(relaxed) == 1, "not completed"); }
};

}  // namespace

int main() {
    report report("linked_stop");
    using single = single_inplace_stop_source;
    report.holds<passed_on<inplace_stop_source, single, false>>("a stop completes the operation");
    report.holds<passed_on<single, inplace_stop_source, false>>("with the sources the other way");
    report.holds<passed_on<inplace_stop_source, single, true>>("or meets its completion", far);
    report.holds<passed_on<single, inplace_stop_source, true>>("or the other way", far);
    return report.finish();
}
