// expect: does not type-check
// errors: 1
// says: pipeline_error<.*in_algorithm<.*run_t>,[ ]
//     .*wanted<.*callable_returning_a_sender_with_arguments<.*context ?&>
#include <coppice/io.hpp>

void wrong() {
    coppice::io::run([](coppice::io::context&) { return 7; });
}
