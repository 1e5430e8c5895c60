// The model of the finite source: a flag, and slots that the request only reads while they are
// empty.
#include "stop_model.hpp"

#include <coppice/stop/finite.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

template <std::size_t N, std::size_t Index>
struct finite {
    using source = finite_inplace_stop_source<N>;
    using token = finite_inplace_stop_token<N, Index>;
    static token token_of(const source& s) { return s.template get_token<Index>(); }
};
using one = finite<1, 0>;
using second = finite<2, 1>;

constexpr const char* slot = "include/coppice/stop/internal/slot.hpp";
constexpr const char* flag = "include/coppice/stop/internal/finite_slots.hpp";
constexpr const char* waiting = "include/coppice/stop/internal/sleepers.hpp";

// Two slots, each used by its own thread, while a third thread requests.
struct two_slots : stop_test<two_slots, 3> {
    finite_inplace_stop_source<2> source;
    plain<int> data[2];
    template <std::size_t Index>
    void use() {
        data[Index].write(1);
        int ran = 0;
        {
            auto f = [&] {
                data[Index].write(2);
                ++ran;
            };
            finite_inplace_stop_callback<2, Index, decltype(f)> callback(source.get_token<Index>(),
                                                                         f);
        }
        data[Index].write(3);
        require(ran <= 1, "ran twice");
    }
    void run(unsigned index) {
        if (index == 0) use<0>();
        if (index == 1) use<1>();
        if (index == 2) require(source.request_stop(), "the only request lost");
    }
};

// While the second slot's callback runs, the first slot's is removed; that removal must not wait.
struct no_wait_for_others : stop_test<no_wait_for_others, 2> {
    finite_inplace_stop_source<2> source;
    atomic<int> second_runs{0};
    atomic<int> first_gone{0};
    void run(unsigned index) {
        if (index == 0) {
            auto f = [&] {
                second_runs.store(1, release);
                while (first_gone.load(acquire) == 0) spin_hint();
            };
            finite_inplace_stop_callback<2, 1, decltype(f)> callback(source.get_token<1>(), f);
            source.request_stop();
        } else {
            auto f = [] {};
            std::optional<finite_inplace_stop_callback<2, 0, decltype(f)>> callback;
            callback.emplace(source.get_token<0>(), f);
            while (second_runs.load(acquire) == 0) spin_hint();
            callback.reset();
            first_gone.store(1, release);
        }
    }
};

}  // namespace

int main() {
    report report("finite");
    report.holds<register_and_remove<one>>("register and remove against request", far);
    report.holds<register_and_remove<second>>("the same on the last slot", far);
    report.holds<no_stop_is_lost<one>>("no stop is lost", far);
    report.holds<late_callback<one>>("a late callback runs in its constructor", far);
    report.holds<racing_requests<one>>("one of racing requests wins", far);
    report.holds<two_slots>("slots do not disturb each other", far);
    report.holds<remove_while_running<second>>("removal waits for a running callback", far);
    report.holds<no_wait_for_others>("removal does not wait for another callback", far);
    report.holds<self_removal<one>>("a callback removes itself", far);
    report.holds<source_dies_inside<second>>("a callback destroys the source", far);
    report.holds<forward_and_destroy<one, second>>("the last completion frees everything", far);
    report.holds<forward_and_destroy<one, second, false>>("the same when only the stop completes",
                                                          far);

    report.dies_weakened<register_and_remove<one>>(slot, "stop.callback", far);
    report.dies_weakened<register_and_remove<one>>(flag, "stop.requested", far);
    report.dies_weakened<no_stop_is_lost<one>>(flag, "stop.flag", far);
    report.dies_weakened<no_stop_is_lost<one>>(slot, "stop.flag", far);
    report.dies_weakened<remove_while_running<second>>(slot, "stop.done", far);
    report.dies_weakened<remove_while_running<second>>(waiting, "stop.done", far);
    report.dies_weakened<remove_while_running<second>>(waiting, "stop.sleep", far);
    report.dies_planted<late_callback<one>>("finite.steal_late_callback", far);
    report.dies_planted<no_stop_is_lost<one>>("finite.no_second_look", far);
    report.dies_planted<register_and_remove<one>>("finite.end_twice", far);
    report.dies_planted<remove_while_running<second>>("stop.do_not_wait", far);
    report.dies_planted<remove_while_running<second>>("stop.forget_wake", far);
    report.dies_planted<self_removal<one>>("stop.wait_for_oneself", far);
    return report.finish();
}
