// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*sync_wait_t>,[ ]
//     .*got<.*completion_signatures<.*set_stopped_t ?\(\)>>?.*wanted<.*one_value_completion>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

void wrong() {
    coppice::this_thread::sync_wait(ex::just_stopped());
}
