// expect: does not type-check
// says: in_algorithm<.*upon_error_t>.*got<.*takes_only<int>[ ]?>,[ ]
//     .*wanted<.*callable_with_arguments<long( int)?>
#include <coppice/execution.hpp>

namespace ex = coppice::execution;

void wrong() {
    coppice::this_thread::sync_wait(ex::just() |
                                    ex::let_async_scope_with_error<int>([](auto scope) noexcept {
                                        ex::spawn(ex::just_error(1L), scope);
                                    }));
}
