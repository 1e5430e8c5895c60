// expect: does not type-check
// errors: 1
// says: in_algorithm<.*affine_t>,[ ]
//     .*got<.*wanted<.*start_scheduler_in_the_environment>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

struct sink {
    using receiver_concept = ex::receiver_tag;
    void set_value(auto&&...) && noexcept {}
    void set_error(auto&&) && noexcept {}
    void set_stopped() && noexcept {}
};
void wrong() {
    auto operation =
        ex::connect(ex::just(1) | ex::then([](int i) { return i; }) | ex::affine(), sink());
    ex::start(operation);
}
