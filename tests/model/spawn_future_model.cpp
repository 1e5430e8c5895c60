// spawn_future: the operation, its consumer, and the consumer's stop meet in every order.
#include "exec_model.hpp"

#include <coppice/exec/spawn_future.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

constexpr const char* future_file = "include/coppice/exec/internal/future_state.hpp";

// Checks that the scope was left, and destroys it.
void end_scope(manual_lifetime<ex::simple_counting_scope>& scope) {
    require(scope.get().outstanding() == 0, "the scope was not left");
    struct : ex::scope_base::joiner {
        void complete() noexcept override {}
    } joiner;
    require(scope.get().start_join(joiner), "the scope cannot be joined");
    scope.destroy();
}

template <class Derived, int Threads>
struct future_test : stop_test<Derived, Threads>, ending {
    using scope_type = ex::simple_counting_scope;
    using sender =
        decltype(ex::spawn_future(std::declval<hand::sender>(), std::declval<scope_type::token>()));
    manual_lifetime<scope_type> scope;
    hand spawned;
    int completions = 0;

    sender spawn() {
        scope.construct();
        spawned.reset();
        completions = 0;
        return ex::spawn_future(spawned.get(), scope.get().get_token());
    }
    // Checks that the state was destroyed once and has left the scope.
    void end(int expected) {
        require(completions == expected, "the result was consumed the wrong number of times");
        require(spawned.ended.load(relaxed) == 1, "the state was not destroyed once");
        end_scope(scope);
    }
};

// The operation completes, and the consumer starts and is stopped.
template <bool Stop>
struct consumed : future_test<consumed<Stop>, Stop ? 3 : 2> {
    using base = future_test<consumed<Stop>, Stop ? 3 : 2>;
    using receiver = basic_ending_receiver<Stop>;
    manual_lifetime<ex::connect_result_t<typename base::sender, receiver>> op;

    void before() {
        op.construct_with([this] { return ex::connect(base::spawn(), receiver(*this)); });
    }
    void completed() noexcept override {
        ++base::completions;
        op.destroy();
    }
    void run(unsigned index) {
        if (index == 0) base::spawned.started->value();
        if (index == 1) ex::start(op.get());
        if (index == 2) base::source.request_stop();
    }
    void after() { base::end(1); }
};

// The future is dropped while the operation completes.
struct abandoned : future_test<abandoned, 2> {
    std::optional<sender> future;
    void before() { future.emplace(spawn()); }
    void completed() noexcept override {}
    void run(unsigned index) {
        if (index == 0) {
            spawned.started->value();
        } else {
            future.reset();
        }
    }
    void after() { end(0); }
};

// The consumer's stop completes the operation inside the request, and with it the consumer.
struct stopped_by_consumer : stop_test<stopped_by_consumer, 2>, ending {
    using scope_type = ex::simple_counting_scope;
    using sender = decltype(ex::spawn_future(stopped_inside(), std::declval<scope_type::token>()));
    manual_lifetime<scope_type> scope;
    manual_lifetime<ex::connect_result_t<sender, ending_receiver>> op;
    int completions = 0;

    void before() {
        scope.construct();
        completions = 0;
        op.construct_with([this] {
            return ex::connect(ex::spawn_future(stopped_inside(), scope.get().get_token()),
                               ending_receiver(*this));
        });
    }
    void completed() noexcept override {
        ++completions;
        op.destroy();
    }
    void run(unsigned index) {
        if (index == 0) ex::start(op.get());
        if (index == 1) source.request_stop();
    }
    void after() {
        require(completions == 1, "not completed once");
        end_scope(scope);
    }
};

}  // namespace

int main() {
    report report("spawn_future");
    report.holds<consumed<false>>("the consumer gets the result");
    report.holds<consumed<true>>("the consumer gets the result or is stopped, once", far);
    report.holds<abandoned>("a dropped future ends the state once");
    report.holds<stopped_by_consumer>("the operation may complete inside the consumer's stop", far);
    report.dies_weakened<consumed<false>>(future_file, "future.meet");
    report.dies_weakened<consumed<false>>(future_file, "future.let_go", far);
    report.dies_planted<consumed<true>>("future.keep_waiting", far);
    report.dies_planted<stopped_by_consumer>("future.cancel_unheld", far);
    return report.finish();
}
