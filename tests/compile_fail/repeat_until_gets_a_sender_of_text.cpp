// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*repeat_until_t>,[ ]
//     .*got<.*text>,[ ]
//     .*wanted<.*values_that_convert_to_one_bool>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

struct text {};
void wrong() {
    coppice::this_thread::sync_wait(ex::just(text()) | ex::repeat_until());
}
