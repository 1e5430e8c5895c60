// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*read_env_t>,[ ]
//     .*got<.*get_allocator_t, .*sync_wait_env.*wanted<
//     .*value_of_this_query_in_the_environment>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

void wrong() {
    coppice::this_thread::sync_wait(ex::read_env(coppice::get_allocator) | ex::then([](auto) {}));
}
