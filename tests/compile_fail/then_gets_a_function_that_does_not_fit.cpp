// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*then_t>,[ ]
//     .*got<.*takes_a_pointer>,[ ]
//     .*wanted<.*callable_with_arguments<int>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

struct takes_a_pointer {
    void operator()(int*) const {}
};
// In the middle of a pipeline: reported once, by the algorithm that cannot continue.
void wrong() {
    coppice::this_thread::sync_wait(ex::when_all(
        ex::just(1) | ex::then(takes_a_pointer()) | ex::then([] { return 1; }), ex::just()));
}
