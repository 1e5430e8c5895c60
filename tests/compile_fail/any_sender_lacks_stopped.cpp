// expect: no match
// errors: 1
// says: any_sender_declares
// says: is_nothing_missing<.*set_stopped_t ?\(\)
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

void wrong(ex::run_loop& loop) {
    using any = ex::any_sender<ex::completion_signatures<ex::set_value_t()>>;
    any sndr(ex::schedule(loop.get_scheduler()));
}
