// The model of the asymmetric source: plain stores against a membarrier.
#include "stop_model.hpp"

#include <coppice/stop/asymmetric.hpp>

namespace {

using namespace coppice;
using namespace coppice::internal;
using namespace coppice::protocol_model;
using namespace model;

template <std::size_t N, std::size_t Index>
struct asymmetric {
    using source = asymmetric_inplace_stop_source<N>;
    using token = asymmetric_inplace_stop_token<N, Index>;
    static token token_of(const source& s) { return s.template get_token<Index>(); }
};
using one = asymmetric<1, 0>;
using second = asymmetric<2, 1>;

constexpr const char* own = "include/coppice/stop/internal/asymmetric_slots.hpp";
constexpr const char* waiting = "include/coppice/stop/internal/sleepers.hpp";

// Two slots, each with an owner, while a third thread requests.
struct two_slots : stop_test<two_slots, 3> {
    asymmetric_inplace_stop_source<2> source;
    plain<int> data[2];
    template <std::size_t Index>
    void use() {
        for (int round = 0; round != 2; ++round) {
            data[Index].write(1);
            int ran = 0;
            {
                auto f = [&] {
                    data[Index].write(2);
                    ++ran;
                };
                asymmetric_inplace_stop_callback<2, Index, decltype(f)> callback(
                    source.get_token<Index>(), f);
            }
            data[Index].write(3);
            require(ran <= 1, "ran twice");
        }
    }
    void run(unsigned index) {
        if (index == 0) use<0>();
        if (index == 1) use<1>();
        if (index == 2) require(source.request_stop(), "the only request lost");
    }
};

}  // namespace

int main() {
    report report("asymmetric");
    report.holds<register_and_remove<one>>("register and remove against request", far);
    report.holds<register_and_remove<second, 3>>("the same on the last slot", far);
    report.holds<no_stop_is_lost<one>>("no stop is lost", far);
    report.holds<late_callback<one>>("a late callback runs in its constructor", far);
    report.holds<racing_requests<one>>("one of racing requests wins", far);
    report.holds<two_slots>("slots do not disturb each other", far);
    report.holds<remove_while_running<second>>("removal waits for a running callback", far);
    report.holds<self_removal<one>>("a callback removes itself", far);
    report.holds<source_dies_inside<one>>("a callback destroys the source", far);
    report.holds<forward_and_destroy<one, second>>("the last completion frees all", far);
    report.holds<forward_and_destroy<one, second, false>>("the same when only the stop completes",
                                                          far);

    report.dies_weakened<register_and_remove<one>>(own, "asymmetric.callback", far);
    report.dies_weakened<register_and_remove<one>>(own, "asymmetric.flag", far);
    report.dies_weakened<no_stop_is_lost<one>>(own, "asymmetric.order", far);
    report.dies_weakened<remove_while_running<second>>(own, "stop.done", far);
    report.dies_weakened<remove_while_running<second>>(waiting, "stop.done", far);
    report.dies_weakened<remove_while_running<second>>(waiting, "stop.sleep", far);
    report.dies_planted<remove_while_running<second>>("asymmetric.do_not_wait", far);
    report.dies_planted<remove_while_running<second>>("asymmetric.run_withdrawn", far);
    report.dies_planted<self_removal<one>>("stop.wait_for_oneself", far);
    return report.finish();
}
