// expect: does not type-check
// errors: 1
// says: in_algorithm<.*stopped_as_optional_t>,[ ]
//     .*got<.*completion_signatures<.*set_value_t ?\(\).*wanted<.*one_value_completion>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

void wrong() {
    coppice::this_thread::sync_wait(ex::just() | ex::stopped_as_optional());
}
