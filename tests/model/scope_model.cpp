// Scopes: associations that end while a join starts or while others are made; a scope that is
// destroyed by its join; the lock of the listing; a request_stop that a join must not overtake.
#include "exec_model.hpp"

#include <coppice/exec/scope.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

constexpr const char* scope_file = "include/coppice/exec/internal/scope_state.hpp";

// Destroys the scope when it completes, after reading what the operations wrote.
template <class Test>
struct ending_joiner final : ex::scope_base::joiner {
    Test* test = nullptr;
    void complete() noexcept override { test->joined(); }
};

// Two operations end while a third thread joins. The joiner sees what both wrote, and destroys the
// scope.
struct join_and_leave : test<join_and_leave, 3> {
    manual_lifetime<ex::simple_counting_scope> scope;
    std::optional<ex::simple_counting_scope::association> operations[2];
    plain<int> done[2];
    ending_joiner<join_and_leave> joiner;
    int joins = 0;

    void before() {
        scope.construct();
        joins = 0;
        joiner.test = this;
        for (auto& op : operations) op.emplace(scope.get().get_token().try_associate());
    }
    void joined() {
        require(done[0].read() == 1 && done[1].read() == 1, "joined before all had ended");
        ++joins;
        scope.destroy();
    }
    void thread(unsigned index) {
        if (index == 2) {
            if (scope.get().start_join(joiner)) joined();
            return;
        }
        done[index].write(1);
        operations[index].reset();
    }
    void after() { require(joins == 1, "not joined once"); }
};

// Two joins and an operation: both joiners complete, and only then may the scope be destroyed.
struct two_joins : test<two_joins, 3> {
    manual_lifetime<ex::simple_counting_scope> scope;
    std::optional<ex::simple_counting_scope::association> operation;
    plain<int> done;
    ending_joiner<two_joins> joiners[2];
    atomic<int> joins{0};

    void before() {
        scope.construct();
        joins.store(0, relaxed);
        for (auto& j : joiners) j.test = this;
        operation.emplace(scope.get().get_token().try_associate());
    }
    void joined() {
        require(done.read() == 1, "joined before the operation had ended");
        if (joins.fetch_add(1, acq_rel) == 1) scope.destroy();
    }
    void thread(unsigned index) {
        if (index == 2) {
            done.write(1);
            operation.reset();
        } else if (scope.get().start_join(joiners[index])) {
            joined();
        }
    }
    void after() { require(joins.load(relaxed) == 2, "a joiner was forgotten"); }
};

// An operation makes another association while it ends and a join runs.
struct late_association : test<late_association, 3> {
    manual_lifetime<ex::simple_counting_scope> scope;
    std::optional<ex::simple_counting_scope::association> operation;
    plain<int> done[2];
    ending_joiner<late_association> joiner;
    int joins = 0;
    bool second = false;

    void before() {
        scope.construct();
        joins = 0;
        second = false;
        joiner.test = this;
        operation.emplace(scope.get().get_token().try_associate());
    }
    void joined() {
        require(done[0].read() == 1, "joined before the first had ended");
        if (second) require(done[1].read() == 1, "joined before the second had ended");
        ++joins;
        scope.destroy();
    }
    void thread(unsigned index) {
        if (index == 0) {
            auto another = operation->try_associate();
            second = static_cast<bool>(another);
            done[0].write(1);
            operation.reset();
            done[1].write(1);
        } else if (index == 1) {
            if (scope.get().start_join(joiner)) joined();
        }
    }
    void after() { require(joins == 1, "not joined once"); }
};

// The scope's stop request is still running when its last operation ends: the join waits.
struct stop_and_join : stop_test<stop_and_join, 2> {
    struct tell {
        atomic<int>* flag;
        void operator()() noexcept { flag->store(1, release); }
    };
    manual_lifetime<ex::counting_scope> scope;
    std::optional<ex::counting_scope::association> operation;
    std::optional<inplace_stop_callback<tell>> callbacks[2];  // the newer one runs first
    hand unused;
    atomic<int> reached{0};
    ending_joiner<stop_and_join> joiner;
    int joins = 0;

