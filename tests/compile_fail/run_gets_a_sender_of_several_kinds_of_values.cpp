// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*run_t>,[ ]
//     .*wanted<.*at_most_one_value_completion>
#include <coppice/io.hpp>

struct either {
    using sender_concept = coppice::execution::sender_tag;
    using completion_signatures =
        coppice::execution::completion_signatures<coppice::execution::set_value_t(),
                                                  coppice::execution::set_value_t(int)>;
};

void wrong() {
    coppice::io::run(either());
}
