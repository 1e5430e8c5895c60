// Arrivals: when_all, when_any, when_all_range and timeout complete once, after all have arrived,
// with every result visible; a stop from outside runs meanwhile; the operation ends inside.
#include "exec_model.hpp"

#include <coppice/exec/timeout.hpp>
#include <coppice/exec/when_all.hpp>
#include <coppice/exec/when_all_range.hpp>
#include <coppice/exec/when_any.hpp>
#include <coppice/exec/write_env.hpp>

namespace {

using namespace coppice;
using namespace coppice::protocol_model;
using namespace model;

constexpr const char* all_file = "include/coppice/exec/when_all.hpp";
constexpr const char* any_file = "include/coppice/exec/when_any.hpp";
constexpr const char* range_file = "include/coppice/exec/when_all_range.hpp";
constexpr const char* timeout_file = "include/coppice/exec/timeout.hpp";

// Two threads complete the children, a third requests a stop. Make says which algorithm.
template <class Make, bool Stop>
struct arrivals : stop_test<arrivals<Make, Stop>, Stop ? 3 : 2>, ending {
    using operation =
        ex::connect_result_t<decltype(Make::sender(std::declval<hand&>(), std::declval<hand&>())),
                             ending_receiver>;
    hand hands[2];
    manual_lifetime<operation> op;
    int completions = 0;

    void before() {
        op.construct_with([this] {
            return ex::connect(Make::sender(hands[0], hands[1]), ending_receiver(*this));
        });
        ex::start(op.get());
    }
    void completed() noexcept override {
        ++completions;
        op.destroy();
    }
    void run(unsigned index) {
        if (index == 0) hands[0].started->value();
        if (index == 1) Make::second(*hands[1].started);
        if (index == 2) source.request_stop();
    }
    void after() { require(completions == 1, "not completed once"); }
};

struct all_values {
    static auto sender(hand& a, hand& b) { return ex::when_all(a.get(), b.get()); }
    static void second(hand::operation_base& op) { op.value(); }
};
struct all_with_error : all_values {
    static void second(hand::operation_base& op) { op.error(); }
};
struct any_values {
    static auto sender(hand& a, hand& b) { return ex::when_any(a.get(), b.get()); }
    static void second(hand::operation_base& op) { op.value(); }
};
struct any_with_stop : any_values {
    static void second(hand::operation_base& op) { op.stopped(); }
};
struct range_values {
    static auto sender(hand& a, hand& b) {
        std::vector<hand::sender> sndrs;
        sndrs.push_back(a.get());
        sndrs.push_back(b.get());
        return ex::when_all_range(std::move(sndrs));
    }
    static void second(hand::operation_base& op) { op.value(); }
};

// A timed scheduler whose timers a thread completes.
class by_hand_timers {
public:
    using scheduler_concept = ex::scheduler_tag;
    explicit by_hand_timers(hand& h) noexcept : hand_(&h) {}
    class sender {
    public:
        using sender_concept = ex::sender_tag;
        explicit sender(hand& h) noexcept : hand_(&h) {}
        template <class Self, class... Env>
        static consteval auto get_completion_signatures() noexcept {
            return ex::completion_signatures<ex::set_value_t(), ex::set_stopped_t()>();
        }
        template <class Rcvr>
        class operation final : public hand::operation_base {
        public:
            using operation_state_concept = ex::operation_state_tag;
            operation(hand& h, Rcvr rcvr) noexcept : hand_(h), rcvr_(static_cast<Rcvr&&>(rcvr)) {}
            void start() & noexcept { hand_.started = this; }
            void value() noexcept override { ex::set_value(static_cast<Rcvr&&>(rcvr_)); }
            void error() noexcept override {}
            void stopped() noexcept override { ex::set_stopped(static_cast<Rcvr&&>(rcvr_)); }

        private:
            hand& hand_;
            Rcvr rcvr_;
        };
        template <class Rcvr>
        auto connect(Rcvr rcvr) const noexcept {
            return operation<Rcvr>(*hand_, static_cast<Rcvr&&>(rcvr));
        }

    private:
        hand* hand_;
    };
    sender schedule() const noexcept { return sender(*hand_); }
    sender schedule_after(ex::time_span) const noexcept { return sender(*hand_); }
    ex::instant now() const noexcept { return ex::instant(0); }
    bool operator==(const by_hand_timers&) const = default;

private:
    hand* hand_;
};
struct timeout_expires {
    static auto sender(hand& a, hand& timer) {
        return ex::write_env(ex::timeout(a.get(), ex::time_span(1)),
                             ex::prop(ex::get_timed_scheduler, by_hand_timers(timer)));
    }
    static void second(hand::operation_base& timer) { timer.value(); }
};
struct timeout_stopped : timeout_expires {
    static void second(hand::operation_base& timer) { timer.stopped(); }
};

}  // namespace

int main() {
    report report("when_all");
    report.holds<arrivals<all_values, false>>("all values");
    report.holds<arrivals<all_values, true>>("all values and a stop", far);
    report.holds<arrivals<all_with_error, true>>("an error and a stop", far);
    report.holds<arrivals<any_values, true>>("any of two values and a stop", far);
    report.holds<arrivals<any_with_stop, false>>("any of one value");
    report.holds<arrivals<range_values, false>>("a range");
    report.holds<arrivals<range_values, true>>("a range and a stop", far);
    report.holds<arrivals<timeout_expires, true>>("a timeout that expires, and a stop", far);
    report.holds<arrivals<timeout_stopped, false>>("a timeout that does not");

    report.dies_weakened<arrivals<all_values, false>>(all_file, "when_all.arrive");
    report.dies_weakened<arrivals<any_values, false>>(any_file, "when_any.arrive");
    report.dies_weakened<arrivals<range_values, false>>(range_file, "when_all_range.arrive");
    report.dies_weakened<arrivals<timeout_expires, false>>(timeout_file, "timeout.arrive");
    report.dies_planted<arrivals<all_with_error, true>>("when_all.stop_after_arrival", far);
    return report.finish();
}
