// expect: the receiver lacks a completion function that the sender's signatures call for
// says: set_error_t
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

struct takes_values {
    using receiver_concept = ex::receiver_tag;
    void set_value(int) && noexcept {}
};
auto operation = [] { return ex::connect(ex::just_error(1), takes_values()); };
using connected = decltype(operation());
