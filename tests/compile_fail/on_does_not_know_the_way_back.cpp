// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*on_t>, .*got<.*wanted<.*start_scheduler_in_the_environment>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

void wrong(ex::counting_scope& scope) {
    ex::spawn(ex::on(ex::inline_scheduler(), ex::just()), scope.get_token());
}