    void before() {
        scope.construct();
        joins = 0;
        reached.store(0, relaxed);
        joiner.test = this;
        operation.emplace(scope.get().get_token().try_associate());
        // Operations get the scope's stop token through the token's wrap().
        for (auto& callback : callbacks) {
            callback.emplace(scope.get().get_token().wrap(unused.get()).data, tell{&reached});
        }
    }
    void joined() {
        ++joins;
        scope.destroy();
    }
    void run(unsigned index) {
        if (index == 0) {
            scope.get().request_stop();
            return;
        }
        while (reached.load(acquire) == 0) spin_hint();
        for (auto& callback : callbacks) callback.reset();
        operation.reset();
        if (scope.get().start_join(joiner)) joined();
    }
    void after() { require(joins == 1, "not joined once"); }
};

// The operation polls the stop token, and ends. A callback that belongs to no operation has still
// to run.
struct stop_and_poll : stop_test<stop_and_poll, 2> {
    struct tell {
        plain<int>* ran;
        void operator()() noexcept { ran->write(1); }
    };
    manual_lifetime<ex::counting_scope> scope;
    std::optional<ex::counting_scope::association> operation;
    std::optional<inplace_stop_callback<tell>> callback;
    plain<int> ran;
    ending_joiner<stop_and_poll> joiner;
    int joins = 0;

    void before() {
        scope.construct();
        joins = 0;
        ran.write(0);
        joiner.test = this;
        operation.emplace(scope.get().get_token().try_associate());
        callback.emplace(scope.get().get_stop_token(), tell{&ran});
    }
    void joined() {
        require(ran.read() == 1, "joined before every callback has run");
        ++joins;
        callback.reset();
        scope.destroy();
    }
    void run(unsigned index) {
        if (index == 0) {
            scope.get().request_stop();
            return;
        }
        while (!scope.get().get_stop_token().stop_requested()) spin_hint();
        operation.reset();
        if (scope.get().start_join(joiner)) joined();
    }
    void after() { require(joins == 1, "not joined once"); }
};

// Two threads visit the records. The lock orders the visits.
struct listing : test<listing, 2> {
    manual_lifetime<ex::simple_counting_scope> scope;
    manual_lifetime<ex::internal::scope_record> record;
    plain<int> visits;

    void before() {
        scope.construct(ex::record_outstanding);
        record.construct(std::source_location::current());
        scope.get().add(record.get());
        visits.write(0);
    }
    void thread(unsigned) {
        scope.get().for_each_outstanding(
            [&](const std::source_location&) { visits.write(visits.read() + 1); });
    }
    void after() {
        require(visits.read() == 2, "a visit was lost");
        scope.get().remove(record.get());
        scope.destroy();
    }
};

}  // namespace

int main() {
    report report("scope");
    report.holds<join_and_leave>("a join completes after the last association ends");
    report.holds<two_joins>("every joiner completes", far);
    report.holds<late_association>("associations may come while a join waits");
    report.holds<stop_and_join>("a join does not overtake a stop request", far);
    report.holds<stop_and_poll>("a join does not overtake callbacks that belong to no operation",
                                far);
    report.holds<listing>("the lock orders visits to the listing");
    report.dies_weakened<join_and_leave>(scope_file, "scope.leave");
    report.dies_weakened<two_joins>(scope_file, "scope.joiner", far);
    report.dies_weakened<listing>(scope_file, "scope.records");
    report.dies_planted<two_joins>("scope.forget_joiners", far);
    report.dies_planted<join_and_leave>("scope.join_without_hold");
    report.dies_planted<two_joins>("scope.join_uncounted", far);
    report.dies_planted<stop_and_poll>("scope.stop_without_hold", far);
    return report.finish();
}
