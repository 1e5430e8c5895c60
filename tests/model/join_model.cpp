// Joins: when_all, when_any, when_all_range, and timeout complete once, after all their children
// have completed, with every result visible. A stop from outside runs concurrently, and the last
// child may complete inside it. The operation is destroyed where it completes, or at once by
// another thread.
#include "exec_model.hpp"

#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/when_all_range.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/exec/write_env.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

constexpr const char* join_file = "include/coppice/exec/internal/join.hpp";

// A child of a join. With a hand, a thread completes it. Without, its own stop does: inside the
// request, or in start() if the stop came before. A late child deregisters its callback only in its
// destructor.
template <class... Values>
class child {
public:
    using sender_concept = ex::sender_tag;
    explicit child(hand* h, bool late = false) noexcept : hand_(h), late_(late) {}
    template <class Rcvr>
    class operation final : public hand::operation_base {
    public:
        using operation_state_concept = ex::operation_state_tag;
        operation(hand* h, bool late, Rcvr rcvr) noexcept
            : hand_(h), late_(late), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
        void start() & noexcept {
            if (hand_ != nullptr) {
                hand_->started = this;
                hand_->is_started.store(1, release);
            } else {
                callback_.engage(get_stop_token(ex::get_env(rcvr_)), end(*this));
                if (ready_.exchange(1, acq_rel) == 1) stopped();
            }
        }
        void value() noexcept override { ex::set_value(static_cast<Rcvr&&>(rcvr_), Values(1)...); }
        void error() noexcept override { ex::set_error(static_cast<Rcvr&&>(rcvr_), watched(2)); }
        void stopped() noexcept override {
            if (!late_) callback_.reset();
            ex::set_stopped(static_cast<Rcvr&&>(rcvr_));
        }

    private:
        class end {
        public:
            explicit end(operation& op) noexcept : op_(&op) {}
            void operator()() noexcept {
                if (op_->ready_.exchange(1, acq_rel) == 1) op_->stopped();
            }

        private:
            operation* op_;
        };
        hand* hand_;
        bool late_;
        Rcvr rcvr_;
        atomic<int> ready_{0};
        ex::internal::stop_registration<stop_token_of_t<ex::env_of_t<Rcvr>>, end> callback_;
    };
    template <class Self, class... Env>
    static consteval auto get_completion_signatures() noexcept {
        return ex::completion_signatures<ex::set_value_t(Values...), ex::set_error_t(watched),
                                         ex::set_stopped_t()>();
    }
    template <class Rcvr>
    auto connect(Rcvr rcvr) const noexcept {
        return operation<Rcvr>(hand_, late_, static_cast<Rcvr&&>(rcvr));
    }

private:
    hand* hand_;
    bool late_;
};

// A timed scheduler whose timers are such children.
class timers {
public:
    using scheduler_concept = ex::scheduler_tag;
    explicit timers(hand* h) noexcept : hand_(h) {}
    child<> schedule() const noexcept { return child<>(hand_); }
    child<> schedule_after(ex::time_span) const noexcept { return child<>(hand_); }
    ex::instant now() const noexcept { return ex::instant(0); }
    bool operator==(const timers&) const = default;

private:
    hand* hand_;
};

// The algorithms, each with two children.
struct all {
    static auto of(hand* a, hand* b) { return ex::when_all(child<watched>(a), child<watched>(b)); }
};
struct any {
    static auto of(hand* a, hand* b) { return ex::when_any(child<watched>(a), child<watched>(b)); }
};
struct range {
    static auto of(hand* a, hand* b) {
        std::vector<child<watched>> sndrs;
        sndrs.emplace_back(a);
        sndrs.emplace_back(b);
        return ex::when_all_range(std::move(sndrs));
    }
};
struct timeout {
    static auto of(hand* timer, hand* sndr) {
        return ex::write_env(ex::timeout(child<watched>(sndr), ex::time_span(1)),
                             ex::prop(ex::get_timed_scheduler, timers(timer)));
    }
};
template <class Algorithm, bool First, bool Second>
struct late {
    static auto of(hand* a, hand* b) {
        if constexpr (std::is_same_v<Algorithm, all>) {
            return ex::when_all(child<watched>(a, First), child<watched>(b, Second));
        } else {
            return ex::when_any(child<watched>(a, First), child<watched>(b, Second));
        }
    }
};
template <class Algorithm>
using operation_of =
    ex::connect_result_t<decltype(Algorithm::of(nullptr, nullptr)), ending_receiver>;

enum class way { value, error, stopped };
void complete(hand& h, way how) {
    if (how == way::value) h.started->value();
    if (how == way::error) h.started->error();
    if (how == way::stopped) h.started->stopped();
}

// Two threads complete the children, the second one as Second says. The last arrival destroys the
// operation. A third thread stops it.
template <class Algorithm, bool Stop, way Second = way::value>
struct arrivals : stop_test<arrivals<Algorithm, Stop, Second>, Stop ? 3 : 2>, ending {
    hand hands[2];
    manual_lifetime<operation_of<Algorithm>> op;
    int completions = 0;

    void before() {
        op.construct_with([this] {
            return ex::connect(Algorithm::of(&hands[0], &hands[1]), ending_receiver(*this));
        });
        ex::start(op.get());
    }
    void completed() noexcept override {
        ++completions;
        op.destroy();
    }
    void run(unsigned index) {
        if (index == 0) complete(hands[0], way::value);
        if (index == 1) complete(hands[1], Second);
        if (index == 2) source.request_stop();
    }
    void after() { require(completions == 1, "not completed once"); }
};

