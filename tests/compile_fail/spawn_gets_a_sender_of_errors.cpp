// expect: the errors of what is spawned; write spawn.sender, scope, on_error.,
// errors: 1
// says: pipeline_error<.*in_algorithm<.*spawn_t>,[ ]
//     .*got<.*set_error_t ?\(int\).*wanted<.*only_value_and_stopped_completions>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

void wrong(ex::counting_scope& scope) {
    ex::spawn(ex::just_error(1), scope.get_token());
}
