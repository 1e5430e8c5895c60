// expect: no match
// errors: 1
// says: policy_comes_first_as_in_bulk_of_par_shape_f
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

void wrong() {
    auto sndr = ex::bulk(ex::just(), 3, [](int) {});
}
