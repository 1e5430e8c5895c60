// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*upon_error_t>,[ ]
//     .*wanted<.*callable_with_arguments<int>
#include <coppice/execution.hpp>

#include <system_error>

namespace ex = coppice::execution;

void wrong(ex::counting_scope& scope) {
    ex::spawn(ex::just_error(1), scope.get_token(), [](std::error_code) noexcept {});
}
