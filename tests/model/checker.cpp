// The one place where the checker's engine is compiled: once for each number of threads.
#include "checker.hpp"

#include <cstdlib>
#include <new>
#include <sstream>

namespace model {
namespace {

// What the engine runs. It constructs a suite for each execution; the test lies in memory beside
// it, because only the driver knows its size.
struct current {
    const erased_test* test = nullptr;
    void* memory = nullptr;
};
current now;

template <unsigned Threads>
struct suite : rl::test_suite<suite<Threads>, static_cast<rl::thread_id_t>(Threads)> {
    suite() { now.test->construct(now.memory); }
    ~suite() { now.test->destroy(now.memory); }
    void before() { now.test->before(now.memory); }
    void thread(unsigned index) { now.test->run(now.memory, index); }
    void after() { now.test->after(now.memory); }
};

template <class Suite, class Scheduler>
bool run(rl::test_params& params, bool explains) {
    rl::ostringstream state;
    const rl::test_result_e result = rl::run_test<Suite, Scheduler>(params, state, false);
    if (result == rl::test_result_success) return true;
    if (!explains) return false;
    params.initial_state = state.str();
    params.final_state = state.str();
    params.collect_history = true;
    rl::ostringstream unused;
    if (rl::run_test<Suite, Scheduler>(params, unused, true) != result) {
        *params.output_stream << "it does not fail again: the model depends on more than the "
                                 "checker's choices\n";
    }
    return false;
}

template <unsigned Threads>
bool run(rl::test_params& params, bool explains) {
    constexpr auto count = static_cast<rl::thread_id_t>(Threads);
    if (params.search_type == rl::fair_full_search_scheduler_type) {
        return run<suite<Threads>, rl::full_search_scheduler<count>>(params, explains);
    }
    return run<suite<Threads>, rl::random_scheduler<count>>(params, explains);
}

}  // namespace

bool explore(const erased_test& test, rl::test_params& params, bool explains) {
    void* const memory = std::malloc(test.size);
    if (memory == nullptr) throw std::bad_alloc();
    now = {&test, memory};
    static constexpr bool (*runs[most_threads])(rl::test_params&, bool) = {run<1>, run<2>, run<3>,
                                                                           run<4>, run<5>, run<6>};
    const bool held = runs[test.threads - 1](params, explains);
    now = {};
    std::free(memory);
    return held;
}

}  // namespace model
