// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*bulk_t>,[ ]
//     .*got<.*takes_nothing>,[ ]
//     .*wanted<.*callable_with_arguments<int, char ?&>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

struct takes_nothing {
    void operator()() const {}
};
void wrong() {
    coppice::this_thread::sync_wait(ex::just('c') | ex::bulk(ex::par, 3, takes_nothing()));
}
