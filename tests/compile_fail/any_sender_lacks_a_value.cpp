// expect: no match
// errors: 1
// says: any_sender_declares
// says: is_nothing_missing<.*set_value_t ?\(price\)
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

struct price {};

void wrong() {
    using any =
        ex::any_sender<ex::completion_signatures<ex::set_value_t(int), ex::set_stopped_t()>>;
    any sndr(ex::just(price()));
}