// The first child is completed by its stop. The second one likewise, or by another thread. The
// thread that starts the operation waits for its completion and destroys it at once. The stop may
// come before, inside, and after the start.
template <class Algorithm, bool ByHand = false, way Second = way::stopped>
struct destroyed : stop_test<destroyed<Algorithm, ByHand, Second>, ByHand ? 3 : 2>, ending {
    hand second;
    manual_lifetime<operation_of<Algorithm>> op;
    atomic<int> completions{0};

    void before() {
        second.reset();
        completions.store(0, relaxed);
        op.construct_with([this] {
            return ex::connect(Algorithm::of(nullptr, ByHand ? &second : nullptr),
                               ending_receiver(*this));
        });
    }
    void completed() noexcept override { completions.fetch_add(1, release); }
    void run(unsigned index) {
        if (index == 0) {
            ex::start(op.get());
            while (completions.load(acquire) == 0) spin_hint();
            op.destroy();
        }
        if (index == 1) source.request_stop();
        if (index == 2) {
            second.wait_for_start();
            complete(second, Second);
        }
    }
    void after() { require(completions.load(relaxed) == 1, "not completed once"); }
};

// The operation is already running, and the thread that waits and destroys it did not start it.
template <class Algorithm>
struct destroyed_by_third : stop_test<destroyed_by_third<Algorithm>, 3>, ending {
    hand second;
    manual_lifetime<operation_of<Algorithm>> op;
    atomic<int> completions{0};

    void before() {
        completions.store(0, relaxed);
        op.construct_with([this] {
            return ex::connect(Algorithm::of(nullptr, &second), ending_receiver(*this));
        });
        ex::start(op.get());
    }
    void completed() noexcept override { completions.fetch_add(1, release); }
    void run(unsigned index) {
        if (index == 0) {
            while (completions.load(acquire) == 0) spin_hint();
            op.destroy();
        }
        if (index == 1) source.request_stop();
        if (index == 2) complete(second, way::value);
    }
    void after() { require(completions.load(relaxed) == 1, "not completed once"); }
};

// The outer source is destroyed as soon as the operation has completed, and before the operation
// is: nothing may be registered with the source then.
template <class Algorithm>
struct outer_source_ends : stop_test<outer_source_ends<Algorithm>, 2> {
    class receiver {
    public:
        using receiver_concept = ex::receiver_tag;
        explicit receiver(outer_source_ends& test) noexcept : test_(&test) {}
        template <class... Ts>
        void set_value(Ts&&...) && noexcept {
            test_->completed.store(1, release);
        }
        template <class Error>
        void set_error(Error&&) && noexcept {
            test_->completed.store(1, release);
        }
        void set_stopped() && noexcept { test_->completed.store(1, release); }
        auto get_env() const noexcept {
            return ex::prop(get_stop_token, test_->source.get().get_token());
        }

    private:
        outer_source_ends* test_;
    };
    manual_lifetime<inplace_stop_source> source;
    manual_lifetime<ex::connect_result_t<decltype(Algorithm::of(nullptr, nullptr)), receiver>> op;
    atomic<int> completed{0};

    void before() {
        completed.store(0, relaxed);
        source.construct();
        op.construct_with(
            [this] { return ex::connect(Algorithm::of(nullptr, nullptr), receiver(*this)); });
        ex::start(op.get());
    }
    void run(unsigned index) {
        if (index == 0) {
            source.get().request_stop();
            return;
        }
        while (completed.load(acquire) == 0) spin_hint();
        source.destroy();
        op.destroy();
    }
};

// What holds for each algorithm, and the mutants that each instance of the protocol must detect.
template <class Algorithm>
void check(report& report, const char* name) {
    report.holds<arrivals<Algorithm, false>>(name);
    report.holds<arrivals<Algorithm, true>>("... and a stop", far);
    report.holds<destroyed<Algorithm>>(
        "... that stops all children, and another thread destroys it", far);
    report.holds<destroyed<Algorithm, true>>("... that stops one child, while another completes",
                                             far);
    report.holds<destroyed_by_third<Algorithm>>("... and the destroying thread did not start it",
                                                far);
    report.dies_weakened<arrivals<Algorithm, false>>(join_file, "join.arrive");
    report.dies_planted<destroyed<Algorithm>>("stop.return_to_nothing", far);
    report.holds<outer_source_ends<Algorithm>>("... and nothing is registered afterwards", far);
    report.dies_planted<outer_source_ends<Algorithm>>("join.stay_registered", far);
}

}  // namespace

int main() {
    report report("join");
    check<all>(report, "when_all completes once, and sees everything");
    check<any>(report, "when_any does");
    check<range>(report, "when_all_range does");
    check<timeout>(report, "timeout does");
    report.holds<arrivals<all, true, way::error>>("an error and a stop", far);
    report.holds<arrivals<any, false, way::stopped>>("when_any with one value");
    report.holds<arrivals<timeout, false, way::stopped>>("a timeout that does not expire");
    report.holds<destroyed<all, true, way::error>>("an error while the others are stopped", far);
    report.holds<destroyed<late<all, true, true>>>("children that deregister late", far);
    report.holds<destroyed<late<all, true, false>>>("only the first child deregisters late", far);
    report.holds<destroyed<late<any, false, true>>>("only the second child deregisters late", far);
    report.dies_planted<destroyed<late<all, true, true>>>("stop.finish_before_claim", far);
    report.dies_planted<destroyed<late<any, true, true>>>("stop.finish_before_claim", far);
    report.dies_planted<arrivals<all, true, way::error>>("join.stop_after_arrival", far);
    return report.finish();
}
