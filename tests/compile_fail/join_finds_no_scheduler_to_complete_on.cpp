// expect: does not type-check
// errors: 1
// says: in_algorithm<.*scope_join_t>,[ ]
//     .*got<.*env<.*wanted<.*start_scheduler_in_the_environment>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

struct sink {
    using receiver_concept = ex::receiver_tag;
    void set_value() && noexcept {}
    void set_stopped() && noexcept {}
};
void wrong(ex::counting_scope& scope) {
    auto operation = ex::connect(scope.join(), sink());
    ex::start(operation);
}
