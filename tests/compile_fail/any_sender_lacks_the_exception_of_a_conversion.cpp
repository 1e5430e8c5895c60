// expect: no match
// errors: 1
// says: any_sender_declares
// says: is_nothing_missing<.*set_error_t ?\(std::.*exception_ptr\)
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

struct may_throw {
    operator int() const;
};

void wrong() {
    using any = ex::any_sender<ex::completion_signatures<ex::set_value_t(int)>>;
    any sndr(ex::just(may_throw()));
}
