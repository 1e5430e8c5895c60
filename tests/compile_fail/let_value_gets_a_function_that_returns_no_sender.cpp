// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*let_value_t>,[ ]
//     .*got<.*returns_int>,[ ]
//     .*wanted<.*callable_returning_a_sender_with_arguments<int ?&>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

struct returns_int {
    int operator()(int i) const { return i; }
};
void wrong() {
    coppice::this_thread::sync_wait(ex::just(1) | ex::let_value(returns_int()));
}
