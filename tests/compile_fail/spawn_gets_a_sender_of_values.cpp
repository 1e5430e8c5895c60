// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*spawn_t>,[ ]
//     .*got<.*set_value_t ?\(int\).*wanted<.*only_value_and_stopped_completions>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

void wrong(ex::counting_scope& scope) {
    ex::spawn(ex::just(1), scope.get_token());
}
