// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*timeout_t>,[ ]
//     .*got<.*wanted<.*timed_scheduler_in_the_environment>
#include <coppice/execution.hpp>

#include <chrono>

namespace ex = coppice::execution;

void wrong(ex::counting_scope& scope) {
    ex::spawn(ex::just() | ex::timeout(std::chrono::seconds(1)), scope.get_token());
}
