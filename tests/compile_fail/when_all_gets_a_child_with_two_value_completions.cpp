// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*when_all_t>,[ ]
//     .*got<.*set_value_t ?\(int\), .*set_value_t ?\(char\)>,[ ]
//     .*wanted<.*at_most_one_value_completion>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

struct two_values {
    using sender_concept = ex::sender_tag;
    using completion_signatures =
        ex::completion_signatures<ex::set_value_t(int), ex::set_value_t(char)>;
};
void wrong() {
    coppice::this_thread::sync_wait(ex::when_all(two_values(), ex::just()));
}
